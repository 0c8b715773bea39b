// SPDX-License-Identifier: Apache-2.0
// Measures: runs a recorder that finishes a profile each refresh, analyses these profiles and adds them up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/signals.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

struct ProducerRequest {
  std::vector<std::string> recorder;  // options of `crosstalk record` that choose what is recorded, and how
  std::vector<std::string> command;   // to launch; empty: `recorder` has -p
  double refresh_s = 2, window_s = 10;
  std::string sysroot;
};

/// Not thread-safe; may be handed to another thread.
class Producer {
 public:
  /// Starts the recorder.
  [[nodiscard]] static Result<Producer> start(const ProducerRequest& request, const daemon::SignalWatch& signals);
  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) = delete;
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// Stops the recorder and removes its files.
  ~Producer();

  /// Waits for the next picture. The first one comes after a second or so, from the beginning of the first interval.
  /// nullopt: the processes have ended, or `stop` is readable. An error: the recorder ended before there was a picture,
  /// or was killed.
  [[nodiscard]] Result<std::optional<Snapshot>> next(int stop);

 private:
  class State;
  explicit Producer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace crosstalk::driver::live
