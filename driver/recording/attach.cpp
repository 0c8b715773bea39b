// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/attach.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "collectors/observer/identity.h"
#include "collectors/observer/observer.h"
#include "collectors/observer/target_process.h"
#include "collectors/observer/targets.h"
#include "daemon/record_checks.h"

namespace crosstalk::driver {
namespace {

class AttachedObserver final : public daemon::OutsideCollector {
 public:
  explicit AttachedObserver(std::unique_ptr<observer::Observer> observer) : observer_(std::move(observer)) {}
  [[nodiscard]] int ended_fd() const override { return observer_->ended_fd(); }
  [[nodiscard]] Result<void> take(pid_t pid) override { return observer_->take(pid); }
  void expect_no_more() override { observer_->expect_no_more(); }
  void stop() override { observer_->stop(); }
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks() override { return observer_->take_remarks(); }
  [[nodiscard]] std::optional<std::uint64_t> unobserved_cpu_ns() override {
    return observer_->cpu_times().unobserved_ns;
  }
  [[nodiscard]] std::uint64_t handled_until_ns() const override { return observer_->handled_until_ns(); }
  [[nodiscard]] std::vector<profile::ProcessRow> take_unobserved() override {
    std::vector<profile::ProcessRow> rows;
    for (const observer::PassedOver& process : observer_->take_refused()) {
      profile::ProcessRow& row = rows.emplace_back();
      row.pid = process.pid;
      row.parent_pid = process.parent;
      row.executable = process.facts.executable;
      row.command = daemon::shell_quoted(process.facts.arguments);
      row.begin_ns = process.time_ns;
      row.unobserved_because = process.why;
    }
    return rows;
  }

 private:
  std::unique_ptr<observer::Observer> observer_;
};

/// Returns the command lines of the first few processes, each once.
std::string commands_of(const std::vector<pid_t>& pids) {
  constexpr std::size_t most = 4;
  std::vector<std::string> commands;
  for (const pid_t pid : pids) {
    std::string command = command_of(pid);
    if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
      commands.push_back(std::move(command));
    }
  }
  const std::string more = commands.size() > most ? " & ..." : "";
  commands.resize(std::min(commands.size(), most));
  return fmt::format("{}{}", fmt::join(commands, " & "), more);
}

/// What is not known from outside. Of waits, looks find the time asleep if that is asked for.
std::string unknown_from_outside(const RecordRequest& request) {
  return std::string("heap blocks, ") +
         (request.config.measure_waits != 0 ? "" : "waits for locks (record --waits), ") +
         "what branching loops execute, and stores to a line's words that were not watched are not known";
}

std::string watched_from_outside(const RecordRequest& request) {
  const bool one = request.pids.size() == 1;
  return std::string(one ? "the process was" : "the processes were") + " watched from outside, from when " +
         (one ? "it was" : "they were") + " attached to: " + unknown_from_outside(request) +
         (request.attach_children ? "" : "; new processes that were started were not watched (--children)");
}

daemon::Attachment attachment_of(observer::Assignment assignment) {
  daemon::Attachment attachment;
  attachment.attach = [assignment = std::move(assignment)](
                          const std::string& arena) -> Result<std::unique_ptr<daemon::OutsideCollector>> {
    auto observer = observer::Observer::attach(assignment, arena);
    if (!observer) {
      return tl::unexpected<Error>(observer.error());
    }
    return std::make_unique<AttachedObserver>(std::move(*observer));
  };
  return attachment;
}

/// Checks the process before anything of it is read; the attachment does so again.
Result<void> check_identity(const RecordRequest& request, std::size_t index) {
  const pid_t pid = request.pids[index];
  if (!request.pidfds.empty()) {
    if (Result<void> same = observer::check_pidfd(pid, request.pidfds.at(index)); !same) {
      return same;
    }
  }
  const Result<void> owned = request.owner ? observer::check_owner(pid, *request.owner) : Result<void>();
  return owned || owned.error().code == ErrorCode::not_found  // which is told better without a user
             ? Result<void>()
             : fail(owned.error().code, "-p " + std::to_string(pid) + ": " + owned.error().message);
}

}  // namespace

std::string command_of(pid_t pid) {
  const observer::ProcessFacts facts = observer::process_facts(pid);
  if (facts.arguments.empty()) {
    return facts.executable.empty() ? "process " + std::to_string(pid) : facts.executable;
  }
  return daemon::shell_quoted(facts.arguments);
}

Result<AttachedTarget> attach_to(const RecordRequest& request, const OutsideMeans& means) {
  for (std::size_t i = 0; i < request.pids.size(); ++i) {
    Result<void> watchable = check_identity(request, i);
    if (watchable) {
      watchable = observer::check_process(request.pids[i]);
    }
    if (!watchable) {
      return tl::unexpected<Error>(watchable.error());
    }
  }
  AttachedTarget target;
  target.attachment = attachment_of({request.pids, request.attach_children, means.registers, means.memory,
                                     means.counters, request.owner, request.pidfds});
  target.attachment.duration_ns = request.duration_ns;
  target.command = commands_of(request.pids);
  target.warnings.push_back({"watched_from_outside", watched_from_outside(request)});
  return target;
}

daemon::Attachment watch_beside_library(const RecordRequest& request, const OutsideMeans& means) {
  return attachment_of(
      {{}, request.config.follow_children != 0, means.registers, means.memory, means.counters, std::nullopt, {}});
}

WatchedCommand watch_command(const RecordRequest& request, const std::string& what, const OutsideMeans& means) {
  const bool children = request.config.follow_children != 0;
  WatchedCommand command;
  command.attachment = [children, means, delay_ns = request.delay_ns](pid_t pid) {
    daemon::Attachment attachment =
        attachment_of({{pid}, children, means.registers, means.memory, means.counters, std::nullopt, {}});
    attachment.delay_ns = delay_ns;
    return attachment;
  };
  command.warning = {"watched_from_outside", what + " watched from outside, " + (children ? "with" : "without") +
                                                 " the processes that it started: " + unknown_from_outside(request)};
  return command;
}

}  // namespace crosstalk::driver
