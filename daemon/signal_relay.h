// SPDX-License-Identifier: Apache-2.0
// Who starts the recorder takes it for the command: what he sends it was meant for that. What reaches the whole group
// has reached the command already, and must not reach it twice.
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

  /// Without a witness, what the terminal sends is taken for sent to the group, and the rest for sent to this process.
  explicit SignalRelay(std::optional<GroupWitness> witness) : witness_(std::move(witness)) {}

  /// Of what has arrived until now, and of what arrived before and was not decided on: what the command is still to be
  /// sent. Who sends to each process of a group in turn has some time to do so.
  [[nodiscard]] std::vector<Arrival> to_be_sent(const std::vector<Arrival>& arrived, std::uint64_t now_ns);
  /// What is undecided is due: who sends to each process of a group has had the time to.
  void decide_now();
  /// Milliseconds until something is to be decided on; nothing: there is nothing.
  [[nodiscard]] std::optional<int> due_in_ms(std::uint64_t now_ns) const;

 private:
  struct Undecided {
    Arrival arrival;
    std::uint64_t arrived_ns, due_ns;
  };
  [[nodiscard]] bool reached_group(const Undecided& undecided, const std::optional<WitnessedTimes>& witnessed) const;

  std::optional<GroupWitness> witness_;
  WitnessedTimes heeded_{};           // what the witness has said before
  std::vector<Undecided> undecided_;  // the order in which they are due
};

/// It came from a timer of this process, or another of its own calls: nobody has sent it.
[[nodiscard]] bool is_own(const SignalWatch::Arrival& arrival);
}  // namespace crosstalk::daemon
