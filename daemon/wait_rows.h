// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "profile/thread_wait_row.h"
#include "profile/wait_table.h"

namespace crosstalk::daemon {

/// What a thread's table says at one moment, without the thread's id: a row for all of its waits, then those of kinds
/// and places; empty where its waits are not measured. `until_ns`: the wait that goes on counts up to then; 0: it does
/// not count. Entries that cannot be true are left out: the table is the target's to write.
[[nodiscard]] std::vector<profile::ThreadWaitRow> wait_rows(const profile::ThreadWaits& table, std::uint64_t until_ns);

}  // namespace crosstalk::daemon
