// SPDX-License-Identifier: Apache-2.0
// Watches one process from outside, from attaching to leaving: no code, no signal, no descriptor and no mapping of ours
// is ever in it. Its samples and watched accesses come through perf rings that this process maps; its memory is read
// through the kernel.
//
//     a thread's ring -> perf_records -> sampling -> the thread's ring in the recorder's arena
//                                     -> watches  ->
//
// Records of all rings are handled by ascending time. Since a ring may get a record while another one is read, the
// latest records wait for the next pass.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "collectors/in_target/access/finder.h"
#include "collectors/observer/perf_records.h"
#include "collectors/observer/sampling.h"
#include "collectors/observer/target.h"
#include "collectors/observer/watches.h"

namespace crosstalk::observer {

/// Used by one thread, whose CPU time is charged to the budget.
class Session final : private WatchWorld {
 public:
  /// `registers`: debug registers that a thread can have.
  Session(pid_t pid, ArenaAccess arena, std::uint32_t registers);

  [[nodiscard]] Result<void> begin() { return target_.begin(); }
  /// Handles what has come.
  void pass();
  /// Waits until something comes, `stop` is readable, or it is time for something.
  void wait(int stop);
  /// Leaves the target. Nothing of it is used afterwards.
  void end();

 private:
  struct Arrival {
    std::uint64_t time_ns = 0;
    pid_t tid = 0;
    PerfRecord record;
    std::shared_ptr<std::vector<std::byte>> bytes;  // that the record refers to
  };

  void collect();
  void collect(WatchedThread& thread);
  void handle(const Arrival& arrival);
  void handle(WatchedThread& thread, const PerfSample& sample);
  void begin_anew();
  void part(WatchedThread& thread);
  void tend(std::uint64_t now_ns);
  void review(std::uint64_t now_ns);
  void review_thread(WatchedThread& thread);
  static void set_part(WatchedThread& thread, double part, double ran_ns);
  void take_turns(std::uint64_t now_ns);
  bool rouse(WatchedThread& thread, std::uint64_t now_ns);
  [[nodiscard]] WatchedThread* thread_of(pid_t tid) const;

  std::optional<OpenEvent> prepare(const WatchedThread& thread, const WatchedPlace& place) override;
  void enable(const OpenEvent& breakpoint, std::uint32_t shots) override;
  std::uint64_t now_ns() override;
  std::uint64_t cpu_ns() override;
  std::uint32_t new_watch() override;
  bool was_store(const PerfSample& trap) override;

  Target target_;
  std::unique_ptr<in_target::AccessFinder> finder_;
  std::unique_ptr<watch_policy::Board> board_;
  watch_policy::Budget budget_;
  Watches watches_;
  Sampling sampling_;
  std::vector<Arrival> arrivals_;
  std::uint64_t spent_cpu_ns_ = 0;  // of the observer's own, what the budget knows
  std::uint64_t maps_due_ns_ = 0, review_due_ns_;
  bool maps_changed_ = true;
  struct {
    std::uint64_t samples = 0, cpu_ns = 0, own_ns = 0;  // at the last review
  } reviewed_;
};

}  // namespace crosstalk::observer
