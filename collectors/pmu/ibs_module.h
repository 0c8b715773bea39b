// SPDX-License-Identifier: Apache-2.0
// Our kernel module for IBS (kmod/, docs/kmod.md): its abilities here, and this user's right to use it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "collectors/memory_samples/module_records.h"

namespace crosstalk::collectors {

struct IbsModule {
  bool emulated = false;    ///< a timer takes the place of the hardware: for tests
  bool counts_ops = false;  ///< a period is micro-ops, else cycles
  std::uint64_t least_period = 0, longest_period = 0;
};

/// Asks the device. Errors in one line: not_found (there is none), permission (this user may not open it), unsupported
/// (it cannot sample threads of other processes).
[[nodiscard]] Result<IbsModule> ask_ibs_module();

/// Makes a context of the calling thread, tests if it samples (event_self_test.h), and gives it up again. An error says
/// why that is refused, or why it is not taken, with the remedy.
[[nodiscard]] Result<void> try_ibs_module();

}  // namespace crosstalk::collectors
