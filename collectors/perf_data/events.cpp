// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/events.h"

#include <linux/perf_event.h>

#include <bit>

namespace crosstalk::perf_data {
namespace {

std::size_t count_of(const Attribute& attribute, std::uint64_t fields) {
  return static_cast<std::size_t>(std::popcount(attribute.sample_type & fields));
}

}  // namespace

std::optional<std::size_t> words_before_id(const Attribute& attribute) {
  if (attribute.samples(PERF_SAMPLE_IDENTIFIER)) {
    return 0;
  }
  if (!attribute.samples(PERF_SAMPLE_ID)) {
    return std::nullopt;
  }
  return count_of(attribute, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
}

std::optional<std::size_t> words_behind_id(const Attribute& attribute) {
  if (attribute.samples(PERF_SAMPLE_IDENTIFIER)) {
    return 0;
  }
  if (!attribute.samples(PERF_SAMPLE_ID)) {
    return std::nullopt;
  }
  return count_of(attribute, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
}

Result<void> Events::add(const Attribute& attribute, WordView ids) {
  if (!events_.empty()) {
    const Attribute& first = events_.front().attribute;
    if (!words_before_id(attribute) || words_before_id(attribute) != words_before_id(first) ||
        words_behind_id(attribute) != words_behind_id(first) || attribute.all_have_ids() != first.all_have_ids()) {
      return fail(ErrorCode::corrupt, "event " + std::to_string(events_.size()) +
                                          " has its id at another place of a record than the first event, so that "
                                          "their records cannot be told apart");
    }
  }
  const std::size_t index = events_.size();
  events_.push_back({attribute, name_of(attribute)});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    of_id_.try_emplace(ids[i], index);
  }
  return {};
}

std::optional<std::size_t> Events::of_id(std::uint64_t id) const {
  const auto found = of_id_.find(id);
  return found == of_id_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> Events::of_record(bool is_sample, WordView body) const {
  if (events_.empty()) {
    return std::nullopt;
  }
  const Attribute& first = events_.front().attribute;
  if (events_.size() == 1 || (!is_sample && !first.all_have_ids())) {
    return 0;
  }
  const std::size_t apart = is_sample ? *words_before_id(first) : *words_behind_id(first);
  if (apart >= body.size()) {
    return std::nullopt;
  }
  const std::uint64_t id = body[is_sample ? apart : body.size() - 1 - apart];
  return id == 0 ? std::optional<std::size_t>(0) : of_id(id);  // 0: a record that perf made up
}

}  // namespace crosstalk::perf_data
