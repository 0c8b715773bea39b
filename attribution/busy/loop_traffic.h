// SPDX-License-Identifier: Apache-2.0
// A loop's traffic between the levels of the memory hierarchy, by its code and the addresses at its samples.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "attribution/busy/inner_loop.h"
#include "attribution/busy/stream_samples.h"
#include "attribution/model/model.h"
#include "attribution/program/code_map.h"
#include "models/cycle_accounting.h"
#include "models/machine.h"
#include "models/stream_traffic.h"
#include "symbolizer/loops/loop_body.h"

namespace crosstalk::attribution {

struct LoopTraffic {
  std::optional<models::LevelBytes> per_s = {};  // a second of CPU time; nullopt: see `unknown`
  std::array<double, 4> served{};                // lines, by the level that they come from
  std::string unknown = {};                      // why, half a sentence
  bool stores_only_new = false;                  // it stores whole lines that it does not load
  bool scattered = false;  // some accesses are taken to fall anywhere in the range that they were seen in
};

/// Null: not known.
struct TrafficEvidence {
  const CodeLoop* code = nullptr;
  const symbolizer::LoopBodyFacts* body = nullptr;
  const LoopPairs* pairs = nullptr;
  double threads = 1;  // that execute the loop at once, and share the last level
};

/// Returns the traffic of a loop without inner ones, which makes so many `iterations`.
[[nodiscard]] LoopTraffic traffic_of(const Rate& iterations, const TrafficEvidence& evidence,
                                     const models::Machine& machine);
/// Returns the traffic of a loop by its inner ones. It must have spent nearly all of its time, `cpu_s`, in them.
[[nodiscard]] LoopTraffic traffic_inside(double cpu_s, std::span<const InnerLoop<LoopTraffic>> inner);

/// The shares of waits for each level, from the number of lines that it serves and the latency of one. Sets `missing`
/// to the latencies that the machine's figures lack.
[[nodiscard]] std::optional<models::LevelShares> shares_of_waits(const LoopTraffic& traffic,
                                                                 const models::Machine& machine, std::string& missing);

}  // namespace crosstalk::attribution
