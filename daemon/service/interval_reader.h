// SPDX-License-Identifier: Apache-2.0
// Reads finished profiles in the background, one at a time: a report for the metrics, and a copy for readers of pprof.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "daemon/service/profile_store.h"
#include "daemon/service/worker.h"

namespace crosstalk::service {

/// Not thread-safe.
class IntervalReader {
 public:
  /// `program`: path of `crosstalk`. `most_bytes`: the longest report that is taken.
  explicit IntervalReader(std::string program, std::size_t most_bytes = 64U << 20U)
      : program_(std::move(program)), most_bytes_(most_bytes) {}

  /// Queues a profile. If too many wait, drops the oldest one, which then counts as a failure.
  void add(StoredProfile profile, bool pprof);
  [[nodiscard]] std::vector<int> fds() const;

  struct Outcome {
    std::string service;
    std::string report;  // JSON; empty: the profile could not be read, or this is about its copy
    std::string why;     // that failed, one line; empty: it did not
    bool copy = false;   // for readers of pprof
  };
  /// Reads what the running job has written, and begins the next one. `now_ns`: CLOCK_MONOTONIC. Returns what was read.
  [[nodiscard]] std::vector<Outcome> tend(std::uint64_t now_ns);
  [[nodiscard]] bool idle() const { return !worker_ && waiting_.empty(); }

 private:
  struct Job {
    StoredProfile profile;
    bool pprof = false;  // it makes the copy; else the report
  };
  void begin_next(std::uint64_t now_ns, std::vector<Outcome>& outcomes);
  void read_on();
  [[nodiscard]] Outcome outcome_of(int status);

  std::string program_;
  std::size_t most_bytes_;
  std::deque<Job> waiting_;
  std::optional<Worker> worker_;
  Job current_;
  std::string output_, errors_;  // of the running job
  bool too_long_ = false;        // its output
  std::uint64_t begun_ns_ = 0;
  std::vector<Outcome> dropped_;
};

}  // namespace crosstalk::service
