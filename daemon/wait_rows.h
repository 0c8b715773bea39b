// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "profile/thread_wait_row.h"
#include "profile/wait_table.h"

namespace crosstalk::daemon {

/// Returns a thread's table at one moment, without the thread's id: one row for all waits, then one for each kind and
/// place; empty if waits are not measured. `until_ns`: end of the wait in progress; 0: it does not count. Drops
/// impossible entries, because targets can write the table.
[[nodiscard]] std::vector<profile::ThreadWaitRow> wait_rows(const profile::ThreadWaits& table, std::uint64_t until_ns);

}  // namespace crosstalk::daemon
