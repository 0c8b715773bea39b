// SPDX-License-Identifier: Apache-2.0
// Each thread goes from phase to phase: work, load. Stores are drawn when someone looks: at a load, or at a probe's
// looks. The handlers of one tick are put in order first, by the rules of look_twice().
#include "tests/simulation/probing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/probing.h"
#include "collectors/watch_policy/selection.h"
#include "tests/simulation/program.h"
#include "tests/simulation/watching.h"

namespace crosstalk::simulation {
namespace {

constexpr double entry_ns = 3000;                        // from the interruption to the first look
constexpr double handler_ns = 5000;                      // in all, without looks
constexpr double look_ns = 700;                          // from one look to the next one, apart from the drawn gap
constexpr double look_error_ns = 100;                    // of the time between them, to both sides
constexpr double longest_wait_ns = 20'000;               // for other handlers
constexpr double together_ns = 60'000;                   // handlers that may meet
constexpr double own_stores = 0.1;                       // share of working time that goes into stores
constexpr std::uint32_t first_private_line = 1U << 16U;  // on another page
constexpr std::uint32_t private_lines = 4;
constexpr std::uint32_t stored_word = 3;  // if it is not the loaded one, which is 0
constexpr double never = std::numeric_limits<double>::infinity();

double exponential(Random& random, double mean) { return -mean * std::log1p(-unit(random)); }

/// The stores to one line, in the time of the thread that makes them.
class Stores {
 public:
  Stores(const ProbedProgram& program, Random& random) : program_(&program) {
    switch (program.rhythm) {
      case Rhythm::regular:
        left_ns_ = unit(random) * program.interval_ns;
        break;
      case Rhythm::exponential:
        left_ns_ = exponential(random, program.interval_ns);
        break;
      case Rhythm::bursts:
        active_ = unit(random) < program.duty;
        phase_ns_ = phase(random);
        left_ns_ = exponential(random, program.interval_ns);
        break;
      case Rhythm::never:
      case Rhythm::in_turn:
        break;
    }
  }

  struct Outcome {
    bool stored = false, changed = false;
  };
  /// What happens while the storing thread goes on for so long.
  Outcome pass(double ns, Random& random) {
    if (program_->rhythm != Rhythm::bursts) {
      return store(ns, random);
    }
    Outcome all;
    while (ns > 0) {
      const double step = std::min(ns, phase_ns_);
      const Outcome one = active_ ? store(step, random) : Outcome{};
      all = {all.stored || one.stored, all.changed || one.changed};
      ns -= step;
      phase_ns_ -= step;
      if (phase_ns_ <= 0) {
        active_ = !active_;
        phase_ns_ = phase(random);
      }
    }
    return all;
  }

  /// The storing thread has its turn.
  void begin_turn(Random& random) { left_ns_ = program_->interval_ns * (0.5 + unit(random)); }
  /// Until the next store; infinite: there is none.
  [[nodiscard]] double left_ns() const { return left_ns_; }

 private:
  Outcome store(double ns, Random& random) {
    if (left_ns_ > ns) {
      left_ns_ -= ns;
      return {};
    }
    const double rest = ns - left_ns_;
    const double silent = program_->silent;
    double all_silent = silent;  // the chance that all stores since are
    if (program_->rhythm == Rhythm::regular) {
      const double stores = 1 + std::floor(rest / program_->interval_ns);
      left_ns_ = stores * program_->interval_ns - rest;
      all_silent = silent > 0 ? std::pow(silent, stores) : 0;
    } else if (program_->rhythm == Rhythm::in_turn) {
      left_ns_ = never;
    } else {
      left_ns_ = exponential(random, program_->interval_ns);
      all_silent *= std::exp(-rest / program_->interval_ns * (1 - silent));
    }
    return {true, silent <= 0 || unit(random) >= all_silent};
  }
  double phase(Random& random) const {
    const double idle_ns = program_->burst_ns * (1 - program_->duty) / program_->duty;
    return exponential(random, active_ ? program_->burst_ns : idle_ns);
  }

