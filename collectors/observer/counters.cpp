// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/counters.h"

#include <utility>

namespace crosstalk::observer {

/// A thread that is gone has nothing to count.
void Counters::open(WatchedThread& thread) {
  thread.counters_tried = true;
  Result<CounterReader> reader = CounterReader::open(groups_, thread.tid, ++lives_, thread.random);
  if (reader) {
    thread.counters.emplace(std::move(*reader));
    thread.counters->enable();
  } else if (reader.error().code != ErrorCode::not_found) {
    ++tally_.without;
    tally_.refusal = reader.error().message;
  }
}

std::uint64_t Counters::drain(WatchedThread& thread, std::uint64_t cost_ns) {
  const std::uint64_t charged_ns = thread.counters->drain(*thread.records, tally_) * cost_ns;
  thread.records->slot().handlers_ns.fetch_add(charged_ns, std::memory_order_relaxed);
  return charged_ns;
}

void Counters::close(WatchedThread& thread, std::uint64_t cost_ns) {
  if (thread.counters) {
    (void)drain(thread, cost_ns);
    thread.counters->account(tally_);
    thread.counters.reset();
  }
}

/// If groups take turns, some readings fall into a turn, so that most pairs of them have no gap in between.
std::uint64_t Counters::interval_ns(std::uint64_t period_ns) const {
  constexpr std::uint64_t readings_of_a_turn = 3;
  return groups_.size() > 1 ? period_ns / readings_of_a_turn : period_ns;
}

void Counters::tend(const Targets& targets, watch_policy::Budget& budget, std::uint64_t now_ns) {
  if (groups_.empty()) {
    return;
  }
  // An interrupt that writes neither registers nor stack takes less; how much less was not measured.
  const std::uint64_t cost_ns = targets.arena().config.perf_sample_cost_ns;
  for (const auto& process : targets.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->rests()) {
        close(*thread, cost_ns);
        thread->counters_tried = false;
        continue;
      }
      if (!thread->counters_tried) {
        open(*thread);
      }
      if (thread->counters) {
        budget.spend(drain(*thread, cost_ns));
        thread->counters->keep_pace(now_ns, interval_ns(targets.period_ns()), thread->random);
      }
    }
  }
}

}  // namespace crosstalk::observer
