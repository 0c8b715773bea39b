// SPDX-License-Identifier: Apache-2.0
// An event's attributes, which say what it counts and reports: perf_event_attr of any kernel and either byte order.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_cursor.h"
#include "base/result.h"

namespace crosstalk::perf_data {

/// Fields that older kernels lack are 0.
struct Attribute {
  std::uint32_t type = 0;
  std::uint64_t config = 0, config1 = 0;
  std::uint64_t period_or_frequency = 0;
  std::uint64_t sample_type = 0;         // PERF_SAMPLE_*
  std::uint64_t read_format = 0;         // PERF_FORMAT_*
  std::uint64_t flags = 0;               // the bit fields, `disabled` in bit 0
  std::uint64_t branch_sample_type = 0;  // PERF_SAMPLE_BRANCH_*
  std::uint64_t registers_user = 0;      // masks of register numbers
  std::uint64_t registers_interrupted = 0;

  [[nodiscard]] bool samples(std::uint64_t field) const { return (sample_type & field) != 0; }
  [[nodiscard]] bool is_frequency() const { return flag(10); }
  /// How near the sampled instruction is to the one that counted: 0 anywhere, 3 the very one.
  [[nodiscard]] unsigned precision() const { return static_cast<unsigned>(flags >> 15U & 3U); }
  /// True if every record ends with thread and time, not only samples.
  [[nodiscard]] bool all_have_ids() const { return flag(18); }

 private:
  [[nodiscard]] bool flag(unsigned bit) const { return (flags >> bit & 1U) != 0; }
};

/// The size of the first published layout; anything smaller is no attribute.
inline constexpr std::uint32_t least_attribute_bytes = 64;

/// Takes an attribute that says itself how long it is, which is no more than `limit` bytes.
[[nodiscard]] Result<Attribute> take_attribute(ByteCursor& bytes, std::uint64_t limit);

/// Returns perf's name of the event, for a file without a name for it.
[[nodiscard]] std::string name_of(const Attribute& attribute);

}  // namespace crosstalk::perf_data
