// SPDX-License-Identifier: Apache-2.0
#include "daemon/recorder.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/host_info.h"
#include "daemon/process_state.h"
#include "daemon/record_checks.h"

namespace crosstalk::daemon {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t second = 1000 * ms;

constexpr std::uint64_t first_commit_ns = 600 * ms;
constexpr int usual_timeout_ms = 50;
constexpr int idle_timeout_ms = 100;
constexpr int busy_timeout_ms = 5;
// Longest wait for attached processes after the command's end.
constexpr std::uint64_t patience_ns = 1 * second;
// The last forked process may not have attached yet.
constexpr std::uint64_t grace_ns = 10 * ms;
// A failing exec fails sooner.
constexpr std::uint64_t exec_patience_ns = 2 * second;
constexpr std::size_t most_waiting = 100'000;  // threads
constexpr std::uint64_t retry_ns = 5 * second;
// A file stays open for so long after its interval, for rows that come late: longer than a watch lasts, and than the
// rings go unread.
constexpr std::uint64_t late_rows_ns = 150 * ms;
// It stays open longer while an outside collector has not handled all of its interval, on a busy machine, but not for
// ever.
constexpr std::uint64_t longest_open_ns = 2 * second;
constexpr std::uint64_t look_again_ns = 20 * ms;

std::uint64_t handled_until_ns(const Targets& targets) {
  std::uint64_t until_ns = UINT64_MAX;
  for (const Target& target : targets) {
    until_ns = std::min(until_ns, target.handled_until_ns());
  }
  return until_ns;
}

/// True if the launched command has ended. Only a watched command's attachment can outlive it.
bool command_has_ended(const Targets& targets) {
  return targets.size() > 1 && targets.front().launched() && targets.front().ended();
}

int ms_until(std::uint64_t due_ns, std::uint64_t now_ns, int usual_ms) {
  return due_ns == 0 ? usual_ms
                     : static_cast<int>(std::min<std::uint64_t>((due_ns - std::min(due_ns, now_ns) + ms - 1) / ms,
                                                                static_cast<std::uint64_t>(usual_ms)));
}

}  // namespace

Recorder::Recorder(const RecordOptions& options, Arena arena, profile::ProfileWriter writer,
                   std::optional<SwitchedFiles> output, std::uint64_t cpu_before_ns)
    : options_(&options),
      arena_(std::move(arena)),
      sink_(std::move(writer), std::move(output), options.warn),
      files_(options.command.empty() ? 0 : ::time(nullptr)),  // attached processes may have started long ago
      decoder_(sink_, [this](pid_t pid, profile::ModuleRow& row) { files_.identify(pid, row); }),
      drainer_(arena_, decoder_, options.from_outside ? Ends::told : Ends::found),
      unobserved_(sink_, [this](const UnobservedProgram& program) { add_unobserved(program); }),
      substitute_(options),
      cpu_before_ns_(cpu_before_ns) {
  if (options.switch_ns != 0) {
    files_.keep_for_later_files();
    decoder_.keep_for_later_files();
  }
}

void Recorder::begin() {
  now_ns_ = monotonic_ns();
  sink_.begin(decoder_.process_table(), now_ns_);
  due_.change = options_->switch_ns != 0 ? now_ns_ + options_->switch_ns : 0;
  session_.command = options_->command_text.empty() ? shell_quoted(options_->command) : options_->command_text;
  session_.begin_ns = now_ns_;
  session_.begin_unix_ns = clock_ns(CLOCK_REALTIME);
  session_.end_ns = now_ns_;
  session_.source = options_->source_name;
  session_.source_choice = options_->source_choice;
  session_.method_choice = options_->method_choice;
  session_.version = CROSSTALK_VERSION;
  session_.config = options_->config;
  session_.core = options_->core;
  session_.machine = options_->machine;
  session_.watch_trial = options_->watch_trial;
  describe_host(session_);
  put_given();
  arena_.header().heartbeat_ns.store(now_ns_, std::memory_order_relaxed);
  commit(now_ns_);
  if (options_->switch_ns != 0) {  // who reads its files may look at the beginning of the first one
    due_.commit = now_ns_ + first_commit_ns;
  }
}

