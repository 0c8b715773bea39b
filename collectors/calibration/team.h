// SPDX-License-Identifier: Apache-2.0
// Threads that stay on a processor each and work at the same time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "collectors/calibration/disturbance.h"
#include "collectors/calibration/tries.h"

namespace crosstalk::collectors::calibration {

struct TeamTime {
  double window_s = 0;     // from the first member's begin to the last one's end
  double longest_s = 0;    // of the slowest member
  double overlap = 0;      // the part of the window in which all were at work
  bool disturbed = false;  // something else ran on a member's processor meanwhile
};

class Team {
 public:
  /// Makes a member for each processor, by number. A member that cannot be put there works where it is.
  explicit Team(const std::vector<std::uint32_t>& cpus);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(members_.size()); }
  /// Every member calls `work` with its number, all at the same time; returns when all have done so.
  TeamTime run(const std::function<void(unsigned member)>& work);

 private:
  struct Member {
    std::thread thread;
    ThreadWatch watch;  // written by the thread before it counts itself as done
  };
  void serve(unsigned number);
  void start_together();

  std::vector<Member> members_;
  StealTime steal_;
  std::mutex mutex_;  // guards all below but `ready_`
  std::condition_variable called_, finished_;
  std::uint64_t calls_ = 0;
  unsigned done_ = 0;
  bool ended_ = false;
  const std::function<void(unsigned)>* work_ = nullptr;
  std::atomic<std::uint64_t> ready_{0};  // members that came to a start, over all calls
};

/// Returns the seconds for each unit of work of the whole team, each member of which does `units`, by the slowest
/// member. nullopt: not all were at work nearly all of the time, so the time is not that of their common work.
[[nodiscard]] std::optional<Trial> seconds_together(Team& team, double units,
                                                    const std::function<void(unsigned member)>& work);

}  // namespace crosstalk::collectors::calibration
