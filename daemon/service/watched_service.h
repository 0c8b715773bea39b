// SPDX-License-Identifier: Apache-2.0
// A service that is watched all the time: finds its processes, keeps a recording of them running, and hands out each
// finished profile once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/service/access.h"
#include "daemon/service/configuration.h"
#include "daemon/service/processes.h"
#include "daemon/service/profile_store.h"
#include "daemon/service/worker.h"

namespace crosstalk::service {

/// Settings that the daemon gives its services.
struct ServiceMeans {
  std::string program;  // `crosstalk`
  std::string state;    // directory
};

/// Not thread-safe. Times are of CLOCK_MONOTONIC, in ns.
class WatchedService {
 public:
  WatchedService(ServiceSettings settings, ServiceMeans means);

  [[nodiscard]] const ServiceSettings& settings() const { return settings_; }
  [[nodiscard]] bool recording() const { return worker_.has_value(); }
  [[nodiscard]] const std::vector<pid_t>& pids() const { return pids_; }
  /// A line on its state: what it waits for, or why the last recording failed.
  [[nodiscard]] const std::string& state() const { return state_; }
  /// The part of its processes' CPU time that the recording takes.
  [[nodiscard]] BudgetShare share() const;
  /// Descriptors to wait for; tend() is due when one is readable.
  [[nodiscard]] std::vector<int> fds() const;

  /// Compares the service's processes with the recorded ones, and begins or restarts the recording if they differ.
  void look(const std::vector<Process>& all, std::uint64_t now_ns);
  /// Reads the recording's words, notices its end. Returns lines for the log.
  [[nodiscard]] std::vector<std::string> tend(std::uint64_t now_ns);
  /// Returns those of `profiles` that are its own and were finished since the last call, or left by a killed recorder.
  /// `now_s`: Unix time.
  [[nodiscard]] std::vector<StoredProfile> take_finished(const std::vector<StoredProfile>& profiles,
                                                         std::int64_t now_s);
  /// Ends the recording. tend() goes on until recording() is false.
  void stop(std::uint64_t now_ns);

 private:
  void begin(const std::vector<pid_t>& pids, std::uint64_t now_ns);
  [[nodiscard]] bool records(pid_t pid) const;
  void fail_for(const std::string& why, std::uint64_t now_ns);
  void read_words(std::vector<std::string>& lines, bool all);
  void end(int status, std::uint64_t now_ns, std::vector<std::string>& lines);

  ServiceSettings settings_;
  ServiceMeans means_;
  std::optional<Worker> worker_;
  std::vector<pid_t> pids_;        // that are recorded
  std::vector<UniqueFd> pidfds_;   // one for each
  std::vector<pid_t> ancestors_;   // of them, at the recording's start
  std::vector<std::string> seen_;  // sorted names of profiles that were handed out, or were there before
  std::string state_ = "no process of it runs";
  std::string words_;       // of the recording, the beginning of a line
  std::string last_words_;  // of the recording, a line
  std::uint64_t begun_ns_ = 0;
  std::uint64_t retry_ns_ = 0;  // not before this time
  std::uint64_t pause_ns_ = 0;  // after the next failure
  bool stopped_ = false;
};

}  // namespace crosstalk::service
