// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "daemon/arena.h"
#include "daemon/drainer.h"
#include "daemon/launch.h"
#include "daemon/profile_sink.h"
#include "daemon/record_decoder.h"
#include "daemon/session.h"
#include "daemon/signals.h"

namespace crosstalk::daemon {

/// The running session: from the command's start to the finished profile. One thread.
class Recorder {
 public:
  Recorder(const RecordOptions& options, Arena arena, profile::ProfileWriter writer, std::uint64_t cpu_before_ns);

  /// Makes the session known to the profile. Before the command starts.
  void begin();
  /// Drains until the session ends.
  RecordOutcome run(Child& child, const SignalWatch& signals);

  [[nodiscard]] const Arena& arena() const { return arena_; }

 private:
  /// When things that are done now and then are due next, CLOCK_MONOTONIC ns.
  struct Due {
    std::uint64_t commit = 0, progress = 0, retry = 0;
  };

  void wait(int timeout_ms, const Child& child, const SignalWatch& signals) const;
  void pass_on_signals(const Child& child, const SignalWatch& signals) const;
  void pass();
  [[nodiscard]] int next_timeout_ms(const Drainer::Pass& pass) const;
  [[nodiscard]] bool over(Child& child);
  void commit(std::uint64_t now_ns);
  void retry_if_failing(std::uint64_t now_ns);
  void end();
  void put_messages();
  void put_unobserved();
  void message(const char* code, std::string text, std::uint64_t count = 1);
  [[nodiscard]] Progress progress_now() const;

  const RecordOptions* options_;
  Arena arena_;
  ProfileSink sink_;
  RecordDecoder decoder_;
  Drainer drainer_;
  profile::Session session_;
  Due due_;
  std::uint64_t cpu_before_ns_;
  std::uint64_t now_ns_ = 0;  // of the last pass
  std::uint64_t command_ended_ns_ = 0;
  pid_t command_pid_ = 0;
  int timeout_ms_ = 0;
};

}  // namespace crosstalk::daemon
