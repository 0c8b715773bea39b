// SPDX-License-Identifier: Apache-2.0
// What observing costs here, kept from one recording to the next: beside the machine file, for as long as the machine
// runs. To measure it takes half of what a recording needs to start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "collectors/probe.h"

namespace crosstalk::driver {

/// What the costs hang on. Those that were kept under another one are of no use.
struct CostKey {
  std::string version;    // crosstalk's, which measures them in its way
  std::string boot;       // the kernel's id of this boot
  std::string kernel;     // release and version
  std::string processor;  // name, family, model and stepping
  bool perf_allowed = false;
  bool watchpoints = false;     // that tell by a signal
  std::uint32_t registers = 0;  // debug registers
  bool operator==(const CostKey&) const = default;
};
[[nodiscard]] CostKey cost_key(const collectors::Probe& probe);

struct KeptCosts {
  collectors::ObservingCosts costs;
  std::uint32_t tries = 0;  // measurements that they were put together from
  bool operator==(const KeptCosts&) const = default;
};
/// Nothing needs to be measured any more: all is known, or did not show itself in some tries.
[[nodiscard]] bool is_settled(const KeptCosts& kept);

[[nodiscard]] std::string to_json(const CostKey& key, const KeptCosts& kept);
/// Nothing: the text is damaged, of another version, or its key is another one.
[[nodiscard]] std::optional<KeptCosts> parse_costs(const std::string& text, const CostKey& key);

/// crosstalk/observing-costs.json where machine_file_path() is. Not found where that is nowhere.
[[nodiscard]] Result<std::string> cost_file_path();

/// As collectors::calibrate(), with what is kept, and keeps what was measured where it can. It is a help and no more:
/// where the file cannot be read or written, costs are measured each time.
void calibrate_once(collectors::Probe& probe, profile::SessionConfig& config);
/// They are measured anew at the next recording.
void forget_costs();

}  // namespace crosstalk::driver
