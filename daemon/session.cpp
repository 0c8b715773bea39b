// SPDX-License-Identifier: Apache-2.0
#include "daemon/session.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "daemon/arena.h"
#include "daemon/host_info.h"
#include "daemon/launch.h"
#include "daemon/output_files.h"
#include "daemon/own_limits.h"
#include "daemon/recorder.h"
#include "daemon/signal_relay.h"
#include "daemon/signals.h"
#include "daemon/target.h"
#include "profile/writer.h"

namespace crosstalk::daemon {
namespace {

template <class T>
tl::unexpected<Error> error_of(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

/// `start(arena's path, signals, targets)` begins the recording once everything is ready. If it fails, no file is left.
template <class Start>
Result<RecordOutcome> run_session(const RecordOptions& options, std::uint64_t cpu_before_ns, Start start) {
  const bool of_command = !options.command.empty();
  // Later threads inherit the mask, so that only this thread receives signals.
  const Result<SignalWatch> signals = SignalWatch::begin(of_command ? SignalsFor::command : SignalsFor::session);
  if (!signals) {
    return error_of(signals);
  }
  Result<Arena> arena = Arena::create(options.config, ArenaShape::within(largest_file()));
  if (!arena) {
    return error_of(arena);
  }
  arena->header().memory = options.memory;
  SignalRelay relay(of_command ? GroupWitness::start() : std::nullopt);
  std::optional<SwitchedFiles> switched =
      options.switch_ns != 0 ? std::optional(SwitchedFiles(options.output, options.switch_most)) : std::nullopt;
  const std::string first = switched ? switched->next(unix_ms()) : options.output;
  const OutputFiles output(first);
  Result<profile::ProfileWriter> writer = profile::ProfileWriter::create(first);
  if (!writer) {
    return fail(files_are_limited() ? ErrorCode::system : ErrorCode::permission, writer.error().message);
  }
  const std::string arena_path = arena->path();
  std::optional<Recorder> recorder(std::in_place, options, std::move(*arena), std::move(*writer), std::move(switched),
                                   cpu_before_ns);
  recorder->begin();
  Targets targets;
  if (const Result<void> started = start(arena_path, *signals, targets); !started) {
    recorder.reset();
    output.undo();
    return error_of(started);
  }
  try {
    return recorder->run(targets, *signals, relay);
  } catch (const std::exception& error) {  // out of memory, or no thread could be made
    return recorder->abandon(targets, *signals, relay, error.what());
  }
}

/// `start(command's file, arena's path, signals, targets)`.
template <class Start>
Result<RecordOutcome> run_command(const RecordOptions& options, Start start) {
  if (options.command.empty()) {
    return fail(ErrorCode::invalid_argument, "no command to record was given");
  }
  // The recorder's cost counts from here; any program has the start-up cost before.
  const std::uint64_t cpu_before_ns = own_cpu_ns();
  const Result<std::string> file = find_command(options.command.front());
  if (!file) {
    return error_of(file);
  }
  return run_session(options, cpu_before_ns,
                     [&](const std::string& arena_path, const SignalWatch& signals, Targets& targets) {
                       return start(*file, arena_path, signals, targets);
                     });
}

Result<void> start_observed(const RecordOptions& options, const std::string& file, const std::string& arena_path,
                            const SignalWatch& signals, Targets& targets) {
  const auto environment = command_environment(options.collector, arena_path);
  if (!environment) {
    return error_of(environment);
  }
  Result<Child> child = Child::start(file, options.command, *environment, signals);
  if (!child) {
    return error_of(child);
  }
  targets.emplace_back(std::move(*child));
  return {};
}

Result<AttachedProcesses> attach(Attachment attachment, const std::string& arena_path) {
  try {
    return AttachedProcesses::attach(std::move(attachment), arena_path, monotonic_ns());
  } catch (const std::exception& error) {
    return fail(ErrorCode::system, std::string("cannot observe the command: ") + error.what());
  }
}

Result<void> start_and_attach(const RecordOptions& options, const CommandAttachment& attachment,
                              const std::string& file, const std::string& arena_path, const SignalWatch& signals,
                              Targets& targets) {
  Result<Child> child = Child::start(file, options.command, plain_environment(), signals, Begin::held);
  if (!child) {
    return error_of(child);
  }
  Attachment later = attachment(child->pid());
  if (!child->held()) {  // it already runs and may end before the attachment, which must not fail then
    later.delay_ns = std::max<std::uint64_t>(later.delay_ns, 1);
  }
  Result<AttachedProcesses> attached = attach(std::move(later), arena_path);
  if (!attached) {
    child->kill();
    return error_of(attached);
  }
  child->release();
  targets.emplace_back(std::move(*child));
  targets.emplace_back(std::move(*attached));
  return {};
}

}  // namespace

Result<RecordOutcome> record(const RecordOptions& options) {
  return run_command(options,
                     [&](const std::string& file, const std::string& arena_path, const SignalWatch& signals,
                         Targets& targets) { return start_observed(options, file, arena_path, signals, targets); });
}

Result<RecordOutcome> record_from_outside(const RecordOptions& options, const CommandAttachment& attachment) {
  return run_command(options, [&](const std::string& file, const std::string& arena_path, const SignalWatch& signals,
                                  Targets& targets) {
    return start_and_attach(options, attachment, file, arena_path, signals, targets);
  });
}

Result<RecordOutcome> record_attached(const RecordOptions& options, const Attachment& attachment) {
  return run_session(
      options, own_cpu_ns(),
      [&](const std::string& arena_path, const SignalWatch& /*signals*/, Targets& targets) -> Result<void> {
        Result<AttachedProcesses> attached = AttachedProcesses::attach(attachment, arena_path, monotonic_ns());
        if (!attached) {
          return error_of(attached);
        }
        targets.emplace_back(std::move(*attached));
        return {};
      });
}

Error execute_unrecorded(const std::vector<std::string>& command) {
  const Result<std::string> file = find_command(command.front());
  if (!file) {
    return file.error();
  }
  restore_limits();
  return execute(*file, command, plain_environment());
}

}  // namespace crosstalk::daemon
