// SPDX-License-Identifier: Apache-2.0
#include "daemon/session.h"

#include <utility>

#include "daemon/arena.h"
#include "daemon/host_info.h"
#include "daemon/launch.h"
#include "daemon/output_files.h"
#include "daemon/recorder.h"
#include "daemon/signals.h"
#include "daemon/target.h"
#include "profile/writer.h"

namespace crosstalk::daemon {
namespace {

template <class T>
tl::unexpected<Error> error_of(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

}  // namespace

Result<RecordOutcome> record(const RecordOptions& options) {
  if (options.command.empty()) {
    return fail(ErrorCode::invalid_argument, "no command to record was given");
  }
  // The recorder's cost is counted from here: what came before is the start of any program.
  const std::uint64_t cpu_before_ns = own_cpu_ns();
  const Result<std::string> file = find_command(options.command.front());
  if (!file) {
    return error_of(file);
  }
  Result<Arena> arena = Arena::create(options.config);
  if (!arena) {
    return error_of(arena);
  }
  const auto environment = command_environment(options.collector, arena->path());
  if (!environment) {
    return error_of(environment);
  }
  const Result<SignalWatch> signals = SignalWatch::begin();
  if (!signals) {
    return error_of(signals);
  }
  const OutputFiles output(options.output);
  Result<profile::ProfileWriter> writer = profile::ProfileWriter::create(options.output);
  if (!writer) {
    return error_of(writer);
  }
  std::optional<Recorder> recorder(std::in_place, options, std::move(*arena), std::move(*writer), cpu_before_ns);
  recorder->begin();
  Result<Child> child = Child::start(*file, options.command, *environment, *signals);
  if (!child) {
    recorder.reset();
    output.undo();
    return error_of(child);
  }
  Targets targets;
  targets.emplace_back(std::move(*child));
  return recorder->run(targets, *signals);
}

Result<RecordOutcome> record_attached(const RecordOptions& options, const Attachment& attachment) {
  const std::uint64_t cpu_before_ns = own_cpu_ns();
  Result<Arena> arena = Arena::create(options.config);
  if (!arena) {
    return error_of(arena);
  }
  const Result<SignalWatch> signals = SignalWatch::begin();  // the collector's thread leaves them to us
  if (!signals) {
    return error_of(signals);
  }
  const OutputFiles output(options.output);
  Result<profile::ProfileWriter> writer = profile::ProfileWriter::create(options.output);
  if (!writer) {
    return error_of(writer);
  }
  const std::string arena_path = arena->path();
  std::optional<Recorder> recorder(std::in_place, options, std::move(*arena), std::move(*writer), cpu_before_ns);
  recorder->begin();
  Result<AttachedProcess> process = AttachedProcess::attach(attachment, arena_path, monotonic_ns());
  if (!process) {
    recorder.reset();
    output.undo();
    return error_of(process);
  }
  Targets targets;
  targets.emplace_back(std::move(*process));
  return recorder->run(targets, *signals);
}

}  // namespace crosstalk::daemon
