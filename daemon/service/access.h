// SPDX-License-Identifier: Apache-2.0
// Decides who may record which process, and at which budget.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/result.h"
#include "daemon/service/configuration.h"
#include "daemon/service/processes.h"

namespace crosstalk::service {

/// A client, as the kernel describes the other end of its connection.
struct Peer {
  uid_t user = 0;
  bool in_group = false;  // of the configuration
};

/// Decides if `peer` may record all of `processes`: root may record any, a user those that belong to that user, and a
/// member of the group those of services with `access`. Returns the one user whose processes the recording may include,
/// children and executed programs as well; nullopt for root's, which may include all.
[[nodiscard]] Result<std::optional<uid_t>> may_record(const Peer& peer, const std::vector<Process>& processes,
                                                      const Configuration& configuration);

/// True if `peer` may see the service's state and fetch its profiles.
[[nodiscard]] bool may_see(const Peer& peer, const ServiceSettings& service);

/// A session's share of its processes' CPU time.
struct BudgetShare {
  std::vector<pid_t> pids;
  double budget = 0;
  std::vector<pid_t> ancestors;  // of those processes
  bool children = false;         // with the processes that those start
};

/// Returns the budget of a new session: what it asks for, or what the other sessions of its processes leave of `limit`.
/// Sessions of different processes take from different threads' time, so this keeps all sessions together within
/// `limit` of the machine's CPU time. Refused if less than 0.1 % is left.
[[nodiscard]] Result<double> budget_for(const BudgetShare& asked, double limit, const std::vector<BudgetShare>& others);

}  // namespace crosstalk::service
