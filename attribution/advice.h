// SPDX-License-Identifier: Apache-2.0
// What to do about an object that threads exchange, and what that would gain.
#pragma once

#include <set>
#include <string>

#include "attribution/model.h"

namespace crosstalk::attribution {

/// Who exchanges an object, and how much of it, over all its cells.
struct ObjectExchange {
  std::set<std::uint32_t> threads, producers, consumers;
  double false_share = 0;  // of cost; of detections where no cost is known
  std::uint64_t seen = 0;  // communications
};
[[nodiscard]] ObjectExchange exchange_of(const Matrix& cells);

/// "two counters that different threads update", ...: what a kind of sharing is called in a sentence.
[[nodiscard]] std::string kind_in_words(SharingKind kind, double false_share);
/// "a lock", "false sharing".
[[nodiscard]] std::string noun_of(SharingKind kind);
/// All that was seen of it was between threads on one processor: no line had to move.
[[nodiscard]] bool on_one_processor(const ObjectRow& object);
/// One sentence: what to change. It depends on the kind and on who does what. Empty: nothing helps.
[[nodiscard]] std::string advice_for(const ObjectRow& object, const ObjectExchange& exchange);
/// What that gains of `cpu_s`, the threads' time: "That saves 55 to 75 % of their time.", or why it gains nothing, or
/// that it is not known. Where the advice is to do something less often, only what moving the line takes is known, and
/// nothing is said to be all that it saves. Empty when no cost is known.
[[nodiscard]] std::string gain_in_words(const ObjectRow& object, const ObjectExchange& exchange, double cpu_s);

/// Of false sharing what a line of its own for each thread saves; of all else what threads save that share less often.
[[nodiscard]] Sum advised_gain(const ObjectRow& object);

}  // namespace crosstalk::attribution
