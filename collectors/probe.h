// SPDX-License-Identifier: Apache-2.0
// What this machine and this user's rights give: asked of the kernel, not guessed. Runs in the recorder,
// before a target starts, and in `crosstalk doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/facility.h"
#include "profile/arena.h"

namespace crosstalk::collectors {

struct Probe {
  std::vector<Facility> facilities;
  bool perf_allowed = false, watchpoints_allowed = false;
  std::uint32_t debug_registers = 0;  // free now, 0..4
  int paranoid = -1;                  // /proc/sys/kernel/perf_event_paranoid; -1: not there
};

[[nodiscard]] Probe probe();
/// Measures signal, trap and switch costs on this machine (some 10 ms) and fills the calibrated and probed
/// fields of `config`. Never fails: what can not be measured keeps its default.
void calibrate(const Probe& probe, profile::SessionConfig& config);

/// A command that can be executed here.
struct JudgedCommand {
  std::string path;
  /// Why no library can be preloaded into it, in words that follow its path; empty: it can be.
  std::string obstacle;
  bool privileged = false;  // it gets rights that this user does not have
};

/// Refuses, in one line, a command that can not be observed in any way: missing, not executable, of another processor,
/// of 32 bits, not readable. Scripts are judged by their interpreter.
[[nodiscard]] Result<JudgedCommand> check_command(const std::string& command);

}  // namespace crosstalk::collectors
