// SPDX-License-Identifier: Apache-2.0
// The clients' sessions: each is a worker that records processes for one connection.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/service/access.h"
#include "daemon/service/messages.h"
#include "daemon/service/watched_service.h"
#include "daemon/service/worker.h"

namespace crosstalk::service {

struct Session {
  std::uint64_t id = 0;
  RequestKind kind = RequestKind::record;
  uid_t user = 0;
  BudgetShare share;
  std::string output;  // record: the profile
  Worker worker;
  std::uint64_t begun_ns = 0;
  bool asked_for = true;    // its client is still connected
  bool handed_out = false;  // its profile was, as it began
};

/// The profile of a session that has begun to write it.
struct BegunProfile {
  std::uint64_t id = 0;
  UniqueFd profile;  // for reading
};

/// The results that a session's end leaves.
struct SessionEnd {
  std::uint64_t id = 0;
  int exit_status = 0;
  UniqueFd profile;  // record: for reading; invalid: there is none, or its recorder was killed
};

/// Not thread-safe. Times are of CLOCK_MONOTONIC, in ns.
class Sessions {
 public:
  explicit Sessions(ServiceMeans means) : means_(std::move(means)) {}

  /// Begins a session, if the peer may and there is room. The worker's pipes are for the client to read.
  /// `others`: budgets of recordings beside the sessions.
  [[nodiscard]] Result<Session*> begin(const Request& request, const Peer& peer, const Configuration& configuration,
                                       std::vector<BudgetShare> others, std::uint64_t now_ns);
  /// Ends a session as ^C ends a recording. False: there is no such session.
  bool stop(std::uint64_t id, std::uint64_t now_ns);
  /// The same, and nobody waits for its profile.
  void abandon(std::uint64_t id, std::uint64_t now_ns);
  /// Notices ends, and enforces the time limit. The profiles are no longer in the directory.
  [[nodiscard]] std::vector<SessionEnd> tend(std::uint64_t longest_s, std::uint64_t now_ns);

  /// Returns each profile once, soon after it was begun: a client that has it open keeps it if the daemon dies.
  [[nodiscard]] std::vector<BegunProfile> take_begun();

  [[nodiscard]] const std::list<Session>& all() const { return sessions_; }
  [[nodiscard]] std::uint64_t begun() const { return last_id_; }
  void stop_all(std::uint64_t now_ns);

 private:
  /// Refuses if all sessions are in use, or if a user other than root would have more than half of them.
  [[nodiscard]] Result<void> check_room(const Peer& peer, std::uint32_t most) const;

  ServiceMeans means_;
  std::list<Session> sessions_;  // whose addresses last
  std::uint64_t last_id_ = 0;
};

}  // namespace crosstalk::service
