// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/sessions.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/service/profile_store.h"

namespace crosstalk::service {
namespace {

constexpr double default_record_budget = 0.03;
constexpr double default_top_budget = 0.01;

/// Processes that were looked at, with descriptors that go on naming them when their pids are used again.
struct Held {
  std::vector<Process> processes;
  std::vector<UniqueFd> pidfds;
};

Result<Held> hold(const std::vector<pid_t>& pids) {
  Held held;
  for (const pid_t pid : pids) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    auto process = pidfd.valid() ? process_of(pid) : std::nullopt;
    pollfd ended{pidfd.get(), POLLIN, 0};
    if (!process || ::poll(&ended, 1, 0) != 0) {
      return fail(ErrorCode::not_found, "there is no process " + std::to_string(pid));
    }
    held.processes.push_back(std::move(*process));
    held.pidfds.push_back(std::move(pidfd));
  }
  return held;
}

}  // namespace

Result<Session*> Sessions::begin(const Request& request, const Peer& peer, const Configuration& configuration,
                                 std::vector<BudgetShare> others, std::uint64_t now_ns) {
  if (sessions_.size() >= configuration.sessions) {
    return fail(ErrorCode::refused,
                "all " + std::to_string(configuration.sessions) + " sessions are in use; wait until one has ended");
  }
  const auto held = hold(request.pids);
  const auto owner = held ? may_record(peer, held->processes, configuration) : tl::unexpected<Error>(held.error());
  if (!owner) {
    return tl::unexpected<Error>(owner.error());
  }
  for (const Session& session : sessions_) {
    others.push_back(session.share);
  }
  const double usual = request.kind == RequestKind::top ? default_top_budget : default_record_budget;
  const double asked = request.options.budget_percent.value_or(100 * usual) / 100;
  const auto budget = budget_for(request.pids, asked, configuration.budget, others);
  auto made = budget ? make_directory(means_.state + "/sessions") : tl::unexpected<Error>(budget.error());
  if (!made) {
    return tl::unexpected<Error>(made.error());
  }
  const std::uint64_t id = last_id_ + 1;
  std::vector<int> kept, numbers;
  for (const UniqueFd& pidfd : held->pidfds) {
    numbers.push_back(kept_number(kept.size()));
    kept.push_back(pidfd.get());
  }
  const std::string output = means_.state + "/sessions/" + std::to_string(id) + ".db";
  remove_profile(output);  // an earlier daemon's
  auto worker = Worker::start({means_.program, arguments_for(request, numbers, *owner, *budget, output), kept, false});
  if (!worker) {
    return tl::unexpected<Error>(worker.error());
  }
  last_id_ = id;
  sessions_.push_back({id, request.kind, peer.user, {request.pids, *budget}, output, std::move(*worker), now_ns, true});
  return &sessions_.back();
}

void Sessions::stop(std::uint64_t id, std::uint64_t now_ns) {
  for (Session& session : sessions_) {
    if (session.id == id && !session.worker.stopping()) {
      session.worker.stop(now_ns);
    }
  }
}

void Sessions::abandon(std::uint64_t id, std::uint64_t now_ns) {
  stop(id, now_ns);
  for (Session& session : sessions_) {
    session.asked_for = session.asked_for && session.id != id;
  }
}

void Sessions::stop_all(std::uint64_t now_ns) {
  for (Session& session : sessions_) {
    session.worker.stop(now_ns);
  }
}

std::vector<SessionEnd> Sessions::tend(std::uint64_t longest_s, std::uint64_t now_ns) {
  std::vector<SessionEnd> ends;
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (session->worker.stopping() || now_ns - session->begun_ns > longest_s * 1'000'000'000) {
      session->worker.stop(now_ns);
    }
    const auto status = session->worker.poll_status();
    if (!status) {
      ++session;
      continue;
    }
    SessionEnd end{session->id, *status, UniqueFd()};
    if (session->asked_for && session->kind == RequestKind::record) {
      end.profile.reset(::open(session->output.c_str(), O_RDONLY | O_CLOEXEC));
    }
    remove_profile(session->output);
    ends.push_back(std::move(end));
    session = sessions_.erase(session);
  }
  return ends;
}

}  // namespace crosstalk::service
