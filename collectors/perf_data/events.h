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

/// Finds the event of a record: a known one, the first if the record does not tell (it says less than the event's own
/// layout would), or none if the file does not describe it.
class Events {
 public:
  /// Refused: an event whose records could not be distinguished from those of the others.
  [[nodiscard]] Result<void> add(const Attribute& attribute, WordView ids);
  void rename(std::size_t event, std::string_view name) { events_[event].name = name; }

  [[nodiscard]] const std::vector<Event>& list() const { return events_; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::optional<std::size_t> of_id(std::uint64_t id) const;
  /// Returns the event whose layout a record has. `body` is behind its header. Nothing: the event is not known.
  [[nodiscard]] std::optional<std::size_t> of_record(bool is_sample, WordView body) const;

 private:
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, std::size_t> of_id_;
};

/// Returns how many words of a sample are before the event's id. Nothing: samples have none.
[[nodiscard]] std::optional<std::size_t> words_before_id(const Attribute& attribute);
/// Returns how many words are behind the id at the end of other records. Nothing: they have none.
[[nodiscard]] std::optional<std::size_t> words_behind_id(const Attribute& attribute);

}  // namespace crosstalk::perf_data
