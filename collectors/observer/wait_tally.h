// SPDX-License-Identifier: Apache-2.0
// Adds up the sleep that looks at a thread, at moments drawn by chance, have found: by place for waits on futexes, and
// in total. A look stands for the time since the look before. If the thread has not run in between, that is
// certain; else it is a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collectors/observer/sleeping_call.h"

namespace crosstalk::observer {

struct Looks {
  std::uint64_t looked_ns = 0;
  double square_ns2 = 0;  // sum of the squares of the times of looks that are samples
  std::uint32_t looks = 0;
  void add(std::uint64_t passed_ns, bool certain);
  /// The square root of `square_ns2`.
  [[nodiscard]] std::uint64_t spread_ns() const;
};

/// A sleep on a futex.
struct FutexWait {
  std::uint64_t futex = 0;  // 0: not known
  SleepingCall call;
  std::vector<std::byte> stack;  // from the stack pointer upward; empty: it was not read
};

/// The moment of a look.
struct LookTime {
  std::uint64_t now_ns = 0;
  std::optional<std::uint64_t> awake_ns = {};  // of the thread so far (ScheduleTimes); none: not known
};

/// True for addresses of code.
using IsCode = std::function<bool(std::uint64_t)>;

/// Not thread-safe.
class WaitTally {
 public:
  static constexpr std::size_t most_places = 8;
  struct Place {
    FutexWait wait;
    std::vector<std::size_t> code;  // offsets in the stack of words that are addresses of code
    Looks looks;
  };

  explicit WaitTally(const LookTime& begin) : last_(begin) {}

  /// The thread sleeps as it did at the look before: is_asleep().
  void still_asleep(const LookTime& time);
  /// It sleeps on a futex, and has run since the look before.
  void asleep(const LookTime& time, FutexWait wait, const IsCode& is_code);
  /// It sleeps in something else.
  void asleep_elsewhere(const LookTime& time);
  void awake(const LookTime& time);
  [[nodiscard]] bool is_asleep() const { return asleep_; }

  /// True if the next place may be one too many: take() first.
  [[nodiscard]] bool is_full() const { return places_.size() >= most_places; }
  /// When it was looked at last.
  [[nodiscard]] std::uint64_t looked_ns() const { return last_.now_ns; }
  /// Returns what looks since the last call have found.
  struct Told {
    std::vector<Place> places;
    Looks all, asleep;
    std::optional<std::int64_t> slept_ns;  // by the scheduler; none: not known
  };
  [[nodiscard]] Told take();

 private:
  std::uint64_t pass_to(const LookTime& time, bool certain);

  std::vector<Place> places_;
  bool asleep_ = false;                 // at the last look
  std::optional<std::size_t> present_;  // the place, if it is a wait on a futex
  Looks all_, all_asleep_;
  std::optional<std::int64_t> slept_ns_ = 0;
  LookTime last_;
};

}  // namespace crosstalk::observer
