// SPDX-License-Identifier: Apache-2.0
// The collector that watches a running process from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::observer {

class Session;

/// While it lives, and until it is stopped, a thread of this process watches the target and writes what it sees into
/// the arena. It may be stopped, and dies with this process, at any time without harm to the target.
class Observer {
 public:
  /// Attaches to all threads of `pid`, which check_process() has found to be such a process. `arena`: its path.
  /// `registers`: debug registers that a thread may have. Refused with the reason where nothing can be watched. The
  /// calling thread's blocked signals are blocked in the observer's thread.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> attach(pid_t pid, const std::string& arena,
                                                                std::uint32_t registers);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  ~Observer();

  /// Leaves the target; what was seen of it is in the arena when this returns. A second call does nothing.
  void stop();

 private:
  Observer(std::unique_ptr<Session> session, UniqueFd stop);
  void run();

  std::unique_ptr<Session> session_;
  UniqueFd stop_;  // readable once it is to end
  std::thread thread_;
};

}  // namespace crosstalk::observer
