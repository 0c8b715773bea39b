// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/reachable_time.h"

#include <algorithm>
#include <iterator>

#include "attribution/estimate/intervals.h"
#include "base/units.h"

namespace crosstalk::attribution {

namespace {

using Living = std::vector<std::pair<std::uint64_t, std::int64_t>>;

void note(Living& living, const profile::ThreadRow& thread) {
  living.push_back({thread.begin_ns, 1});
  if (thread.end_ns > thread.begin_ns) {  // else it lived on
    living.push_back({thread.end_ns, -1});
  }
}

void add_up(Living& living) {
  std::sort(living.begin(), living.end());
  std::int64_t count = 0;
  for (auto& [time_ns, threads_then] : living) {
    threads_then = count += threads_then;
  }
}

bool several_at(const Living& living, std::uint64_t at_ns) {
  const auto next = std::upper_bound(living.begin(), living.end(), at_ns,
                                     [](std::uint64_t time_ns, const auto& since) { return time_ns < since.first; });
  return next != living.begin() && std::prev(next)->second > 1;
}

}  // namespace

ReachableTime::ReachableTime(std::span<const profile::ThreadRow> threads, bool common_memory)
    : threads_(threads), common_memory_(common_memory) {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    note(groups_[group_of(i)], threads[i]);
    note(everyone_, threads[i]);
  }
  for (auto& [group, living] : groups_) {
    add_up(living);
  }
  add_up(everyone_);
}

std::uint32_t ReachableTime::group_of(std::size_t thread) const {
  return common_memory_ ? 0 : threads_[thread].process.value;
}

void ReachableTime::add(const profile::SampleRow& sample) {
  if (sample.thread.value >= threads_.size() || !sample.is_of_time()) {
    return;
  }
  const auto ns = static_cast<double>(sample.time_weight_ns());
  ++samples_;
  all_ns_ += ns;
  const bool in_kernel = (sample.flags & profile::sample_in_kernel) != 0;
  const bool eligible = (sample.flags & profile::sample_eligible) != 0;
  if (!in_kernel && (eligible || several_at(groups_.at(group_of(sample.thread.value)), sample.time_ns))) {
    reachable_.add(ns);
    if (!eligible) {
      out_of_reach_.add(ns);
    }
    return;
  }
  beyond_.add(ns);
  if (!in_kernel && several_at(everyone_, sample.time_ns)) {
    strange_ns_ += ns;
    elsewhere_ += sample.access != AccessKind::none ? 1 : 0;
  }
}

double ReachableTime::one_sample_ns() const { return samples_ == 0 ? 0 : all_ns_ / static_cast<double>(samples_); }

double ReachableTime::least_s() const { return most_unseen_events * one_sample_ns() / ns_per_s; }

/// The most that memory in common may have taken of the time with threads of other processes alone.
double ReachableTime::strange_most_ns() const {
  return elsewhere_ == 0 ? strange_ns_
                         : strange_ns_ * std::min(1.0, most_unseen_events / static_cast<double>(elsewhere_));
}

double ReachableTime::reachable_s() const {
  if (!any_company()) {
    return 0;
  }
  // All time is known, so that of the smaller part decides.
  const double most = reachable_.ns < beyond_.ns ? event_interval(reachable_.ns, reachable_.ns2, one_sample_ns()).high
                                                 : all_ns_ - event_interval(beyond_.ns, beyond_.ns2, 0).low;
  return std::min(most + strange_most_ns(), all_ns_) / ns_per_s;
}

double ReachableTime::out_of_reach_s() const {
  const double most = event_interval(out_of_reach_.ns, out_of_reach_.ns2, one_sample_ns()).high;
  return std::min(most / ns_per_s + strange_most_ns() / ns_per_s, reachable_s());
}

bool ReachableTime::any_company() const {
  return std::any_of(everyone_.begin(), everyone_.end(), [](const auto& since) { return since.second > 1; });
}

}  // namespace crosstalk::attribution
