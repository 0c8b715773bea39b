// SPDX-License-Identifier: Apache-2.0
// The kinds of a loop's floating-point operations and accesses: its own by its code, and those of its inner loops.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "attribution/busy/inner_loop.h"
#include "attribution/model/model.h"
#include "models/machine.h"
#include "models/peaks.h"
#include "symbolizer/loops/loop_body.h"

namespace crosstalk::attribution {

struct LoopMix {
  models::FlopMix flops;  // a second of its CPU time; empty: it has none, or see `unknown`
  std::string unknown;    // why they are not known by kind, half a sentence
};
/// The rate of all operations decides their sum, code and inner loops the parts. `body`: nullopt if the code of an
/// iteration is not known.
[[nodiscard]] LoopMix mix_of(const LoopRow& loop, const std::optional<symbolizer::LoopBodyFacts>& body,
                             std::span<const InnerLoop<LoopMix>> inner);

/// The share of stores among its accesses, those of its inner loops included, by the loop's rates; if they are not
/// known, by its inner loops, or its code.
[[nodiscard]] double store_share_of(const LoopRow& loop, const std::optional<symbolizer::LoopBodyFacts>& body,
                                    std::span<const InnerLoop<double>> inner);

/// The widest instructions that a mix has, and those that a machine was calibrated for.
[[nodiscard]] std::optional<models::Width> widest_of(const models::FlopMix& mix);
[[nodiscard]] std::optional<models::Width> widest_of(const models::Machine& machine);

}  // namespace crosstalk::attribution
