// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/sessions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/service/profile_store.h"

namespace crosstalk::service {
namespace {

constexpr double default_record_budget = 0.03;
constexpr double default_top_budget = 0.01;

/// The processes that a session records.
struct Subject {
  std::vector<Process> processes;
  std::vector<UniqueFd> pidfds;
  BudgetShare share;  // with the budget that is asked for
};

Result<Subject> subject_of(const Request& request) {
  Subject subject;
  const double usual = request.kind == RequestKind::top ? default_top_budget : default_record_budget;
  subject.share = {request.pids, request.options.budget_percent.value_or(100 * usual) / 100, {}, false};
  subject.share.children = request.options.children;
  for (const pid_t pid : request.pids) {
    auto held = hold(pid);
    if (!held) {
      return tl::unexpected<Error>(held.error());
    }
    subject.processes.push_back(std::move(held->process));
    subject.pidfds.push_back(std::move(held->pidfd));
    const std::vector<pid_t> ancestors = ancestors_of(pid);
    subject.share.ancestors.insert(subject.share.ancestors.end(), ancestors.begin(), ancestors.end());
  }
  return subject;
}

}  // namespace

Result<void> Sessions::check_room(const Peer& peer, std::uint32_t most) const {
  const std::string in_use = " are in use; wait until one has ended";
  if (sessions_.size() >= most) {
    return fail(ErrorCode::refused, "all " + std::to_string(most) + " sessions" + in_use);
  }
  const std::uint32_t share = (most + 1) / 2;
  const auto of_user =
      std::count_if(sessions_.begin(), sessions_.end(), [&](const Session& each) { return each.user == peer.user; });
  if (peer.user != 0 && of_user >= share) {
    return fail(ErrorCode::refused, "the " + std::to_string(share) + " sessions that one user may have" + in_use);
  }
  return {};
}

Result<Session*> Sessions::begin(const Request& request, const Peer& peer, const Configuration& configuration,
                                 std::vector<BudgetShare> others, std::uint64_t now_ns) {
  auto room = check_room(peer, configuration.sessions);
  auto subject = room ? subject_of(request) : tl::unexpected<Error>(room.error());
  const auto owner =
      subject ? may_record(peer, subject->processes, configuration) : tl::unexpected<Error>(subject.error());
  if (!owner) {
    return tl::unexpected<Error>(owner.error());
  }
  for (const Session& session : sessions_) {
    others.push_back(session.share);
  }
  const auto budget = budget_for(subject->share, configuration.budget, others);
  auto made = budget ? make_directory(session_folder(means_.state)) : tl::unexpected<Error>(budget.error());
  if (!made) {
    return tl::unexpected<Error>(made.error());
  }
  const std::uint64_t id = last_id_ + 1;
  std::vector<int> kept, numbers;
  for (const UniqueFd& pidfd : subject->pidfds) {
    numbers.push_back(kept_number(kept.size()));
    kept.push_back(pidfd.get());
  }
  // A worker of a killed daemon may still be writing there, under the number of that daemon.
  const std::string output =
      session_folder(means_.state) + "/" + std::to_string(::getpid()) + "-" + std::to_string(id) + ".db";
  auto worker = Worker::start({means_.program, arguments_for(request, numbers, *owner, *budget, output), kept, false});
  if (!worker) {
    return tl::unexpected<Error>(worker.error());
  }
  last_id_ = id;
  subject->share.budget = *budget;
  sessions_.push_back(
      {id, request.kind, peer.user, std::move(subject->share), output, std::move(*worker), now_ns, true, false});
  return &sessions_.back();
}

bool Sessions::stop(std::uint64_t id, std::uint64_t now_ns) {
  for (Session& session : sessions_) {
    if (session.id == id) {
      session.worker.stop(now_ns);
      return true;
    }
  }
  return false;
}

void Sessions::abandon(std::uint64_t id, std::uint64_t now_ns) {
  (void)stop(id, now_ns);
  for (Session& session : sessions_) {
    session.asked_for = session.asked_for && session.id != id;
  }
}

void Sessions::stop_all(std::uint64_t now_ns) {
  for (Session& session : sessions_) {
    session.worker.stop(now_ns);
  }
}

std::vector<BegunProfile> Sessions::take_begun() {
  std::vector<BegunProfile> begun;
  for (Session& session : sessions_) {
    if (session.kind != RequestKind::record || session.handed_out || !is_begun(session.output)) {
      continue;
    }
    UniqueFd profile(::open(session.output.c_str(), O_RDONLY | O_CLOEXEC));
    session.handed_out = profile.valid();
    if (profile.valid()) {
      begun.push_back({session.id, std::move(profile)});
    }
  }
  return begun;
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
    if (session->asked_for && session->kind == RequestKind::record && is_whole(session->output)) {
      end.profile.reset(::open(session->output.c_str(), O_RDONLY | O_CLOEXEC));
    }
    remove_profile(session->output);
    ends.push_back(std::move(end));
    session = sessions_.erase(session);
  }
  return ends;
}

}  // namespace crosstalk::service
