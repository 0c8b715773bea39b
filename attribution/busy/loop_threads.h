// SPDX-License-Identifier: Apache-2.0
// The threads of a loop: how many execute it at once, and how equal their work is.
#pragma once

#include <optional>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "models/machine.h"

namespace crosstalk::attribution {

/// The average number of threads that execute the loop at once, from their times. Threads may come one after another,
/// so it is at most the number of the machine's processors; null: that is not known.
[[nodiscard]] double threads_at_once(const LoopRow& loop, const models::Machine* machine);

/// The imbalance of the threads' work. A thread that spins at a barrier in the loop waits as long as the slowest one
/// works, so only the time without waits counts. nullopt: there are less than two threads, or they did not live at the
/// same time: those that came one after another waited for nobody.
[[nodiscard]] std::optional<double> imbalance_of(const LoopRow& loop, const ProgramView& view);

/// True if the imbalance is more than the samples of threads with equal work would show by chance.
[[nodiscard]] bool is_beyond_chance(double imbalance, const LoopRow& loop);

}  // namespace crosstalk::attribution
