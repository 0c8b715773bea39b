// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/line_prober.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include "base/clock.h"
#include "base/number.h"
#include "base/proc_fields.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "collectors/observer/target.h"
#include "collectors/watch_policy/probing.h"

namespace crosstalk::observer {
namespace {

using watch_policy::TwoLooks;

/// While it lives, the calling thread runs on one processor, if that is one of those that it was given (taskset).
class ProcessorStay {
 public:
  explicit ProcessorStay(int cpu) {
    const auto number = static_cast<std::size_t>(cpu);
    if (cpu < 0 || cpu >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof before_, &before_) != 0 ||
        !CPU_ISSET(number, &before_)) {
      return;
    }
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(number, &there);
    here_ = ::sched_setaffinity(0, sizeof there, &there) == 0;
  }
  ~ProcessorStay() {
    if (here_) {
      (void)::sched_setaffinity(0, sizeof before_, &before_);
    }
  }
  ProcessorStay(const ProcessorStay&) = delete;
  ProcessorStay& operator=(const ProcessorStay&) = delete;
  [[nodiscard]] bool here() const { return here_; }

 private:
  cpu_set_t before_{};
  bool here_ = false;
};

/// True if the thread waits for the processor that the caller runs on. `folder`: of the thread, in /proc.
bool waits_here(const std::string& folder, int cpu) {
  const auto place = thread_place(file_text(folder + "/stat"));
  return place && place->state == 'R' && place->cpu == cpu && ::sched_getcpu() == cpu;
}

/// True if the page of `address` is in memory. Else reading might wait for whoever serves it, and the program never
/// asked for it.
bool is_present(pid_t pid, std::uint64_t address) {
  constexpr std::uint64_t page_bytes = 4096;
  constexpr std::uint64_t present = std::uint64_t{1} << 63U;  // Documentation/admin-guide/mm/pagemap.rst
  std::uint64_t entry = 0;
  const UniqueFd pages(::open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  return pages.valid() &&
         ::pread(pages.get(), &entry, sizeof entry, static_cast<off_t>(address / page_bytes * sizeof entry)) ==
             static_cast<ssize_t>(sizeof entry) &&
         (entry & present) != 0;
}

std::nullopt_t nothing(std::atomic<std::uint64_t>& reason) {
  reason.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace

std::optional<TwoLooks> look_twice(const TargetMemory& memory, pid_t tid, int cpu, std::uint64_t line,
                                   std::uint32_t gap_ns, profile::ProbeCounts& skipped) {
  const pid_t pid = memory.pid();
  if (!is_present(pid, line)) {
    return nothing(skipped.unreadable);
  }
  const std::string folder = folder_of_thread(pid, tid);
  const ProcessorStay stay(cpu);
  const auto runs = stay.here() ? thread_runs(file_text(folder + "/schedstat")) : std::nullopt;
  if (!runs || !waits_here(folder, cpu)) {
    return nothing(skipped.went_on);
  }
  const auto read = [&](watch_policy::LineWords& words) { return memory.read(line, words.data(), sizeof words); };
  const auto looks = watch_policy::look_twice(read, monotonic_ns, gap_ns);
  if (!looks) {
    return nothing(skipped.unreadable);
  }
  return thread_runs(file_text(folder + "/schedstat")) == runs ? looks : nothing(skipped.went_on);
}

std::optional<ThreadPlace> thread_place(std::string_view stat) {
  constexpr int state_field = 3;
  constexpr int processor_field = 39;
  const std::string_view state = stat_field(stat, state_field);
  const std::string_view cpu = stat_field(stat, processor_field);
  ThreadPlace place;
  place.cpu = leading_number<int>(cpu).value_or(-1);
  if (state.empty() || place.cpu < 0) {
    return std::nullopt;
  }
  place.state = state.front();
  return place;
}

std::optional<ThreadRuns> thread_runs(std::string_view schedstat) {
  const auto counts = schedule_counts(schedstat);
  return counts ? std::optional(ThreadRuns{counts->ran_ns, counts->turns}) : std::nullopt;
}

std::uint32_t LineProber::probe(WatchedThread& thread, const collectors::Observation& seen, bool suspected) {
  const watch_policy::ProbePlan plan = watch_policy::plan_probe(next_random(thread.random));
  if (!plan.wanted || !budget_.affords(mean_cost_ns_, false)) {
    return 0;
  }
  const std::uint64_t cpu_before_ns = thread_cpu_ns();
  const std::uint64_t line = seen.address & ~(std::uint64_t{profile::cache_line} - 1);
  const auto looks = look_twice(thread.process->memory(), thread.tid, seen.cpu, line, plan.gap_ns, arena_.probe_counts);
  std::uint32_t id = 0;
  if (looks) {
    profile::LineProbe record = watch_policy::record_of(*looks, seen.time_ns, seen.address);
    id = arena_.next_watch.fetch_add(1, std::memory_order_relaxed) + 1;
    record.watch = id;
    record.threads = static_cast<std::uint32_t>(thread.process->threads().size());
    record.suspected = suspected ? 1 : 0;
    thread.records->write(record);
  }
  // The thread has lost its processor for no longer than that. Our runner spends our own CPU time.
  const std::uint64_t took_ns = thread_cpu_ns() - cpu_before_ns;
  own_ns_ += took_ns;
  budget_.spend(took_ns);
  thread.records->slot().handlers_ns.fetch_add(took_ns, std::memory_order_relaxed);
  mean_cost_ns_ = watch_policy::mean_with(mean_cost_ns_, 2 * took_ns);
  return id;
}

}  // namespace crosstalk::observer
