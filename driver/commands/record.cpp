// SPDX-License-Identifier: Apache-2.0
// `crosstalk record`: checks everything that can be refused before the command starts.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"
#include "collectors/core_times.h"
#include "collectors/facilities/probe.h"
#include "collectors/pmu/event_trial.h"
#include "daemon/arena.h"
#include "daemon/own_limits.h"
#include "daemon/session.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/files/collector_path.h"
#include "driver/files/cost_file.h"
#include "driver/files/machine_file.h"
#include "driver/files/output_file.h"
#include "driver/options/record_options.h"
#include "driver/recording/attach.h"
#include "driver/recording/counter_selection.h"
#include "driver/recording/few_samples.h"
#include "driver/recording/inject.h"
#include "driver/recording/machine_limits.h"
#include "driver/recording/memory_sampling.h"
#include "driver/recording/method_choice.h"
#include "driver/recording/source_selection.h"
#include "driver/service/connection.h"
#include "driver/service/remote_recording.h"
#include "driver/terminal/log.h"
#include "driver/terminal/progress_line.h"

namespace crosstalk::driver {

namespace {

/// Everything that a session needs to begin.
struct Preparation {
  daemon::RecordOptions options;
  std::optional<daemon::Attachment> attachment;         // to running processes
  std::optional<daemon::CommandAttachment> to_command;  // watched from outside
  SourceSelection source;
  CounterSelection counters;
};

Result<void> check_machine(const RecordRequest& request, const collectors::Probe& probe) {
  const auto* const kernel = facility_of(probe, "kernel");
  if (kernel != nullptr && !kernel->available) {
    return fail(ErrorCode::unsupported, kernel->found + " is too old: crosstalk needs " + kernel->remedy);
  }
  const auto* const clock = facility_of(probe, "perf task-clock");
  if (request.config.clock == profile::ClockKind::perf && !probe.perf_allowed && clock != nullptr) {
    return fail(ErrorCode::permission, "--event task-clock: " + clock->found +
                                           (clock->remedy.empty() ? "" : "; to allow it: " + clock->remedy) +
                                           "; or use --event thread-timer");
  }
  return {};
}

/// The outer recording uses the facilities that this machine then seems to lack.
std::vector<profile::MessageRow> inside_another() {
  return {
      {"recorded_itself",
       "this recorder is itself being recorded (crosstalk record -- crosstalk record ...): what it starts belongs to "
       "that recording, so that this one has nothing in it; record the command alone"}};
}

/// Returns the target and the reason to watch it from outside, in words that come before "watched from outside"; empty
/// if nothing requires it.
std::string what_from_outside(const RecordRequest& request, const collectors::JudgedCommand& command,
                              const SourceSelection& source, const CounterSelection& counters) {
  if (!command.obstacle.empty()) {
    return command.path + " " + command.obstacle + ", so it was";
  }
  if (request.observer) {
    return "as --observer asks, the command was";
  }
  if (const std::string limit = daemon::limit_against_library(); !limit.empty()) {
    return limit + ", so the command was";
  }
  if (!source.asked_by.empty() && !obstacle_inside(source).empty()) {
    return "because " + source.asked_by + " requires it, the command was";
  }
  if (counters.asked && !counters.groups.empty()) {
    return "because --counters requires it, the command was";
  }
  return request.delay_ns != 0 ? "because --delay requires it, the command was" : "";
}

/// Checks that perf events on other processes' threads are allowed.
Result<void> check_events(const RecordRequest& request, const collectors::Probe& probe) {
  const auto* const clock = facility_of(probe, "perf task-clock");
  if (!probe.perf_allowed && clock != nullptr) {
    return fail(ErrorCode::permission, "perf events are forbidden (" + clock->found + ")" +
                                           (clock->remedy.empty() ? "" : "; to allow them: " + clock->remedy));
  }
  if (request.config.clock == profile::ClockKind::posix) {
    return fail(ErrorCode::invalid_argument, "the event thread-timer is only for what is preloaded into");
  }
  return {};
}

OutsideMeans means_of(const collectors::Probe& probe, const Preparation& prepared) {
  return {probe.watchpoints_allowed ? probe.debug_registers : 0, prepared.source.chosen.events,
          prepared.counters.groups};
}

Result<void> prepare_watching(const RecordRequest& request, const collectors::Probe& probe,
                              const collectors::JudgedCommand& command, const std::string& what,
                              Preparation& prepared) {
  Result<void> allowed = check_events(request, probe);
  if (allowed && command.privileged && ::geteuid() != 0) {
    allowed = fail(ErrorCode::permission, "it gets rights that its observer lacks; record as root, or a copy of it");
  }
  if (!allowed) {
    const std::string obstacle = command.obstacle.empty() ? "" : command.obstacle + ", and ";
    return fail(allowed.error().code,
                command.path + " " + obstacle + "cannot be watched from outside: " + allowed.error().message);
  }
  WatchedCommand watched = watch_command(request, what, means_of(probe, prepared));
  prepared.to_command = std::move(watched.attachment);
  // The user asked for it, so this is a remark instead of a warning.
  (request.observer && command.obstacle.empty() ? prepared.options.remarks : prepared.options.warnings)
      .push_back(std::move(watched.warning));
  prepared.options.from_outside = true;
  return {};
}

/// Sets the session up for a collector inside the target, which samples there.
void place_inside(Preparation& prepared) {
  prepared.source = inside(std::move(prepared.source));
  prepared.options.memory = sampling_inside(prepared.source.chosen.events);
  const bool watchdog = collectors::watchdog_competes(prepared.source.chosen.source);
  prepared.options.remarks_on_memory = [watchdog](const profile::MemoryCounts& counts) {
    return remarks_on_memory(counts, watchdog);
  };
}

/// Checks that the command can be launched under observation.
Result<void> prepare_command(const RecordRequest& request, const collectors::Probe& probe, Preparation& prepared) {
  const auto command = collectors::check_command(request.command.front());
  if (!command) {
    return tl::unexpected<Error>(command.error());
  }
  log_detail("the command is " + command->path);
  prepared.options.command = request.command;
  if (std::getenv("NOTIFY_SOCKET") != nullptr) {
    prepared.options.warnings.push_back(
        {"notify_socket",
         "systemd expects notifications from the service's main process (NOTIFY_SOCKET), which is crosstalk while the "
         "command is recorded: set NotifyAccess=all in the unit"});
  }
  if (const std::string what = what_from_outside(request, *command, prepared.source, prepared.counters);
      !what.empty()) {
    return prepare_watching(request, probe, *command, what, prepared);
  }
  const auto collector = find_collector();
  if (!collector) {
    return tl::unexpected<Error>(collector.error());
  }
  log_detail("the collector is " + *collector);
  prepared.options.collector = *collector;
  place_inside(prepared);
  prepared.counters = no_counters_inside(std::move(prepared.counters));
  if (const Result<void> allowed = check_events(request, probe); allowed) {
    prepared.options.substitute = watch_beside_library(request, means_of(probe, prepared));
  } else {
    prepared.options.no_substitute = "it could not be watched from outside: " + allowed.error().message;
  }
  return {};
}

/// Checks that the processes can be attached to, and that the events are allowed.
Result<void> prepare_attachment(const RecordRequest& request, const collectors::Probe& probe, Preparation& prepared) {
  auto target = request.inject ? inject_into(request) : attach_to(request, means_of(probe, prepared));
  if (!target) {
    return tl::unexpected<Error>(target.error());
  }
  if (auto allowed = check_events(request, probe); !allowed && !request.inject) {
    return fail(allowed.error().code, "-p: " + allowed.error().message);
  }
  if (request.inject) {
    if (const std::string obstacle = obstacle_inside(prepared.source);
        !obstacle.empty() && !prepared.source.asked_by.empty()) {
      return fail(ErrorCode::unsupported, "--inject: " + prepared.source.asked_by + ": " + obstacle +
                                              "; leave --inject out, or take --source clock");
    }
    place_inside(prepared);
    prepared.counters = no_counters_inside(std::move(prepared.counters));
  }
  prepared.options.from_outside = true;
  prepared.options.command_text = std::move(target->command);
  (request.inject ? prepared.options.warnings : prepared.options.remarks) = std::move(target->warnings);
  prepared.attachment = std::move(target->attachment);
  return {};
}

/// Records and logs why this source was chosen. Warns if the kernel refuses a better source that the machine has.
void say_source(const SourceSelection& source, daemon::RecordOptions& options) {
  options.source_name = profile::name_of(source.chosen.source);
  options.source_choice = collectors::in_words(source.chosen.verdicts);
  for (const collectors::SourceVerdict& verdict : source.chosen.verdicts) {
    const std::string line =
        std::string(profile::name_of(verdict.source)) + ": " + (verdict.reason.empty() ? "chosen" : verdict.reason);
    if (verdict.remediable) {
      options.warnings.push_back({"source_refused", line});
    } else {
      log_detail("source " + line);
    }
  }
}

void say_counters(const CounterSelection& counters, daemon::RecordOptions& options) {
  options.counters = collectors::counter_rows({counters.groups, {}});
  const CounterWords words = words_of(counters);
  options.warnings.insert(options.warnings.end(), words.warnings.begin(), words.warnings.end());
  options.remarks.insert(options.remarks.end(), words.remarks.begin(), words.remarks.end());
  if (!counters.refusal.empty()) {
    log_detail("counters: " + counters.refusal);
  }
  for (const profile::CounterRow& row : options.counters) {
    log_detail(fmt::format("counters: group {}: {} by {}", row.group, row.name, row.event));
  }
}

/// Stores this machine's figures in the profile, so that reports can be made on another one.
void stamp_machine(daemon::RecordOptions& options) {
  auto stamp = stamp_of_this_machine();
  if (stamp) {
    options.machine = std::move(*stamp);
  } else {
    options.warnings.push_back({"machine_file_refused", stamp.error().message});
  }
}

void take_method(const MethodChoice& choice, daemon::RecordOptions& options) {
  options.config.method = choice.method;
  options.method_choice = choice.why;
  if (choice.method != profile::Method::watch) {
    options.config.watchpoints = 0;
  }
  log_detail(std::string("method ") + profile::name_of(choice.method) + ": " + choice.why);
}

void say_costs(const profile::SessionConfig& costs) {
  log_detail(fmt::format(
      "costs: signal {} ns, trap {} ns, context switch {} ns, of a watchpoint {} ns (idle {} ns, closed {} ns), sample "
      "{} ns; while armed: copies {:.1f} times, {} ps a byte; a transfer {} ns",
      costs.signal_cost_ns, costs.trap_cost_ns, costs.switch_cost_ns, costs.watch_switch_cost_ns,
      costs.presence_cost_ns, costs.past_presence_cost_ns, costs.perf_sample_cost_ns,
      1 + costs.armed_copy_permille / 1000.0, costs.armed_byte_ps, costs.transfer_call_ns));
}

/// Chooses the source of samples and the counters.
Result<void> choose_events(const RecordRequest& request, Preparation& prepared) {
  const collectors::MachineDescription machine = collectors::describe_machine();
  auto source = select_source(request, machine, collectors::libpfm4(), collectors::try_event);
  if (!source) {
    return tl::unexpected<Error>(source.error());
  }
  prepared.source = std::move(*source);
  auto counters =
      select_counters(request, machine, collectors::libpfm4(), collectors::try_group, collectors::nmi_watchdog_is_on());
  if (!counters) {
    return tl::unexpected<Error>(counters.error());
  }
  prepared.counters = std::move(*counters);
  return {};
}

/// Checks everything that must hold before the command may start.
Result<Preparation> prepare(const RecordRequest& request) {
  collectors::Probe probe = collectors::probe();
  if (auto fit = check_machine(request, probe); !fit) {
    return tl::unexpected<Error>(fit.error());
  }
  Preparation prepared;
  if (auto chosen = choose_events(request, prepared); !chosen) {
    return tl::unexpected<Error>(chosen.error());
  }
  const std::vector<profile::EventRow> events = number_events(prepared.source.chosen.events);
  daemon::RecordOptions& options = prepared.options;
  if (auto possible = !request.pids.empty() ? prepare_attachment(request, probe, prepared)
                                            : prepare_command(request, probe, prepared);
      !possible) {
    return tl::unexpected<Error>(possible.error());
  }
  const auto output = expand_name(request.output, name_facts());
  if (!output) {
    return tl::unexpected<Error>(output.error());
  }
  if (auto writable = check_writable(*output); !writable) {
    return tl::unexpected<Error>(writable.error());
  }
  options.output = *output;
  options.switch_ns = request.switch_ns;
  options.switch_most = request.switch_most;
  options.config = request.config;
  calibrate_once(probe, options.config);
  options.watch_trial = probe.watch_trial;
  const bool from_outside = options.from_outside && !request.inject;
  if (from_outside) {  // no signal has to report accesses
    options.config.watchpoints_allowed = probe.watchpoints_allowed ? 1 : 0;
  }
  const auto method = choose_method(request.method, probe, from_outside, request.config.watchpoints);
  if (!method) {
    return tl::unexpected<Error>(method.error());
  }
  take_method(*method, options);
  options.core = collectors::measure_core_times();
  options.core_at_end = [](const profile::CoreTimes& before) {
    return collectors::quicker(before, collectors::measure_core_times());
  };
  stamp_machine(options);
  say_costs(options.config);
  say_source(prepared.source, options);
  say_counters(prepared.counters, options);
  if (!prepared.source.chosen.events.empty()) {  // else only the clock is left
    options.events = events;
  }
  options.recorded_itself = request.pids.empty() && daemon::recorded_itself();
  const std::vector<profile::MessageRow> limits =
      options.recorded_itself ? inside_another() : limits_of(request.config, probe, *method);
  options.warnings.insert(options.warnings.end(), limits.begin(), limits.end());
  return prepared;
}

/// Returns how many profiles were written, and where: "wrote 3 profiles, a.db.1 to a.db.3".
std::string written(const daemon::RecordOutcome& outcome) {
  if (outcome.files_made == 0) {
    return "wrote " + outcome.output;
  }
  std::string text = "wrote " + attribution::count_of(outcome.files_made, "profile", "profiles");
  if (outcome.files_kept != outcome.files_made) {
    text +=
        outcome.files_kept == 1 ? " and kept the last one" : fmt::format(" and kept the last {}", outcome.files_kept);
  }
  return text + ", " + outcome.first_output + (outcome.files_kept > 1 ? " to " + outcome.output : "");
}

void say_where(const daemon::RecordOutcome& outcome) {
  const std::string file = outcome.output == "crosstalk.db" ? "" : " " + shell_quoted(outcome.output);
  const daemon::Progress& totals = outcome.totals;
  if (!outcome.loss.empty()) {
    log_warning(
        fmt::format("{} only {} of {} samples and {} of {} accesses trapped: {}; free some space, or choose "
                    "another place with -o, and record again",
                    outcome.files_made != 0 ? written(outcome) + ", which have" : outcome.output + " has",
                    outcome.stored_samples, totals.samples, outcome.stored_traps, totals.traps, outcome.loss));
    return;
  }
  log_notice(fmt::format("{} ({}, {} trapped, overhead {:.1f} %, recorder {:.1f} %); see {} with: crosstalk report{}",
                         written(outcome), attribution::count_of(totals.samples, "sample", "samples"),
                         attribution::count_of(totals.traps, "access", "accesses"), totals.overhead * 100,
                         totals.recorder * 100, outcome.files_made > 1 ? "the last" : "it", file));
}

int refuse(const Error& error) {
  log_error(error.message);
  return exit_status_of(error.code);
}

Result<daemon::RecordOutcome> record_prepared(const Preparation& prepared) {
  if (prepared.attachment) {
    return daemon::record_attached(prepared.options, *prepared.attachment);
  }
  return prepared.to_command ? daemon::record_from_outside(prepared.options, *prepared.to_command)
                             : daemon::record(prepared.options);
}

/// Waits for --delay. Nothing is attached yet, so an interrupt has nothing to save.
void await_begin(const RecordRequest& request) {
  if (!request.pids.empty() && request.delay_ns != 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(request.delay_ns));
  }
}

/// Runs the command unrecorded: the recorder's lack of a resource must not stop the command.
int run_unrecorded(const std::vector<std::string>& command, const Error& why) {
  log_warning(why.message + "; nothing is recorded of the command, which runs as it would alone");
  return refuse(daemon::execute_unrecorded(command));
}

/// Dies of the command's signal, so that a waiting shell sees how the command ended: a shell ends a script if its
/// command was interrupted, but goes on after an exit. Returns if this process cannot die of the signal.
void die_of(int signal) {
  constexpr rlimit no_core{0, 0};  // the recorder's core file might replace the command's
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  std::fflush(nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal);
}

/// Has the daemon record.
int record_elsewhere(const RecordRequest& request) {
  if (const std::string beyond = beyond_daemon(request); !beyond.empty()) {
    return refuse({ErrorCode::invalid_argument, "--daemon: crosstalkd does not take " + beyond + "; leave it out"});
  }
  auto output = expand_name(request.output, name_facts());
  auto recorded = output.and_then(check_writable).and_then([&] { return record_by_daemon(request, *output); });
  if (!recorded) {
    return refuse(recorded.error());
  }
  log_notice("wrote " + *output + "; see it with: crosstalk report" +
             (*output == "crosstalk.db" ? "" : " " + shell_quoted(*output)));
  return exit_ok;
}

/// True if this user lacks a right that the daemon may have.
bool may_ask_daemon(const RecordRequest& request, const Error& error) {
  return error.code == ErrorCode::permission && request.daemon == DaemonWish::automatic &&
         beyond_daemon(request).empty() && has_daemon();
}

int record(const RecordRequest& request) {
  start_logging({request.quiet, request.verbosity});
  if (request.daemon == DaemonWish::always) {
    return record_elsewhere(request);
  }
  auto prepared = prepare(request);
  if (!prepared) {
    if (may_ask_daemon(request, prepared.error())) {
      log_notice("crosstalkd is asked to record, because " + prepared.error().message);
      return record_elsewhere(request);
    }
    return refuse(prepared.error());
  }
  daemon::RecordOptions& options = prepared->options;
  for (const profile::MessageRow& warning : options.warnings) {
    log_warning(warning.text);
  }
  if (const std::string source = in_a_line(prepared->source); !source.empty() && request.pidfds.empty()) {
    log_notice(source);
  }
  const bool inside = !prepared->attachment && !prepared->to_command;
  if (const std::string clock = coarse_clock_in_a_line(options.config, kernel_tick_ns()); inside && !clock.empty()) {
    log_notice(clock);
  }
  await_begin(request);
  ProgressLine line(!request.quiet);
  options.progress = [&line](const daemon::Progress& progress) { line.show(progress); };
  options.warn = [&line](const std::string& text) {
    line.erase();
    log_error(text);  // -q says it, too: the profile may not have it
  };
  const auto outcome = record_prepared(*prepared);
  line.erase();
  if (!outcome) {
    const bool for_want = outcome.error().code == ErrorCode::system && !options.command.empty();
    return for_want ? run_unrecorded(options.command, outcome.error()) : refuse(outcome.error());
  }
  if (request.pidfds.empty()) {  // a service tells its client where it is
    say_where(*outcome);
  }
  say_why_few_samples(request, *outcome);
  if (outcome->death_signal) {
    die_of(*outcome->death_signal);
  }
  return outcome->exit_status;
}

}  // namespace

int run_record(const Arguments& arguments) { return serve(parse_record(arguments), record); }

}  // namespace crosstalk::driver
