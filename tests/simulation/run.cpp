// SPDX-License-Identifier: Apache-2.0
// Threads take turns by the start time of their next access. An access lasts for its latency, and has its effect when
// it begins or when it ends; a sample in it is handled at its end, as the access that has just retired.
#include "tests/simulation/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <queue>

#include "base/units.h"
#include "tests/simulation/program.h"
#include "tests/simulation/watching.h"

namespace crosstalk::simulation {
namespace {

/// A counter has run out, but its sampled access is still to come.
struct Late {
  std::uint64_t weight = 0;
  double accesses = 0;  // so many counted ones are passed by
  double due_ns = 0;    // CPU time before which none is taken that begins earlier; 0: any is
};

/// Countdown to the next sample. It goes on counting while the access to be sampled is still to come.
struct Counter {
  double left = 0, period = 0;
  std::optional<Late> late;
};

/// The value of an access for a counting source.
struct Counted {
  double loads = 0, stores = 0, ops = 0;
};

struct Thread {
  std::uint32_t id = 0;             // among all that ever live
  double now_ns = 0;                // when its next access begins
  double cpu_ns = 0;                // CPU time so far
  double tick_ns = 0;               // CPU time at which its clock next runs out
  double last_sample_ns = 0;        // CPU time of its last sample
  double last_latency_ns = 0;       // of `last`
  Access last;                      // being made until now_ns
  Access before;                    // made before that; at first the same
  std::vector<Access> visit;        // the rest of it, the next one last
  bool idle = true;                 // nothing accessed yet
  std::array<Counter, 2> counters;  // of loads or micro-operations, of stores
};

class Simulation {
 public:
  Simulation(const Scenario& scenario, std::uint64_t seed, std::vector<profile::SampleRow> room)
      : scenario_(scenario),
        program_(scenario),
        random_(seed * 2 + 1),
        watching_(scenario.observer, scenario.threads, scenario.word_bytes, seed * 2),
        threads_(scenario.threads),
        lines_(program_.shared_lines(), SharedLine(most_lives(scenario))) {
    run_.samples = std::move(room);
    run_.samples.clear();
  }

  SimulatedRun finish() {
    begin_crew(0);
    for (Thread& thread : threads_) {
      for (std::size_t which = 0; counts() && which < thread.counters.size(); ++which) {
        Counter& counter = thread.counters[which];
        counter.period = draw_period(which);
        counter.left = counter.period * unit(random_);
      }
    }
    for (std::size_t i = 0; goes_by_tick() && i < threads_.size(); ++i) {
      threads_[i].tick_ns = scenario_.observer.period_ns + static_cast<double>(i) * scenario_.observer.tick_skew_ns;
    }
    double now_ns = 0;
    while (now_ns < scenario_.duration_ns) {
      if (turns_.empty()) {
        begin_crew(now_ns);
      }
      const auto [at_ns, next] = turns_.top();
      turns_.pop();
      now_ns = at_ns;
      if (scenario_.life_ns > 0 && threads_[next].cpu_ns >= scenario_.life_ns) {
        watching_.ends(threads_[next].id);
        end_thread(threads_[next], now_ns);
        continue;
      }
      step(next);
      turns_.emplace(threads_[next].now_ns, next);
    }
    watch_pending(now_ns + scenario_.observer.counting.delay_ns);
    watching_.finish(now_ns);
    while (!turns_.empty()) {
      end_thread(threads_[turns_.top().second], now_ns);
      turns_.pop();
    }
    run_.watches = watching_.take_watches();
    run_.traps = watching_.take_traps();
    run_.events = events();
    return std::move(run_);
  }

 private:
  using Turn = std::pair<double, std::uint32_t>;  // when which thread is next: of two at once, the one of less number

  static std::uint32_t most_lives(const Scenario& scenario) {
    const double crews = scenario.life_ns > 0 ? scenario.duration_ns / scenario.life_ns + 2 : 1;
    return scenario.threads * static_cast<std::uint32_t>(crews);
  }

  /// A thread that is not the first of its place stands for a whole period with its first sample, as all do in a
  /// target: the sample comes at a random time of the period.
  void begin_crew(double now_ns) {
    for (std::uint32_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      thread = {};
      thread.id = static_cast<std::uint32_t>(run_.threads.size());
      thread.now_ns = now_ns + unit(random_) * scenario_.latencies.private_ns;
      thread.tick_ns = unit(random_) * scenario_.observer.period_ns;
      thread.last_sample_ns = scenario_.life_ns > 0 ? thread.tick_ns - scenario_.observer.period_ns : 0;
      if (thread.id >= threads_.size()) {
        watching_.begins(thread.id);
      }
      profile::ThreadRow row;
      row.id = ThreadId{thread.id};
      row.tid = static_cast<std::int32_t>(thread.id + 1);
      row.begin_ns = static_cast<std::uint64_t>(thread.now_ns);
      run_.threads.push_back(row);
      turns_.emplace(thread.now_ns, i);
    }
  }