  const ProbedProgram* program_;
  double left_ns_ = never;
  bool active_ = true;
  double phase_ns_ = 0;
};

struct StoredLine {
  Stores stores;
  double at_ns = 0;         // stores are known until then
  std::uint64_t value = 0;  // of the stored word
  bool stored = false;      // since it was loaded last
};

struct Handler {
  std::uint32_t thread = 0;
  double begin_ns = 0, end_ns = 0;
  std::uint32_t line = 0;  // the sampled one
  AccessKind access = AccessKind::load;
  watch_policy::ProbePlan plan;
  double first_ns = 0, second_ns = 0;  // the looks; 0: there are none
};

struct ProbedThread {
  double end_ns = 0;  // of the phase
  bool works = true;
  std::uint32_t line = 0;  // of a load
  double tick_ns = 0;
  double last_cpu_ns = 0;            // since when no sample has represented its time
  double handled_ns = 0;             // in handlers
  double from_ns = 0, until_ns = 0;  // its last handler
  std::uint64_t policy_random = 1;
};

class Probing {
 public:
  Probing(const ProbedProgram& program, std::uint64_t seed)
      : program_(program), random_(seed), threads_(program.threads) {
    for (std::uint32_t i = 0; i < program.threads; ++i) {
      ProbedThread& thread = threads_[i];
      thread.end_ns = some(program.work_ns);
      thread.tick_ns = unit(random_) * program.period_ns;
      thread.policy_random = random_() | 1U;
      for (std::uint32_t line = 0; line < program.lines; ++line) {
        lines_.push_back({Stores(program, random_)});
      }
    }
  }

  SimulatedRun finish() {
    while (true) {
      if (program_.lockstep) {
        tick_together();
      }
      const double first_ns = std::min_element(threads_.begin(), threads_.end(), [](const auto& a, const auto& b) {
                                return a.tick_ns < b.tick_ns;
                              })->tick_ns;
      if (first_ns >= program_.duration_ns) {
        break;
      }
      handle(first_ns + together_ns);
    }
    for (std::uint32_t i = 0; i < threads_.size(); ++i) {
      advance(i, program_.duration_ns);
      profile::ThreadRow row;
      row.id = ThreadId{i};
      row.tid = static_cast<std::int32_t>(i + 1);
      row.end_ns = static_cast<std::uint64_t>(program_.duration_ns);
      row.cpu_ns = row.end_ns;
      run_.threads.push_back(row);
      run_.cpu_s += (program_.duration_ns - threads_[i].handled_ns) / ns_per_s;
    }
    return std::move(run_);
  }

 private:
  double some(double mean_ns) { return mean_ns * (0.5 + unit(random_)); }
  [[nodiscard]] std::uint32_t producer_of(std::uint32_t thread) const {
    return (thread + program_.threads - 1) % program_.threads;
  }
  [[nodiscard]] std::uint32_t private_line(std::uint32_t thread) {
    return first_private_line + thread * 64 + below(random_, private_lines);
  }
  /// A thread that stores to a line itself stands still: nobody does.
  [[nodiscard]] bool sees_stores(const Handler& handler) const {
    return handler.line < lines_.size() && handler.access == AccessKind::load;
  }

  /// Goes on to `to_ns` with the stores to a line, but for the time of its storing thread's handler. `pace`: of the
  /// storing thread.
  void pass(std::uint32_t line, double to_ns, double pace) {
    StoredLine& l = lines_[line];
    if (to_ns <= l.at_ns) {
      return;
    }
    const ProbedThread& producer = threads_[producer_of(line / program_.lines)];
    const double stood_ns = std::min(to_ns, producer.until_ns) - std::max(l.at_ns, producer.from_ns);
    const auto outcome = l.stores.pass((to_ns - l.at_ns - std::max(0.0, stood_ns)) * pace, random_);
    l.at_ns = to_ns;
    l.stored = l.stored || outcome.stored;
    l.value += outcome.changed ? 1 : 0;
  }

  void charge(std::uint32_t thread, double ns) {
    Truth& truth = run_.truth[{producer_of(thread), thread}][program_.other_word ? 0 : 1];
    truth.cost_s += ns / ns_per_s;
  }

  /// Goes on with a thread's phases, up to the one that lasts at `until_ns`.
  void advance(std::uint32_t index, double until_ns) {
    ProbedThread& thread = threads_[index];
    while (thread.end_ns <= until_ns) {
      if (thread.works) {
        begin_load(index);
      } else {
        thread.end_ns += some(program_.work_ns);
      }
      thread.works = !thread.works;
    }
  }

  void begin_load(std::uint32_t index) {
    ProbedThread& thread = threads_[index];
    const double now_ns = thread.end_ns;
    thread.line = index * program_.lines + below(random_, program_.lines);
    pass(thread.line, now_ns, 1);
    StoredLine& line = lines_[thread.line];
    const bool waits = program_.rhythm == Rhythm::in_turn;
    if (waits) {
      line.stores.begin_turn(random_);
      thread.end_ns += line.stores.left_ns() + some(program_.transfer_ns);
    } else {
      thread.end_ns += some(line.stored ? program_.transfer_ns : program_.hit_ns);
    }
    if (waits || line.stored) {
      ++run_.truth[{producer_of(index), index}][program_.other_word ? 0 : 1].count;
      charge(index, thread.end_ns - now_ns);
    }
    line.stored = false;
  }

