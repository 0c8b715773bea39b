// SPDX-License-Identifier: Apache-2.0
// Keeps the measured cost of observing between recordings, beside the machine file, until the machine restarts.
// Measuring it takes half of a recording's start time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "collectors/facilities/probe.h"

namespace crosstalk::driver {

/// Conditions that the costs depend on. Costs that were kept under another key are not used.
struct CostKey {
  std::string version;    // crosstalk's version, since each measures in its own way
  std::string boot;       // the kernel's id of this boot
  std::string kernel;     // release and version
  std::string processor;  // name, family, model and stepping
  bool perf_allowed = false;
  bool watchpoints = false;     // watchpoints that report by a signal
  std::uint32_t registers = 0;  // debug registers
  bool operator==(const CostKey&) const = default;
};
[[nodiscard]] CostKey cost_key(const collectors::Probe& probe);

struct KeptCosts {
  collectors::ObservingCosts costs;
  std::uint32_t tries = 0;  // measurements that the costs were combined from
  bool operator==(const KeptCosts&) const = default;
};
/// True if nothing is left to measure: every cost is known, or several tries did not show it.
[[nodiscard]] bool is_settled(const KeptCosts& kept);

[[nodiscard]] std::string to_json(const CostKey& key, const KeptCosts& kept);
/// Returns nullopt if the text is damaged, or has another version or key.
[[nodiscard]] std::optional<KeptCosts> parse_costs(const std::string& text, const CostKey& key);

/// Returns the path of crosstalk/observing-costs.json beside machine_file_path(). Fails if that has no path.
[[nodiscard]] Result<std::string> cost_file_path();

/// As collectors::calibrate(), but uses kept costs and keeps new ones. Best effort: without a usable file, it measures
/// each time.
void calibrate_once(collectors::Probe& probe, profile::SessionConfig& config);
/// Deletes the kept costs, so that the next recording measures them anew.
void forget_costs();

}  // namespace crosstalk::driver
