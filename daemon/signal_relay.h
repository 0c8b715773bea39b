// SPDX-License-Identifier: Apache-2.0
// Forwards signals to the command. A user takes the recorder for the command, so a signal to the recorder is meant for
// the command. A signal to the whole group has already reached the command, and must not reach it twice.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/group_witness.h"
#include "daemon/signals.h"

namespace crosstalk::daemon {

/// Not thread-safe.
class SignalRelay {
 public:
  using Arrival = SignalWatch::Arrival;

  /// Without a witness, signals of the terminal count as sent to the group, and others as sent to this process.
  explicit SignalRelay(std::optional<GroupWitness> witness) : witness_(std::move(witness)) {}

  /// Returns the signals to forward now, from `arrived` and earlier undecided ones. A sender may signal each process of
  /// a group in turn, so some decisions wait.
  [[nodiscard]] std::vector<Arrival> to_be_sent(const std::vector<Arrival>& arrived, std::uint64_t now_ns);
  /// Makes all undecided signals due: a sender to each process of a group has had enough time.
  void decide_now();
  /// Returns the milliseconds until a decision is due; nullopt if none is.
  [[nodiscard]] std::optional<int> due_in_ms(std::uint64_t now_ns) const;

 private:
  struct Undecided {
    Arrival arrival;
    std::uint64_t arrived_ns, due_ns;
  };
  [[nodiscard]] bool reached_group(const Undecided& undecided, const std::optional<WitnessedTimes>& witnessed) const;

  std::optional<GroupWitness> witness_;
  WitnessedTimes witnessed_{};        // the witness's previous answer
  std::vector<Undecided> undecided_;  // in order of their due times
};

/// True if a timer or another call of this process caused it, not a sender.
[[nodiscard]] bool is_own(const SignalWatch::Arrival& arrival);
}  // namespace crosstalk::daemon