  void end_thread(const Thread& thread, double now_ns) {
    profile::ThreadRow& row = run_.threads[thread.id];
    row.end_ns = static_cast<std::uint64_t>(now_ns);
    row.cpu_ns = static_cast<std::uint64_t>(thread.cpu_ns);
    run_.cpu_s += thread.cpu_ns / ns_per_s;
  }

  [[nodiscard]] bool goes_by_tick() const { return scenario_.observer.tick_skew_ns > 0; }
  [[nodiscard]] double clock_of(const Thread& thread) const { return goes_by_tick() ? thread.now_ns : thread.cpu_ns; }

  void step(std::uint32_t index) {
    Thread& thread = threads_[index];
    watching_.pass(thread.now_ns);
    watch_pending(thread.now_ns);
    const bool at_end = scenario_.latencies.at_end;
    std::uint32_t traps = at_end && !thread.idle ? take_effect(thread) : 0;
    if (counts()) {
      take_counted_samples(index);
    } else if (!thread.idle && clock_of(thread) >= thread.tick_ns) {
      take_sample(index);
    }
    if (thread.visit.empty()) {
      program_.visit(index, random_, thread.visit);
      std::reverse(thread.visit.begin(), thread.visit.end());
    }
    thread.before = thread.idle ? thread.visit.back() : thread.last;
    thread.last = thread.visit.back();
    thread.visit.pop_back();
    thread.idle = false;
    const double latency_ns = draw_latency(thread.id, thread.last);
    thread.last_latency_ns = latency_ns;
    if (!at_end) {
      traps = take_effect(thread);
    }
    thread.cpu_ns += latency_ns;
    thread.now_ns += latency_ns + traps * scenario_.observer.trap_cost_ns;
  }

  /// The duration of an access that begins now.
  double draw_latency(std::uint32_t thread, const Access& access) {
    const Latencies& latencies = scenario_.latencies;
    const double spread = 0.5 + unit(random_);
    if (program_.is_private(access.line)) {
      return latencies.private_ns * spread;
    }
    const SharedLine& line = lines_[access.line];
    const double mean_ns = line.transfer(thread, access)      ? latencies.transfer_ns
                           : line.invalidates(thread, access) ? latencies.invalidation_ns
                                                              : latencies.hit_ns;
    return mean_ns * spread;
  }

  /// Makes the change of a thread's last access to its line; returns the number of watchpoints that fired.
  std::uint32_t take_effect(const Thread& thread) {
    if (!program_.is_private(thread.last.line)) {
      SharedLine& line = lines_[thread.last.line];
      if (const auto transfer = line.transfer(thread.id, thread.last)) {
        Truth& truth = run_.truth[{transfer->producer, thread.id}][transfer->true_sharing ? 1 : 0];
        ++truth.count;
        truth.cost_s += thread.last_latency_ns / ns_per_s;
      }
      line.touch(thread.id, thread.last);
    }
    return watching_.access(thread.id, thread.last, thread.now_ns);
  }

  /// Returns the events as the kernel describes them; a simulated processor takes a cycle a nanosecond.
  [[nodiscard]] std::vector<profile::EventRow> events() const {
    const Counting& counting = scenario_.observer.counting;
    using profile::SourceKind;
    using profile::WeightUnit;
    const auto period = [](double events) { return static_cast<std::uint64_t>(events); };
    switch (scenario_.observer.source) {
      case Source::clock:
        return {};
      case Source::accesses:
        return {{profile::EventId{1}, "loads", SourceKind::pebs, WeightUnit::accesses, period(counting.load_period),
                 static_cast<std::uint32_t>(counting.least_latency_ns), true},
                {profile::EventId{2}, "stores", SourceKind::pebs, WeightUnit::accesses, period(counting.store_period),
                 0, true}};
      case Source::micro_ops:
        break;
    }
    return {{profile::EventId{1}, "ops", SourceKind::ibs, WeightUnit::micro_ops, period(counting.op_period), 0, true}};
  }

  [[nodiscard]] bool counts() const { return scenario_.observer.source != Source::clock; }
  [[nodiscard]] double draw_period(std::size_t which) {
    const Counting& counting = scenario_.observer.counting;
    const double period = scenario_.observer.source == Source::micro_ops ? counting.op_period
                          : which == 0                                   ? counting.load_period
                                                                         : counting.store_period;
    return std::round(period * (1 + scenario_.observer.jitter * (2 * unit(random_) - 1)));
  }