RecordOutcome Recorder::run(Targets& targets, const SignalWatch& signals, SignalRelay& relay) {
  due_.progress = now_ns_ + second / 2;
  timeout_ms_ = busy_timeout_ms;  // the first processes attach
  while (true) {
    wait(std::min(timeout_ms_, relay.due_in_ms(monotonic_ns()).value_or(timeout_ms_)), targets, signals);
    pass_on_signals(targets, signals, relay);
    // Checked before the rings are read, so that the last pass has everything that the targets wrote.
    const bool last = over(targets);
    pass(targets);
    stop_with_command(targets);
    if (last) {
      break;
    }
  }
  relay.decide_now();
  pass_on_signals(targets, signals, relay);
  end(targets);
  RecordOutcome outcome = outcome_of(targets.front());
  outcome.exit_status = session_.exit_status.value_or(0);
  outcome.loss = sink_.first_loss();
  return outcome;
}

RecordOutcome Recorder::outcome_of(const Target& first) const {
  RecordOutcome outcome;
  outcome.exit_status = first.status().value_or(0);
  outcome.death_signal = first.death_signal();
  outcome.totals = progress_now();
  outcome.output = options_->output;
  outcome.stored_samples = sink_.stored().samples;
  outcome.stored_traps = sink_.stored().traps;
  if (const SwitchedFiles* const names = sink_.names()) {
    outcome.files_made = names->files_made();
    outcome.files_kept = names->files_kept();
    outcome.first_output = names->oldest();
    outcome.output = names->latest();
  }
  return outcome;
}

RecordOutcome Recorder::abandon(Targets& targets, const SignalWatch& signals, SignalRelay& relay,
                                const std::string& why) {
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping), std::memory_order_release);
  if (options_->warn) {
    options_->warn("the recording has failed (" + why + "): the command goes on without it");
  }
  Target& first = targets.front();
  while (first.launched() && !first.ended() && !first.just_ended(monotonic_ns())) {
    wait(std::min(usual_timeout_ms, relay.due_in_ms(monotonic_ns()).value_or(usual_timeout_ms)), targets, signals);
    pass_on_signals(targets, signals, relay);
    stop_with_command(targets);
  }
  RecordOutcome outcome = outcome_of(first);
  outcome.loss = why;
  return outcome;
}

void Recorder::wait(int timeout_ms, const Targets& targets, const SignalWatch& signals) {
  std::vector<pollfd> polled{{signals.fd(), POLLIN, 0}};
  for (const Target& target : targets) {
    polled.push_back({target.fd(), POLLIN, 0});
  }
  ::poll(polled.data(), polled.size(), timeout_ms);
}

bool Recorder::sent_by_observed(const Targets& targets, pid_t sender) const {
  const auto is_its_parent = [&](const Target& target) {
    return target.launched() && descends_from(sender, *target.launched());
  };
  return sender != 0 && (std::any_of(targets.begin(), targets.end(), is_its_parent) ||
                         decoder_.process_table().latest_process(sender));
}

// Forwards signals. The session ends with the command, however many signals arrive, so that the profile is not lost.
void Recorder::pass_on_signals(Targets& targets, const SignalWatch& signals, SignalRelay& relay) const {
  std::vector<SignalWatch::Arrival> arrived;
  while (const auto arrival = signals.take()) {
    arrived.push_back(*arrival);
    arrived.back().by_observed = sent_by_observed(targets, arrival->sender);
  }
  Target& first = targets.front();
  const bool for_command = first.launched().has_value();
  for (const SignalWatch::Arrival& arrival : for_command ? relay.to_be_sent(arrived, monotonic_ns()) : arrived) {
    if (for_command && arrival.by_observed) {
      // Its parent is the recorder in place of the recorder's own parent, which the signal is meant for.
      if (const pid_t parent = ::getppid(); parent > 1) {
        pass_on(parent, arrival);
      }
    } else {
      first.send(arrival);
    }
  }
}

// Stops the recorder with the command, because its starter waits for it as for the command.
void Recorder::stop_with_command(Targets& targets) {
  for (Target& target : targets) {
    if (const std::optional<int> signal = target.take_stop()) {
      stop_with(*target.launched(), *signal);
    }
  }
}

