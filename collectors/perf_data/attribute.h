// SPDX-License-Identifier: Apache-2.0
// An event's attributes, which say what it counts and reports: perf_event_attr of any kernel and either byte order.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "collectors/perf_data/byte_cursor.h"

namespace crosstalk::perf_data {

/// Fields that older kernels lack are 0.
struct Attribute {
  std::uint32_t type = 0;
  std::uint64_t config = 0, config1 = 0, config2 = 0;
  std::uint64_t period_or_frequency = 0;
  std::uint64_t sample_type = 0;         // PERF_SAMPLE_*
  std::uint64_t read_format = 0;         // PERF_FORMAT_*
  std::uint64_t flags = 0;               // the bit fields, `disabled` in bit 0
  std::uint64_t branch_sample_type = 0;  // PERF_SAMPLE_BRANCH_*
  std::uint64_t registers_user = 0;      // masks of register numbers
  std::uint64_t registers_interrupted = 0;
  std::int32_t clock_id = 0;  // of sample times, where uses_clock_id()

  [[nodiscard]] bool samples(std::uint64_t field) const { return (sample_type & field) != 0; }
  [[nodiscard]] bool is_frequency() const { return flag(10); }
  [[nodiscard]] bool excludes_user() const { return flag(4); }
  [[nodiscard]] bool excludes_kernel() const { return flag(5); }
  /// How near the sampled instruction is to the one that counted: 0 anywhere, 3 the very one.
  [[nodiscard]] unsigned precision() const { return static_cast<unsigned>(flags >> 15U & 3U); }
  /// True if every record ends with thread and time, not only samples.
  [[nodiscard]] bool all_have_ids() const { return flag(18); }
  [[nodiscard]] bool uses_clock_id() const { return flag(25); }

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
