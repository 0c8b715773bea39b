// SPDX-License-Identifier: Apache-2.0
// Advice on an object that threads exchange, and its gain.
#pragma once

#include <set>
#include <string>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// The threads that exchange an object, and the amount, over all its cells.
struct ObjectExchange {
  std::set<std::uint32_t> threads, producers, consumers;
  double false_share = 0;  // of cost; of detections where no cost is known
  std::uint64_t seen = 0;  // communications
};
[[nodiscard]] ObjectExchange exchange_of(const Matrix& cells);

/// Describes a kind of sharing in a sentence: "two counters that different threads update", ...
[[nodiscard]] std::string kind_in_words(SharingKind kind, double false_share);
/// "a lock", "false sharing".
[[nodiscard]] std::string noun_of(SharingKind kind);
/// True if all exchanges seen were between threads on one processor: no line had to move.
[[nodiscard]] bool on_one_processor(const ObjectRow& object);
/// One sentence with a change to make, by the kind of sharing and the roles of threads. Empty: nothing helps.
[[nodiscard]] std::string advice_for(const ObjectRow& object, const ObjectExchange& exchange);
/// True if a cost is said with its interval, because a gain within that might seem to contradict the cost.
[[nodiscard]] bool is_cost_wide(const Sum& sum);
/// The gain of that advice as a part of `cpu_s`, the threads' time: "The change would save 55 to 75 % of their time.",
/// or the reason why it gains nothing, or that it is not known. For advice to do something less often only the cost of
/// moving the line is known, and the sentence does not call that all the savings. Empty if no cost is known.
[[nodiscard]] std::string gain_in_words(const ObjectRow& object, const ObjectExchange& exchange, double cpu_s,
                                        const std::string& advice);

/// The gain that the advice aims at: for false sharing, that of a separate line for each thread; for all other kinds,
/// that of sharing less often.
[[nodiscard]] Sum advised_gain(const ObjectRow& object);
/// The part of it that a pair of lines has.
[[nodiscard]] Sum advised_gain(const Communication& communication, const LinePair& pair);

}  // namespace crosstalk::attribution