/// `handled_ns`: all that happened before was in the rings when they were drained.
void Recorder::finish_file(std::uint64_t handled_ns) {
  if (due_.finish == 0 || now_ns_ < due_.finish) {
    return;
  }
  if (handled_ns < switched_ns_ && now_ns_ < switched_ns_ + longest_open_ns) {
    due_.finish = now_ns_ + look_again_ns;
    return;
  }
  due_.finish = 0;
  sink_.finish_ended();
}

void Recorder::pass(Targets& targets) {
  const std::uint64_t handled_ns = handled_until_ns(targets);
  now_ns_ = monotonic_ns();
  sink_.set_now(now_ns_);
  const Drainer::Pass pass = drainer_.drain(now_ns_);
  take_unobserved();
  watch_unobserved(targets);
  if (now_ns_ >= due_.commit) {
    drainer_.find_lost_threads(now_ns_);
    commit(now_ns_);
  }
  finish_file(handled_ns);
  if (due_.change != 0 && now_ns_ >= due_.change && !winding_up_) {
    change_files(targets);
  }
  timeout_ms_ = ms_until(due_.finish, now_ns_, ms_until(due_.change, now_ns_, next_timeout_ms(pass)));
  if (now_ns_ >= due_.progress) {
    due_.progress = now_ns_ + second / 2;
    if (options_->progress) {
      drainer_.read_totals(now_ns_);
      options_->progress(progress_now());
    }
  }
}

int Recorder::next_timeout_ms(const Drainer::Pass& pass) const {
  if (winding_up_ || pass.fullest > arena_.ring_bytes() / 4) {
    return busy_timeout_ms;
  }
  return pass.bytes == 0 ? idle_timeout_ms : usual_timeout_ms;
}

/// Stops waiting for a command's children that are watched from outside, after the same time as for self-observed ones.
void Recorder::leave_children(Targets& targets) {
  if (!command_has_ended(targets) || all_ended(targets) || monotonic_ns() - last_end_ns(targets) < patience_ns) {
    return;
  }
  const bool watched = std::any_of(targets.begin(), targets.end(),
                                   [](const Target& target) { return !target.launched() && target.fd() >= 0; });
  for (Target& target : targets) {
    target.leave();
  }
  if (watched && drainer_.liveness().alive().empty()) {  // else end() says so of all
    message("children_left_running",
            "processes that the command started still ran a second after its end; the recording lacks their later "
            "activity");
  }
}

bool Recorder::over(Targets& targets) {
  leave_children(targets);
  if (targets.front().ended() && monotonic_ns() - targets.front().ended_ns() > grace_ns) {
    substitute_.expect_no_more(targets);
  }
  for (Target& target : targets) {
    if (target.just_ended(monotonic_ns())) {
      session_.exit_status = targets.front().status();
    }
  }
  if (!all_ended(targets)) {
    return false;
  }
  if (!winding_up_) {  // at least one more pass, for the last records
    winding_up_ = true;
    return false;
  }
  const Target& first = targets.front();
  const std::uint64_t waited_ns = monotonic_ns() - (first.launched() ? first.ended_ns() : last_end_ns(targets));
  return waited_ns > (drainer_.liveness().alive().empty() ? grace_ns : patience_ns);
}

void Recorder::commit(std::uint64_t now_ns) {
  due_.commit = now_ns + second;
  sink_.set_now(now_ns);
  retry_if_failing(now_ns);
  drainer_.read_totals(now_ns);
  decoder_.flush(now_ns);
  put_copies();
  unobserved_.settle(now_ns - std::min(now_ns, exec_patience_ns));
  update_session(now_ns);
  sink_.put(session_);
  sink_.commit();
  // While the profile cannot be written, ended processes and threads wait for a retry, up to a limit.
  if (!sink_.may_retry() || decoder_.process_table().known_threads() > most_waiting) {
    decoder_.evict(now_ns);
  }
}

