// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/access.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

namespace crosstalk::service {
namespace {

bool of_open_service(const Process& process, const Configuration& configuration) {
  return std::any_of(configuration.services.begin(), configuration.services.end(), [&](const ServiceSettings& service) {
    return service.access && belongs_to(process, service.match);
  });
}

bool has(const std::vector<pid_t>& pids, pid_t pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

/// True if `other` records process `pid` of `asked`, or one that both may record because of their children.
bool takes_from(const BudgetShare& other, pid_t pid, const BudgetShare& asked) {
  const bool above = other.children && std::any_of(asked.ancestors.begin(), asked.ancestors.end(),
                                                   [&](pid_t ancestor) { return has(other.pids, ancestor); });
  const bool below = asked.children && has(other.ancestors, pid);
  return has(other.pids, pid) || above || below;
}

}  // namespace

Result<std::optional<uid_t>> may_record(const Peer& peer, const std::vector<Process>& processes,
                                        const Configuration& configuration) {
  if (processes.empty()) {
    return fail(ErrorCode::invalid_argument, "no process is named; name one with -p");
  }
  if (peer.user == 0) {
    return std::nullopt;
  }
  for (const Process& process : processes) {
    if (process.owner == peer.user) {
      continue;
    }
    if (!of_open_service(process, configuration)) {
      return fail(ErrorCode::permission, "process " + std::to_string(process.pid) +
                                             " belongs to another user and to no service with access = true; the "
                                             "administrator may add one to the configuration of crosstalkd");
    }
    if (!peer.in_group) {
      return fail(ErrorCode::permission, "process " + std::to_string(process.pid) +
                                             " belongs to a service that only members of the group " +
                                             configuration.group + " may record");
    }
  }
  const uid_t owner = processes.front().owner;
  if (std::any_of(processes.begin(), processes.end(), [&](const Process& each) { return each.owner != owner; })) {
    return fail(ErrorCode::refused, "the processes belong to several users; record those of one user at a time");
  }
  return std::optional(owner);
}

bool may_see(const Peer& peer, const ServiceSettings& service) {
  return peer.user == 0 || (peer.in_group && service.access);
}

Result<double> budget_for(const BudgetShare& asked, double limit, const std::vector<BudgetShare>& others) {
  constexpr double least = 0.001;
  double left = limit;
  for (const pid_t pid : asked.pids) {
    double taken = 0;
    for (const BudgetShare& other : others) {
      taken += takes_from(other, pid, asked) ? other.budget : 0;
    }
    left = std::min(left, limit - taken);
  }
  if (left < least - 1e-9) {  // differences of decimal fractions are not exact
    return fail(ErrorCode::refused,
                fmt::format("other sessions take the whole budget of these processes ({:g} % of their CPU time); "
                            "wait until one has ended",
                            100 * limit));
  }
  return std::min(asked.budget, left);
}

}  // namespace crosstalk::service