  /// Returns the value of a thread's last access for a counting source.
  [[nodiscard]] Counted counted(const Thread& thread) const {
    const Counting& counting = scenario_.observer.counting;
    Counted what{loads(thread.last.kind) ? 1.0 : 0.0, thread.last.kind == AccessKind::store ? 1.0 : 0.0, 0};
    if (program_.is_private(thread.last.line)) {
      what = {static_cast<double>(counting.private_loads), static_cast<double>(counting.private_stores), 0};
    }
    what.ops = (what.loads + what.stores) * counting.ops_per_access;
    if (!program_.is_private(thread.last.line) && thread.last_latency_ns < counting.least_latency_ns) {
      what.loads = 0;
    }
    if (program_.is_private(thread.last.line) && counting.least_latency_ns > 0) {
      what.loads = 1;  // of its loads, the one that takes the time
    }
    return what;
  }

  void take_counted_samples(std::uint32_t index) {
    Thread& thread = threads_[index];
    if (thread.idle) {
      return;
    }
    const bool by_ops = scenario_.observer.source == Source::micro_ops;
    const Counted what = counted(thread);
    for (std::size_t which = 0; which < (by_ops ? 1 : thread.counters.size()); ++which) {
      Counter& counter = thread.counters[which];
      const double events = by_ops ? what.ops : which == 0 ? what.loads : what.stores;
      take_late_sample(index, which, what, {0, events});
      counter.left -= events;
      while (counter.left <= 0) {
        const double at = events + counter.left;
        counter.late = draw_late(thread, counter, {at, events});
        take_late_sample(index, which, what, {at, events});
        counter.period = draw_period(which);
        counter.left += counter.period;
      }
    }
  }

  /// Events of a thread's last access, which stands for several if it is private: those behind `after`.
  struct Events {
    double after = 0, all = 0;
  };

  [[nodiscard]] Late draw_late(const Thread& thread, const Counter& counter, const Events& events) {
    const Counting& counting = scenario_.observer.counting;
    Late late{static_cast<std::uint64_t>(counter.period), 0, 0};
    if (counting.skid_accesses > 0) {
      late.accesses = std::floor(unit(random_) * (2 * counting.skid_accesses + 1));
    }
    if (counting.skid_ns > 0) {
      const double passed = std::max(0.0, std::ceil(events.after) - 1) / events.all;  // of the access, as it began
      late.due_ns = thread.cpu_ns - thread.last_latency_ns * (1 - passed) + 2 * counting.skid_ns * unit(random_);
    }
    return late;
  }

  /// Takes the sample of a counter that has run out, if its access is among the events.
  void take_late_sample(std::uint32_t index, std::size_t which, const Counted& what, const Events& events) {
    const Thread& thread = threads_[index];
    std::optional<Late>& late = threads_[index].counters.at(which).late;
    if (!late || events.all <= 0) {
      return;
    }
    const double begin_ns = thread.cpu_ns - thread.last_latency_ns;
    const double first_in_time = 1 + std::ceil((late->due_ns - begin_ns) / thread.last_latency_ns * events.all);
    const double sampled = std::max({events.after, first_in_time, events.after + late->accesses});
    if (sampled <= events.all) {
      const std::uint64_t weight = late->weight;
      late.reset();
      // Of the many accesses of a private visit, which begin with a load, only the first one follows another visit's.
      const bool follows = sampled <= 1 && (which == 0 || !program_.is_private(thread.last.line));
      take_counted_sample(index, which, what, weight,
                          follows ? scenario_.observer.counting.mismatch : Mismatch::nothing);
      return;
    }
    late->accesses = std::max(0.0, late->accesses - (events.all - events.after));
  }