void Recorder::update_session(std::uint64_t now_ns) {
  session_.end_ns = now_ns;
  session_.recorder_cpu_ns = own_cpu_ns() - cpu_before_ns_;
  const profile::ProbeCounts& probes = arena_.header().probe_counts;
  session_.skipped_probes = {
      probes.unreadable.load(std::memory_order_relaxed), probes.in_handlers.load(std::memory_order_relaxed),
      probes.beside_another.load(std::memory_order_relaxed), probes.went_on.load(std::memory_order_relaxed)};
  session_.waits = drainer_.waits();
  session_.memory_bytes = std::max(session_.memory_bytes, arena_.bytes_in_use() + own_memory_bytes());
}

void Recorder::retry_if_failing(std::uint64_t now_ns) {
  if (!sink_.may_retry() || now_ns < due_.retry) {
    return;
  }
  due_.retry = now_ns + retry_ns;
  sink_.retry();
  decoder_.put_everything();
  put_given();
}

/// Begins the next profile. Divides the recording before the rings are read, so that each row goes to its side.
void Recorder::change_files(Targets& targets) {
  sink_.finish_ended();
  due_.change += options_->switch_ns;
  due_.change = due_.change > now_ns_ ? due_.change : now_ns_ + options_->switch_ns;
  due_.retry = 0;  // one last try
  retry_if_failing(now_ns_);
  now_ns_ = monotonic_ns();
  sink_.begin_next(now_ns_, arena_.header().next_watch.load(std::memory_order_relaxed), session_);
  (void)drainer_.drain(now_ns_);
  take_unobserved();
  end_file(targets);
  sink_.hand_over();
  begin_file();
  commit(now_ns_);
  switched_ns_ = now_ns_;
  due_.finish = now_ns_ + late_rows_ns;
}

/// Puts the last rows of the profile that ends, as end() does for the last one.
void Recorder::end_file(Targets& targets) {
  put_remarks(targets);
  drainer_.read_totals_exactly(now_ns_);
  decoder_.flush(now_ns_);
  files_.look_again();
  files_.read_compilers_files();
  put_copies();
  put_losses();
  update_session(now_ns_);
  session_.complete = true;
  sink_.put(session_);
  sink_.commit();
  decoder_.evict(now_ns_);
  session_.complete = false;
  session_.memory_bytes = 0;
}

/// Puts into the new profile all that its rows refer to.
void Recorder::begin_file() {
  sink_.put(session_);
  put_given();
  decoder_.begin_file(sink_.present());
  std::vector<profile::ModuleRow> in_use;
  decoder_.for_each_module([&in_use](const profile::ModuleRow& row) { in_use.push_back(row); });
  files_.begin_file(in_use);
}

/// Stores files that are no longer where they were mapped from.
void Recorder::put_copies() {
  files_.look_again();
  for (const profile::KeptFileRow& copy : files_.take_copies()) {
    sink_.put(copy);
  }
}

/// Stores everything that was known before the start.
void Recorder::put_given() {
  for (const profile::EventRow& event : options_->events) {
    sink_.put(event);
  }
  for (const auto* const messages : {&options_->warnings, &options_->remarks}) {
    for (const profile::MessageRow& message : *messages) {
      sink_.put(message);
    }
  }
  for (const profile::CounterRow& counter : options_->counters) {
    sink_.put(counter);
  }
}

void Recorder::put_remarks(Targets& targets) {
  session_.unobserved_cpu_ns.reset();
  for (Target& target : targets) {
    if (const auto unobserved_ns = target.unobserved_cpu_ns()) {
      session_.unobserved_cpu_ns = session_.unobserved_cpu_ns.value_or(0) + *unobserved_ns;
    }
    for (const profile::MessageRow& remark : target.take_remarks()) {
      sink_.put(remark);
    }
    for (profile::ProcessRow& process : target.take_unobserved()) {
      decoder_.add_unobserved(std::move(process));
    }
  }
}

