// SPDX-License-Identifier: Apache-2.0
// Watches processes from outside, from attaching to leaving: no code, no signal, no descriptor and no mapping of ours
// is ever in them. Their samples and watched accesses come through perf rings that this process maps; their memory is
// read through the kernel.
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
#include <mutex>
#include <vector>

#include "base/result.h"
#include "base/zeroed.h"
#include "collectors/access/finder.h"
#include "collectors/observer/counters.h"
#include "collectors/observer/measured_samples.h"
#include "collectors/observer/memory_sampler.h"
#include "collectors/observer/perf_types.h"
#include "collectors/observer/sample_pace.h"
#include "collectors/observer/sampling.h"
#include "collectors/observer/targets.h"
#include "collectors/observer/wait_sampler.h"
#include "collectors/observer/watches.h"

namespace crosstalk::observer {

/// Used by one thread, whose CPU time is charged to the budget.
class Session final : private WatchWorld {
 public:
  /// `registers`: debug registers that a thread can have. `selection`: which processes are watched.
  /// `memory`: events that sample accesses, beside the clocks.
  /// `counters`: groups of hardware counters that are read of each thread.
  Session(ArenaAccess arena, std::uint32_t registers, const Selection& selection, const MemoryEvents& memory,
          CounterGroups counters = {});

  [[nodiscard]] Result<void> begin(const std::vector<pid_t>& pids);
  /// Begins to watch one more process; not_found: it has ended.
  [[nodiscard]] Result<void> take(pid_t pid) { return targets_.take(pid); }
  /// Handles the records that have come. Returns the time from before which it has handled all.
  std::uint64_t pass();
  /// Waits until something comes, `stop` is readable, or it is time for something. Leaves the mutex meanwhile.
  void wait(int stop, std::unique_lock<std::mutex>& held);
  /// True if all of them have ended.
  [[nodiscard]] bool over() const { return targets_.processes().empty(); }
  /// Leaves them. Nothing of them is used afterwards.
  void end();
  /// Returns what went unwatched since forget_told().
  [[nodiscard]] Unwatched unwatched() const;
  [[nodiscard]] CpuTimes cpu_times() const { return targets_.cpu_times(); }
  /// Returns the processes since the last call that were there, and refused.
  [[nodiscard]] std::vector<PassedOver> take_refused() { return targets_.take_refused(); }
  /// Returns the state of hardware counters since forget_told().
  [[nodiscard]] CounterTally counted() const { return counters_.tally().since(told_counted_); }
  /// Returns the state of memory events' samples since forget_told().
  [[nodiscard]] MeasuredSamples measured() const;
  /// Returns the threads since forget_told() whose waits are not known.
  [[nodiscard]] const UnknownWaits& unknown_waits() const { return waits_.unknown(); }
  /// Notes that all of these have been told. Facts that last are told again.
  void forget_told();

 private:
  struct Arrival {
    std::uint64_t time_ns = 0;
    pid_t tid = 0;
    PerfRecord record;
    std::shared_ptr<std::vector<std::byte>> bytes;   // that the record refers to
    const collectors::MemoryEvent* event = nullptr;  // of a sampled access, which stands for `weight`
    std::uint64_t weight = 0;
  };
  using Rings = std::vector<MemorySampler::Ring>;

  struct Awaited {  // by wait()
    const Target* process = nullptr;
    pid_t tid = 0;  // 0: the process's end; else something of a thread
  };

  void collect();
  void collect(WatchedThread& thread);
  void collect(MemorySampler& sampler, pid_t tid);
  void collect(ModuleSampler& sampler, pid_t tid);
  std::uint64_t parse(const std::shared_ptr<std::vector<std::byte>>& bytes, const SampleLayout& layout, pid_t tid,
                      MemorySampler* sampler);
  void handle(const Arrival& arrival);
  void handle(WatchedThread& thread, const Arrival& arrival, const PerfSample& sample);
  void begin_on_processors();
  void keep_pace(std::uint64_t now_ns);
  void begin_anew(Target& process);
  void leave_if_stranger(Target& process);
  void let_go(const Target& process);
  void part(WatchedThread& thread, std::uint64_t exit_ns);
  void account_memory(WatchedThread& thread);
  void close_events(WatchedThread& thread);
  void tend(std::uint64_t now_ns);
  void review(std::uint64_t now_ns);
  void review_thread(WatchedThread& thread, double passed_ns);
  void begin_with_rests();
  [[nodiscard]] ClockWindows windows_by_past(const WatchedThread& thread) const;
  void review_turns();
  void set_windows(WatchedThread& thread, const ClockWindows& windows, double ran_ns, double passed_ns);
  static void set_period(WatchedThread& thread, std::uint64_t period_ns);
  std::uint64_t spend_own();
  void review_shares();
  [[nodiscard]] double budget_now() const;
  void take_turn(WatchedThread& thread, std::uint64_t now_ns);
  void take_last_samples(WatchedThread& thread);
  void take_turns(std::uint64_t now_ns);
  bool rouse(WatchedThread& thread, std::uint64_t now_ns);
  std::uint64_t note_cpu_time(WatchedThread& thread);
  void look_at_brief(std::uint64_t now_ns);
  void expect_end_of(const WatchedThread& thread);
  void notice(const Awaited& awaited, unsigned events);
  void expect_end(const Target& process, std::uint64_t now_ns);

  std::optional<OpenEvent> prepare(const WatchedThread& thread, const WatchedPlace& place) override;
  void enable(const OpenEvent& breakpoint, std::uint32_t shots) override;
  std::uint64_t now_ns() override;
  std::uint64_t cpu_ns() override;
  std::uint32_t new_watch() override;
  bool was_store(const WatchedThread& thread, const PerfSample& trap) override;

  MemoryEvents thread_events_, processor_events_;  // as the kernel takes them
  std::vector<MemorySampler> processors_;
  MeasuredSamples measured_;
  Counters counters_;
  CounterTally told_counted_;
  std::uint64_t random_;
  Targets targets_;
  Zeroed<in_target::AccessFinder> finder_;
  watch_policy::Budget budget_;
  Watches watches_;
  Sampling sampling_;
  WaitSampler waits_;
  std::vector<Arrival> arrivals_;
  std::uint64_t spent_cpu_ns_ = 0;  // the observer's own CPU time that the budget includes
  SamplePace pace_;
  Turns turns_;                // of threads that rest
  SampledSpell spell_;         // since the last review
  double upkeep_ns_ = 0;       // the observer's CPU time without samples and watches, since the last review
  double ran_ns_ = 0;          // the threads' CPU time since then
  double busy_ = 1;            // processors that the threads used between the last two reviews, 0.1..1
  double upkeep_ = 0;          // mean part of the budget for upkeep
  std::uint64_t samples_ = 0;  // of all kinds, at the last review
  std::uint64_t begin_ns_;
  std::uint64_t review_due_ns_;
  std::uint64_t look_due_ns_ = 0;  // at brief and resting threads
  std::uint64_t reviewed_ns_;      // time of the last review
  bool rested_ = false;            // a thread has
};

}  // namespace crosstalk::observer
