// SPDX-License-Identifier: Apache-2.0
// Decides how often threads are sampled from outside: as often as was asked for, or as their part of the budget
// affords. The cost of a sample is measured, and the period follows from it at once. So the seconds after a start, or
// after a time in which the machine was busy with something else, do not pay for it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::observer {

/// The cost of taking samples since the last review, without work that goes on without samples: reading mappings,
/// looking for threads, waking up in vain.
struct SampledSpell {
  std::uint64_t ticks = 0;  // samples of clocks
  double cost_ns = 0;       // of them, and of all that comes as often
};

/// Returns the part of the budget for samples, with what their clocks cost at context switches: half of it at most.
/// `upkeep` is the part that goes on without samples. If both leave watches less than a quarter, samples give up what
/// is missing. If samples would then keep less than a tenth, they get half all the same.
[[nodiscard]] double share_for_samples(double upkeep);
/// The part of it that taking samples may take; the rest is for clocks.
inline constexpr double of_samples = 0.7;

class SamplePace {
 public:
  /// `wanted_ns`: CPU time between two samples of a thread. `allowed`: the part of it that taking them may take.
  /// `guess_ns`: the cost of a sample, as long as few were taken.
  SamplePace(std::uint64_t wanted_ns, double allowed, double guess_ns);

  void allow(double part) { allowed_ = part; }
  /// Returns the period from now on.
  std::uint64_t review(const SampledSpell& spell);
  [[nodiscard]] double sample_cost_ns() const { return cost_ns_; }

 private:
  std::uint64_t wanted_ns_;
  double allowed_;
  double cost_ns_;  // of a sample
};

/// Returns the cost that a clock of this period adds to a context switch, if one of 4 ms adds `at_4_ms_ns`.
[[nodiscard]] double switch_price(double at_4_ms_ns, std::uint64_t period_ns);

/// A clock costs a thread time at each context switch. A thread that switches too often to have a clock all the time is
/// sampled in windows, in which the clock ticks faster: a switch with such a clock costs little more, and a window has
/// some samples.
inline constexpr double least_part = 1 / 512.0;
struct ClockWindows {
  double part = 1;              // of the time in which the thread has a clock; 1: all of it
  std::uint64_t period_ns = 0;  // of the clock
};
struct ClockCosts {
  double sample_ns = 0;        // of a sample
  double switch_ns = 0;        // of a context switch, with a clock of 4 ms
  double switches_per_ns = 0;  // of the thread's CPU time
};
/// `period_ns`: of a thread that has its clock all the time. `allowed`: the part of its CPU time that a clock may take.
[[nodiscard]] ClockWindows clock_windows(const ClockCosts& cost, std::uint64_t period_ns, double allowed);

/// How often threads that rest have their turns. To rouse a thread takes the observer as long as some samples do, so
/// all turns together may take a fixed part of the budget of one processor: many threads have longer cycles.
class Turns {
 public:
  explicit Turns(double budget);
  /// One begins.
  void begin() { ++count_; }
  /// The observer's CPU time for turns.
  void charge(std::uint64_t ns) { spent_ns_ += static_cast<double>(ns); }
  /// Sets the cycle from now on. `resting`: threads that take turns. `busy`: processors that all threads use, at
  /// most 1.
  void review(std::size_t resting, double busy);
  /// From one turn of a thread to its next, 0.2 to 2 s.
  [[nodiscard]] double cycle_ns() const { return cycle_ns_; }

 private:
  double budget_;
  double usual_ns_, cycle_ns_;
  double cost_ns_ = 100'000;  // of a turn
  std::uint64_t count_ = 0;   // since the last review
  double spent_ns_ = 0;
};

/// The CPU time that the samples of a thread stand for. Samples from windows stand for the time between as well: each
/// window for all that the thread has run since the last one. So the sum follows the kernel's accounts, however late
/// windows begin and end, and the weight of a window's samples does not depend on their contents.
class ClockedShare {
 public:
  /// The thread has its clock all the time.
  void keep_clock() { windowed_ = false; }
  /// Begins to use windows, of about so much CPU time.
  void expect_windows(double window_ns);
  /// Begins a window; `ran_ns`: the thread's CPU time since it was found.
  void begin_window(double ran_ns);
  /// Ends the window, after so much of the thread's CPU time.
  void end_window(double clocked_ns);
  /// Returns the CPU time that a sample stands for, `clocked_ns` of CPU time after the previous one. A sample that is
  /// late because the recorder had to wait stands for at most that and what the window's samples still owe.
  double take(double clocked_ns);
  /// Returns the factor from time under the clock to the time that samples stand for.
  [[nodiscard]] double scale() const { return windowed_ && owed_ns_ > 0 ? scale_ : 1; }

 private:
  bool windowed_ = false;
  double window_ns_ = 0;  // mean of the last windows
  double handed_ns_ = 0;  // time that all samples so far stand for
  double owed_ns_ = 0;    // time that the rest of this window's samples stand for
  double scale_ = 1;
};

}  // namespace crosstalk::observer