  /// The next tick of all threads, a microsecond apart.
  void tick_together() {
    std::vector<std::uint32_t> order(threads_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      std::swap(order[i], order[below(random_, i + 1)]);
    }
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      threads_[order[i]].tick_ns = threads_[order[0]].tick_ns + i * 1000;
    }
  }

  /// All handlers of ticks before `until_ns`.
  void handle(double until_ns) {
    std::vector<Handler> handlers;
    const double step_ns = some_period();
    for (std::uint32_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i].tick_ns < until_ns) {
        handlers.push_back(interrupt(i));
        threads_[i].tick_ns += program_.lockstep ? step_ns : some_period();
      }
    }
    std::sort(handlers.begin(), handlers.end(),
              [](const Handler& a, const Handler& b) { return a.begin_ns < b.begin_ns; });
    put_in_order(handlers);
    for (const Handler& handler : handlers) {
      threads_[handler.thread].from_ns = handler.begin_ns;
      threads_[handler.thread].until_ns = handler.end_ns;
    }
    for (const Handler& handler : handlers) {
      take_sample(handler);
    }
  }
  double some_period() { return program_.period_ns * (1 + program_.jitter * (2 * unit(random_) - 1)); }

  /// A thread goes on to its tick. A load that waits in a loop is interrupted at once, another one when it has retired.
  Handler interrupt(std::uint32_t index) {
    ProbedThread& thread = threads_[index];
    advance(index, thread.tick_ns);
    Handler handler;
    handler.thread = index;
    handler.begin_ns = thread.tick_ns;
    if (!thread.works) {
      handler.line = thread.line;
      if (program_.rhythm != Rhythm::in_turn) {
        handler.begin_ns = thread.end_ns;
        advance(index, thread.end_ns);
      }
    } else if (unit(random_) < own_stores) {
      const std::uint32_t next = (index + 1) % program_.threads;
      handler.line = next * program_.lines + below(random_, program_.lines);
      handler.access = AccessKind::store;
    } else {
      handler.line = private_line(index);
    }
    handler.plan = watch_policy::plan_probe(next_random(thread.policy_random));
    handler.end_ns = handler.begin_ns + handler_ns;
    return handler;
  }

  static const Handler* other_at(std::span<const Handler> handlers, const Handler& self, double at_ns) {
    for (const Handler& other : handlers) {
      if (&other != &self && other.begin_ns <= at_ns && at_ns < other.end_ns) {
        return &other;
      }
    }
    return nullptr;
  }

  /// Decides who looks when, by the rules of look_twice(). A thread that finds another one probing leaves at once.
  void put_in_order(std::span<Handler> handlers) const {
    double locked_ns = 0;
    for (Handler& handler : handlers) {
      double at_ns = handler.begin_ns + entry_ns;
      const double limit_ns = at_ns + longest_wait_ns;
      if (!handler.plan.wanted || at_ns < locked_ns) {
        continue;
      }
      for (const Handler* other = nullptr;
           at_ns < limit_ns && (other = other_at(handlers, handler, at_ns)) != nullptr;) {
        at_ns = other->end_ns;
      }
      if (at_ns < limit_ns) {
        handler.first_ns = at_ns;
        at_ns += look_ns + handler.plan.gap_ns * program_.gap_factor;
        handler.second_ns = other_at(handlers, handler, at_ns) == nullptr ? at_ns : 0;
      }
      locked_ns = at_ns + look_ns;
      handler.end_ns = locked_ns + handler_ns - entry_ns;
    }
  }

  void take_sample(const Handler& handler) {
    ProbedThread& thread = threads_[handler.thread];
    profile::SampleRow row = row_of(handler);
    const double probed_ns = handler.end_ns - handler.begin_ns - handler_ns;
    thread.last_cpu_ns = handler.begin_ns + probed_ns;
    thread.handled_ns += handler.end_ns - handler.begin_ns;
    if (sees_stores(handler)) {
      pass(handler.line, handler.begin_ns, 1);
      if (program_.rhythm == Rhythm::in_turn) {
        row.registers.emplace();
        row.registers->value[static_cast<std::size_t>(Register::rax)] = loaded(handler.line);
      }
    }
    const bool suspected = is_suspected(row);
    row.flags = static_cast<std::uint8_t>(profile::sample_eligible | (suspected ? profile::sample_suspected : 0));
    if (handler.second_ns > 0) {
      row.watch = WatchId{static_cast<std::uint32_t>(run_.watches.size() + 1)};
      row.flags |= profile::sample_armed;
      write_watch(row, probe(handler), suspected);
    }
    resume(handler);
    run_.samples.push_back(row);
  }

  /// The word that is loaded, which others store to if it is the stored one.
  [[nodiscard]] std::uint64_t loaded(std::uint32_t line) const { return program_.other_word ? 0 : lines_[line].value; }

  profile::ProbedLine probe(const Handler& handler) {
    profile::ProbedLine probe;
    const double error_ns = look_error_ns * (2 * unit(random_) - 1);
    probe.gap_ns = static_cast<std::uint32_t>(handler.second_ns - handler.first_ns + error_ns);
    probe.value_bytes = word_bytes;
    if (sees_stores(handler)) {
      pass(handler.line, handler.first_ns, program_.speed_up);
      const std::uint64_t before = lines_[handler.line].value;
      probe.value = loaded(handler.line);
      pass(handler.line, handler.second_ns, program_.speed_up);
      const bool changed = lines_[handler.line].value != before;
      probe.changed = changed ? std::uint64_t{1} << (program_.other_word ? stored_word * word_bytes : 0) : 0;
    }
    return probe;
  }

  /// Goes on after the handler.
  void resume(const Handler& handler) {
    ProbedThread& thread = threads_[handler.thread];
    const double before_ns = thread.end_ns;
    if (program_.rhythm == Rhythm::in_turn && !thread.works) {
      pass(thread.line, handler.end_ns, program_.speed_up);
      const double left_ns = lines_[thread.line].stores.left_ns();
      thread.end_ns = handler.end_ns + (left_ns < never ? left_ns : 0) + some(program_.transfer_ns);
      charge(handler.thread, thread.end_ns - handler.end_ns - (before_ns - handler.begin_ns));
    } else {
      thread.end_ns += handler.end_ns - handler.begin_ns;
    }
  }

  bool is_suspected(const profile::SampleRow& row) {
    const auto now_ms = static_cast<std::uint32_t>(row.time_ns / 1'000'000);
    const std::uint64_t offset = row.address % profile::cache_line;
    return watch_policy::is_suspected(
        board_->publish(row.address - offset, {static_cast<std::uint16_t>(row.thread.value + 1),
                                               static_cast<std::uint8_t>(offset), row.width, row.access, now_ms}),
        now_ms);
  }

  [[nodiscard]] profile::SampleRow row_of(const Handler& handler) const {
    profile::SampleRow row;
    row.thread = ThreadId{handler.thread};
    row.time_ns = static_cast<std::uint64_t>(handler.begin_ns);
    row.ip = ip_after(handler.access, word_bytes);
    row.access_ip = row.ip - 4;
    row.address = address_of(handler.line);
    row.address += handler.access == AccessKind::store && program_.other_word ? stored_word * word_bytes : 0;
    row.cpu_ns = static_cast<std::uint64_t>(handler.begin_ns - threads_[handler.thread].last_cpu_ns);
    row.cpu = static_cast<std::uint16_t>(handler.thread);
    row.width = word_bytes;
    row.access = handler.access;
    row.from = profile::AddressFrom::retired;
    return row;
  }

  /// As the recorder makes it (daemon/watch_joiner.cpp).
  void write_watch(const profile::SampleRow& row, const profile::ProbedLine& probe, bool suspected) {
    profile::WatchRow watch;
    watch.id = row.watch;
    watch.thread = row.thread;
    watch.time_ns = row.time_ns;
    watch.line = row.address - row.address % profile::cache_line;
    watch.threads = program_.threads;
    watch.armed = program_.threads - 1;
    watch.suspected = suspected;
    watch.probe = probe;
    watch.close = profile::CloseReason::horizon;
    watch.close_ns = row.time_ns + probe.gap_ns;
    watch.sample_ip = row.ip;
    watch.sample_access_ip = row.access_ip;
    watch.sample_address = row.address;
    watch.sample_cpu_ns = row.cpu_ns;
    watch.sample_width = row.width;
    watch.sample_access = row.access;
    watch.sample_from = row.from;
    watch.sample_flags = row.flags;
    watch.sample_cpu = row.cpu;
    run_.watches.push_back(watch);
  }

  const ProbedProgram& program_;
  Random random_;
  std::vector<ProbedThread> threads_;
  std::vector<StoredLine> lines_;  // those that thread 0 loads, then those of thread 1, ...
  std::unique_ptr<watch_policy::Board> board_ = std::make_unique<watch_policy::Board>();
  SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate(const ProbedProgram& program, std::uint64_t seed) { return Probing(program, seed).finish(); }

std::optional<attribution::LoadedValue> SimulatedCode::last_loaded(const profile::SampleRow& sample) {
  if (!sample.registers) {
    return std::nullopt;
  }
  return attribution::LoadedValue{(*sample.registers)[Register::rax], word_bytes};
}

}  // namespace crosstalk::simulation
