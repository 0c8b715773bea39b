// SPDX-License-Identifier: Apache-2.0
// How often threads are sampled from outside: as often as was asked for, or as their part of the budget affords. What
// a sample costs is measured, and the period follows from it at once. So a start, or a spell in which the machine was
// busy with something else, is not paid for by the seconds after it. Pure.
#pragma once

#include <cstdint>

namespace crosstalk::observer {

/// What taking samples has cost since the last review. What goes on without samples is no part of it: reading what is
/// mapped, looking for threads, waking up in vain.
struct SampledSpell {
  std::uint64_t ticks = 0;  // samples of clocks
  double cost_ns = 0;       // of them, and of all that comes as often
};

class SamplePace {
 public:
  /// `wanted_ns`: CPU time between two samples of a thread. `allowed`: the part of it that taking them may take.
  /// `guess_ns`: what a sample costs, as long as few were taken.
  SamplePace(std::uint64_t wanted_ns, double allowed, double guess_ns);

  /// The period from now on.
  std::uint64_t review(const SampledSpell& spell);
  [[nodiscard]] double sample_cost_ns() const { return cost_ns_; }

 private:
  std::uint64_t wanted_ns_;
  double allowed_;
  double cost_ns_;  // of a sample
};

/// What a clock of this period adds to a context switch, where one of 4 ms adds `at_4_ms_ns`.
[[nodiscard]] double switch_price(double at_4_ms_ns, std::uint64_t period_ns);

/// A clock costs a thread something at each context switch. Of one that switches so often that it cannot have a clock
/// all the time, samples come from windows, in which the clock ticks faster: a switch with such a clock costs little
/// more, and a window has some samples.
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

/// CPU time that the samples of a thread stand for. Those from windows stand for the time between as well: each window
/// for all that the thread has run since the last one, so that the sum follows what the kernel says, however late
/// windows begin and end. What a window's samples weigh does not hang on what is seen in it.
class ClockedShare {
 public:
  /// The thread has its clock all the time.
  void keep_clock() { windowed_ = false; }
  /// From now on it has windows, of about so much CPU time.
  void expect_windows(double window_ns);
  /// A window begins; the thread has run for so long since it was met.
  void begin_window(double ran_ns);
  /// It has ended, after so much of its CPU time.
  void end_window(double clocked_ns);
  /// What the sample stands for that comes this much CPU time after the last one.
  double take(double clocked_ns);
  /// That, to the time under the clock.
  [[nodiscard]] double scale() const { return windowed_ && owed_ns_ > 0 ? scale_ : 1; }

 private:
  bool windowed_ = false;
  double window_ns_ = 0;  // mean of the last windows
  double handed_ns_ = 0;  // what all samples so far stand for
  double owed_ns_ = 0;    // of what those of this window are to stand for
  double scale_ = 1;
};

}  // namespace crosstalk::observer
