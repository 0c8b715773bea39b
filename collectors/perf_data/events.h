// SPDX-License-Identifier: Apache-2.0
// The events of a recording, and which of them a record is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "collectors/perf_data/attribute.h"

namespace crosstalk::perf_data {

struct Event {
  Attribute attribute;
  std::string name;
};

/// Which event a record is of: one, the first for want of any better (it says less than the event's own layout would),
/// or one that the file does not describe.
class Events {
 public:
  /// Refused: an event whose records could not be told from those of the others.
  [[nodiscard]] Result<void> add(const Attribute& attribute, WordView ids);
  void rename(std::size_t event, std::string_view name) { events_[event].name = name; }

  [[nodiscard]] const std::vector<Event>& list() const { return events_; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::optional<std::size_t> of_id(std::uint64_t id) const;
  /// Whose layout a record has. `body` is behind its header. Nothing: of no event that is known.
  [[nodiscard]] std::optional<std::size_t> of_record(bool is_sample, WordView body) const;

 private:
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, std::size_t> of_id_;
};

/// How many words of a sample are before the event's id. Nothing: samples have none.
[[nodiscard]] std::optional<std::size_t> words_before_id(const Attribute& attribute);
/// How many words are behind the id at the end of other records. Nothing: they have none.
[[nodiscard]] std::optional<std::size_t> words_behind_id(const Attribute& attribute);

}  // namespace crosstalk::perf_data