void Recorder::end(Targets& targets) {
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping), std::memory_order_release);
  now_ns_ = monotonic_ns();
  sink_.set_now(now_ns_);
  (void)drainer_.drain(now_ns_);
  const std::vector<pid_t> left = drainer_.liveness().alive();
  if (options_->core_at_end) {
    session_.core = options_->core_at_end(session_.core);
  }
  sink_.finish_ended();
  due_.retry = 0;  // one last try
  retry_if_failing(now_ns_);
  for (const Target& target : targets) {
    if (const auto status = target.status()) {
      decoder_.set_exit_status(*target.launched(), *status, target.ended_ns());
    }
  }
  put_remarks(targets);
  drainer_.finish(now_ns_);
  decoder_.finish();
  files_.read_compilers_files();
  take_unobserved();
  unobserved_.finish();
  if (!left.empty()) {
    message("children_left_running", std::to_string(left.size()) +
                                         " processes still ran a second after the command's end (pid " +
                                         std::to_string(left.front()) + (left.size() > 1 ? ", ..." : "") +
                                         "); the recording lacks their later activity");
  }
  put_not_observed(targets.front().launched());
  put_losses();
  session_.complete = true;
  commit(now_ns_);
  sink_.finish();
}

void Recorder::take_unobserved() {
  for (UnobservedProgram& program : take_notices(arena_.header())) {
    unobserved_.take(std::move(program));
  }
}

void Recorder::watch_unobserved(Targets& targets) {
  unobserved_.offer([&](UnobservedProgram& program) {
    const bool watched = substitute_.watch(program, arena_.path(), now_ns_, targets);
    if (watched) {
      message("program_watched_from_outside", describe_watched(program));
    }
    return watched;
  });
}

void Recorder::add_unobserved(const UnobservedProgram& program) {
  profile::ProcessRow row;
  row.pid = program.pid;
  row.executable = program.program;
  row.command = shell_quoted(std::vector<std::string>{program.program});  // its arguments are unknown
  row.begin_ns = program.time_ns;
  row.unobserved_because = reason_of(program);
  decoder_.add_unobserved(std::move(row));
}

void Recorder::put_not_observed(std::optional<pid_t> launched) {
  if (decoder_.process_table().processes_begun() != 0 || options_->recorded_itself || options_->from_outside) {
    return;
  }
  const std::string text =
      "the command never loaded the collector: it may be statically linked, setuid, or start no "
      "dynamically linked program";
  message("not_observed", text);
  profile::ProcessRow row;
  row.pid = launched.value_or(0);
  row.parent_pid = ::getpid();
  row.command = session_.command;
  row.begin_ns = session_.begin_ns;
  row.exit_status = session_.exit_status;
  row.unobserved_because = text;
  decoder_.add_unobserved(std::move(row));
}

void Recorder::put_losses() {
  const LossCounts counts{drainer_.lost_records(), drainer_.corruptions() + decoder_.malformed(), drainer_.unread(),
                          arena_.slot_count()};
  const Losses::RemarksOnMemory none;
  for (const profile::MessageRow& row :
       losses_.take(counts, arena_.header(), options_->memory.events != 0 ? options_->remarks_on_memory : none)) {
    sink_.put(row);
  }
  if (const std::uint64_t late = sink_.take_late(); late != 0) {
    message(
        "rows_late",
        std::to_string(late) +
            " samples and trapped accesses arrived after the profile of their interval was finished, so no profile has "
            "them; longer intervals (--switch-output) lose fewer",
        late);
  }
  if (!sink_.loss().empty()) {
    message("profile_incomplete", "rows were lost: " + sink_.loss());
  }
}

void Recorder::message(const char* code, std::string text, std::uint64_t count) {
  sink_.put(profile::MessageRow{code, std::move(text), count});
}

Progress Recorder::progress_now() const {
  Progress progress;
  progress.elapsed_s = static_cast<double>(now_ns_ - session_.begin_ns) * 1e-9;
  progress.samples = decoder_.samples();
  progress.traps = decoder_.traps();
  progress.watches = decoder_.watches();
  progress.threads = drainer_.live_slots();
  const ProcessTable::Spent spent = decoder_.process_table().spent();
  const std::uint64_t observing_ns = spent.observing_ns + decoder_.stand_ins_ns();
  const auto of_theirs = [&](std::uint64_t ns) {
    return spent.cpu_ns > 0 ? static_cast<double>(ns) / static_cast<double>(spent.cpu_ns) : 0;
  };
  progress.overhead = of_theirs(observing_ns);
  progress.recorder = of_theirs(session_.recorder_cpu_ns);
  return progress;
}

}  // namespace crosstalk::daemon
