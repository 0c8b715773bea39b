// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/arena.h"
#include "daemon/drainer.h"
#include "daemon/losses.h"
#include "daemon/module_files.h"
#include "daemon/profile_files.h"
#include "daemon/record_decoder.h"
#include "daemon/record_options.h"
#include "daemon/signal_relay.h"
#include "daemon/signals.h"
#include "daemon/substitute.h"
#include "daemon/target.h"
#include "daemon/unobserved_programs.h"

namespace crosstalk::daemon {

/// The running session: arena, rings and profile, from the targets' start to the finished file. target.h has the
/// targets. One thread.
class Recorder {
 public:
  /// `output`: where the first profile begins.
  Recorder(const RecordOptions& options, Arena arena, profile::ProfileWriter writer,
           std::optional<SwitchedFiles> output, std::uint64_t cpu_before_ns);

  /// Writes the session to the profile. Call it before the targets start.
  void begin();
  /// Drains until all targets and their observed children have ended. The outcome's status is the first target's.
  /// `relay` selects the signals to forward to the command.
  RecordOutcome run(Targets& targets, const SignalWatch& signals, SignalRelay& relay);

  /// Waits for the command after recording has failed, and keeps its status; releases the observed processes.
  RecordOutcome abandon(Targets& targets, const SignalWatch& signals, SignalRelay& relay, const std::string& why);

  [[nodiscard]] const Arena& arena() const { return arena_; }

 private:
  /// Due times of periodic work, CLOCK_MONOTONIC ns.
  struct Due {
    std::uint64_t commit = 0, progress = 0, retry = 0;
    std::uint64_t change = 0, finish = 0;  // of files; 0: never
  };

  static void wait(int timeout_ms, const Targets& targets, const SignalWatch& signals);
  /// True if an observed process or one of their children sent it.
  [[nodiscard]] bool sent_by_observed(const Targets& targets, pid_t sender) const;
  void pass_on_signals(Targets& targets, const SignalWatch& signals, SignalRelay& relay) const;
  static void stop_with_command(Targets& targets);
  void pass(Targets& targets);
  [[nodiscard]] int next_timeout_ms(const Drainer::Pass& pass) const;
  void leave_children(Targets& targets);
  [[nodiscard]] bool over(Targets& targets);
  void commit(std::uint64_t now_ns);
  void update_session(std::uint64_t now_ns);
  void retry_if_failing(std::uint64_t now_ns);
  void finish_file(std::uint64_t handled_ns);
  void change_files(Targets& targets);
  void end_file(Targets& targets);
  void begin_file();
  void end(Targets& targets);
  void put_remarks(Targets& targets);
  void put_given();
  void put_copies();
  void take_unobserved();
  void watch_unobserved(Targets& targets);
  void add_unobserved(const UnobservedProgram& program);
  void put_not_observed(std::optional<pid_t> launched);
  void put_losses();
  void message(const char* code, std::string text, std::uint64_t count = 1);
  [[nodiscard]] RecordOutcome outcome_of(const Target& first) const;
  [[nodiscard]] Progress progress_now() const;

  const RecordOptions* options_;
  Arena arena_;
  ProfileFiles sink_;
  ModuleFiles files_;
  RecordDecoder decoder_;
  Drainer drainer_;
  UnobservedPrograms unobserved_;
  Substitute substitute_;
  Losses losses_;
  profile::Session session_;
  Due due_;
  std::uint64_t cpu_before_ns_;
  std::uint64_t now_ns_ = 0;       // of the last pass
  std::uint64_t switched_ns_ = 0;  // when the present file began
  bool winding_up_ = false;        // the targets have ended
  int timeout_ms_ = 0;
};

}  // namespace crosstalk::daemon
