// SPDX-License-Identifier: Apache-2.0
// The daemon's state as clients see it, as JSON objects. docs/daemon.md describes their fields.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "daemon/service/access.h"
#include "daemon/service/profile_store.h"
#include "daemon/service/sessions.h"
#include "daemon/service/watched_service.h"

namespace crosstalk::service {

/// The parts of the state that `peer` may see: its own sessions, and the services that it may fetch profiles of; root
/// sees all. Rows for which a message has no room are left out, and `left_out` says so. `now_ns`:
/// CLOCK_MONOTONIC.
[[nodiscard]] std::string status_for(const Peer& peer, const std::list<Session>& sessions,
                                     const std::vector<WatchedService>& services, std::uint64_t now_ns);

/// The finished ones of a service's profiles. If a message has no room for all, the newest ones, and `left_out_older`.
[[nodiscard]] std::string list_of(const std::vector<StoredProfile>& profiles);

}  // namespace crosstalk::service