  /// The sampled micro-operation may access no memory; in a visit to private data it may load or store.
  void take_counted_sample(std::uint32_t index, std::size_t which, const Counted& what, std::uint64_t weight,
                           Mismatch mismatch) {
    const bool by_ops = scenario_.observer.source == Source::micro_ops;
    const double no_address = scenario_.observer.counting.no_address;
    if (no_address > 0 && unit(random_) < no_address) {
      return;
    }
    profile::SampleRow row = row_of(index, mismatch);
    row.cpu_ns = 0;
    row.from = profile::AddressFrom::next;  // as when watching from outside: the sampled access lies back
    row.measurement.source = by_ops ? profile::SourceKind::ibs : profile::SourceKind::pebs;
    row.measurement.unit = by_ops ? profile::WeightUnit::micro_ops : profile::WeightUnit::accesses;
    row.measurement.weight = weight;
    const double at = unit(random_) * (by_ops ? what.ops : 1);
    if (by_ops && at >= what.loads + what.stores) {
      row.address = row.access_ip = 0;
      row.width = 0;
      row.access = AccessKind::none;
      row.from = profile::AddressFrom::none;
      run_.samples.push_back(row);
      return;
    }
    if (program_.is_private(threads_[index].last.line) && (by_ops ? at >= what.loads : which == 1) &&
        mismatch != Mismatch::instruction) {
      row.access = AccessKind::store;
    }
    pending_.push_back({threads_[index].now_ns + scenario_.observer.counting.delay_ns, row});
    watch_pending(threads_[index].now_ns);
  }

  /// Opens the watches of samples that are due, from outside: their threads go on, but for a probe.
  void watch_pending(double now_ns) {
    while (!pending_.empty() && pending_.front().due_ns <= now_ns) {
      profile::SampleRow row = pending_.front().row;
      pending_.pop_front();
      row.time_ns = static_cast<std::uint64_t>(std::max(now_ns, static_cast<double>(row.time_ns)));
      const double held_ns = watching_.sample(row, earned_ns(row));
      threads_[row.thread.value].now_ns += scenario_.observer.probe ? held_ns : 0;
      run_.samples.push_back(row);
    }
  }

  /// CPU time of the row's thread since its sample before.
  std::uint64_t earned_ns(const profile::SampleRow& row) {
    Thread& thread = threads_[row.thread.value];
    const double since = thread.cpu_ns - thread.last_sample_ns;
    thread.last_sample_ns = thread.cpu_ns;
    return static_cast<std::uint64_t>(since);
  }

  void take_sample(std::uint32_t index) {
    const Observer& observer = scenario_.observer;
    Thread& thread = threads_[index];
    double at_ns = thread.tick_ns;
    while (thread.tick_ns <= clock_of(thread)) {
      at_ns = goes_by_tick() ? thread.cpu_ns : thread.tick_ns;
      thread.tick_ns += observer.period_ns * (1 + observer.jitter * (2 * unit(random_) - 1));
    }
    profile::SampleRow row = row_of(index);
    row.cpu_ns = static_cast<std::uint64_t>(at_ns - thread.last_sample_ns);
    row.from = profile::AddressFrom::retired;
    thread.last_sample_ns = at_ns;
    thread.now_ns += watching_.sample(row, row.cpu_ns);
    run_.samples.push_back(row);
  }

  /// A sample of the thread's last access.
  [[nodiscard]] profile::SampleRow row_of(std::uint32_t index, Mismatch mismatch = Mismatch::nothing) const {
    const Thread& thread = threads_[index];
    const Access& executed = mismatch == Mismatch::instruction ? thread.before : thread.last;
    const Access& located = mismatch == Mismatch::address ? thread.before : thread.last;
    profile::SampleRow row;
    row.thread = ThreadId{thread.id};
    row.time_ns = static_cast<std::uint64_t>(thread.now_ns);
    row.ip = ip_after(executed.kind, scenario_.word_bytes);
    row.access_ip = row.ip - 4;
    row.address = address_of(located.line) + std::uint64_t{located.word} * scenario_.word_bytes;
    row.cpu = static_cast<std::uint16_t>(index);
    row.width = static_cast<std::uint8_t>(scenario_.word_bytes);
    row.access = executed.kind;
    return row;
  }

  const Scenario& scenario_;
  Program program_;
  Random random_;
  Watching watching_;
  std::vector<Thread> threads_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::vector<SharedLine> lines_;
  struct Pending {  // a sample that has not been handled yet
    double due_ns = 0;
    profile::SampleRow row;
  };
  std::deque<Pending> pending_;  // by time
  SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate(const Scenario& scenario, std::uint64_t seed, std::vector<profile::SampleRow> room) {
  return Simulation(scenario, seed, std::move(room)).finish();
}

std::optional<symbolizer::MemoryAccess> simulated_access(attribution::Moment /*moment*/, std::uint64_t ip) {
  for (const AccessKind kind : {AccessKind::load, AccessKind::store, AccessKind::load_store}) {
    for (const std::uint8_t width : {4, 8}) {
      if (ip == ip_after(kind, width)) {
        symbolizer::MemoryAccess access;
        access.kind = kind;
        access.instruction_bytes = 4;
        access.width = width;
        access.base = Register::rax;
        return access;
      }
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::simulation
