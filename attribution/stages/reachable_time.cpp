// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/reachable_time.h"

#include <algorithm>
#include <iterator>

#include "attribution/estimate/intervals.h"
#include "base/units.h"

namespace crosstalk::attribution {

ReachableTime::ReachableTime(std::span<const profile::ThreadRow> threads, bool common_memory)
    : threads_(threads), common_memory_(common_memory) {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    Living& living = groups_[group_of(i)];
    living.push_back({threads[i].begin_ns, 1});
    if (threads[i].end_ns > threads[i].begin_ns) {  // else it lived on
      living.push_back({threads[i].end_ns, -1});
    }
  }
  for (auto& [group, living] : groups_) {
    std::sort(living.begin(), living.end());
    std::int64_t count = 0;
    for (auto& [time_ns, threads_then] : living) {
      threads_then = count += threads_then;
    }
  }
}

std::uint32_t ReachableTime::group_of(std::size_t thread) const {
  return common_memory_ ? 0 : threads_[thread].process.value;
}

bool ReachableTime::in_company(const profile::SampleRow& sample) const {
  const Living& living = groups_.at(group_of(sample.thread.value));
  const auto next = std::upper_bound(living.begin(), living.end(), sample.time_ns,
                                     [](std::uint64_t time_ns, const auto& since) { return time_ns < since.first; });
  return next != living.begin() && std::prev(next)->second > 1;
}

void ReachableTime::add(const profile::SampleRow& sample) {
  if (sample.thread.value >= threads_.size() || !sample.is_of_time()) {
    return;
  }
  const auto ns = static_cast<double>(sample.time_weight_ns());
  ++samples_;
  all_ns_ += ns;
  const bool eligible = (sample.flags & profile::sample_eligible) != 0;
  if ((sample.flags & profile::sample_in_kernel) != 0 || (!eligible && !in_company(sample))) {
    return;
  }
  reachable_ns_ += ns;
  if (!eligible) {
    out_of_reach_ns_ += ns;
    out_of_reach_ns2_ += ns * ns;
  }
}

double ReachableTime::reachable_s() const { return reachable_ns_ / ns_per_s; }

double ReachableTime::out_of_reach_s() const {
  if (samples_ == 0 || !any_company()) {
    return 0;
  }
  const double one_more = all_ns_ / static_cast<double>(samples_);
  const double most = event_interval(out_of_reach_ns_, out_of_reach_ns2_, one_more).high;
  return std::min(most, reachable_ns_) / ns_per_s;
}

bool ReachableTime::any_company() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& group) {
    return std::any_of(group.second.begin(), group.second.end(), [](const auto& since) { return since.second > 1; });
  });
}

}  // namespace crosstalk::attribution
