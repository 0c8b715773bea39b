// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/units.h"

namespace crosstalk::collectors::calibration {
namespace {

void stay_on(std::thread& thread, std::uint32_t cpu) {
  const std::size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  cpu_set_t* const set = CPU_ALLOC(cpu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(cpu, bytes, set);
  static_cast<void>(::pthread_setaffinity_np(thread.native_handle(), bytes, set));
  CPU_FREE(set);
}

}  // namespace

Team::Team(const std::vector<std::uint32_t>& cpus) : members_(cpus.size()), steal_(cpus) {
  for (unsigned i = 0; i < members_.size(); ++i) {
    members_[i].thread = std::thread([this, i] { serve(i); });
    stay_on(members_[i].thread, cpus[i]);
  }
}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  called_.notify_all();
  for (Member& member : members_) {
    member.thread.join();
  }
}

/// Starts all members at once. They wake up one after another; early ones wait for the last without sleeping again.
void Team::start_together() {
  constexpr unsigned spins_between_yields = 1U << 16U;
  const std::uint64_t mine = ready_.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t all = (mine / members_.size() + 1) * members_.size();
  for (unsigned spins = 1; ready_.load(std::memory_order_acquire) < all; ++spins) {
    if (spins % spins_between_yields == 0) {
      ::sched_yield();  // the member that is waited for may have been put on this processor
    }
  }
}

void Team::serve(unsigned number) {
  std::uint64_t served = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    called_.wait(lock, [&] { return ended_ || calls_ != served; });
    if (ended_) {
      return;
    }
    served = calls_;
    const std::function<void(unsigned)>& work = *work_;
    lock.unlock();
    start_together();
    ThreadWatch watch;
    watch.begin();
    work(number);
    watch.end();
    lock.lock();
    members_[number].watch = watch;
    if (++done_ == members_.size()) {
      finished_.notify_one();
    }
  }
}

TeamTime Team::run(const std::function<void(unsigned)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  done_ = 0;
  ++calls_;
  called_.notify_all();
  finished_.wait(lock, [&] { return done_ == members_.size(); });
  std::uint64_t first_begin = UINT64_MAX, last_begin = 0, first_end = UINT64_MAX, last_end = 0, longest = 0;
  bool disturbed = steal_.any_since_last();
  for (const Member& member : members_) {
    const std::uint64_t begin = member.watch.begin_ns();
    const std::uint64_t end = member.watch.end_ns();
    first_begin = std::min(first_begin, begin);
    last_begin = std::max(last_begin, begin);
    first_end = std::min(first_end, end);
    last_end = std::max(last_end, end);
    longest = std::max(longest, end - begin);
    disturbed = disturbed || was_disturbed(member.watch.use());
  }
  const auto window = static_cast<double>(last_end - first_begin);
  const double together = first_end > last_begin ? static_cast<double>(first_end - last_begin) : 0;
  return {window / ns_per_s, static_cast<double>(longest) / ns_per_s, window > 0 ? together / window : 0, disturbed};
}

std::optional<Trial> seconds_together(Team& team, double units, const std::function<void(unsigned)>& work) {
  constexpr double least_overlap = 0.9;
  const TeamTime time = team.run(work);
  if (time.overlap < least_overlap) {
    return std::nullopt;
  }
  return Trial{time.longest_s / (units * team.size()), time.disturbed};
}

}  // namespace crosstalk::collectors::calibration
