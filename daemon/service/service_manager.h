// SPDX-License-Identifier: Apache-2.0
// Speaks with the service manager (systemd), if one has started this process: sd_notify(3), sd_listen_fds(3),
// sd_watchdog_enabled(3). Without one, nothing happens.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace crosstalk::service {

class ServiceManager {
 public:
  ServiceManager();
  static void ready();
  static void reloading();
  static void reloaded();
  static void stopping();
  /// Reports that the main loop turns, as often as the manager's watchdog wants it. Called at each turn. Returns when
  /// the next call is due, CLOCK_MONOTONIC, ns.
  std::uint64_t alive(std::uint64_t now_ns);

 private:
  std::uint64_t period_ns_ = 0;  // 0: there is no watchdog
  std::uint64_t due_ns_ = 0;
};

/// Returns the socket that the manager listens at for this process; invalid if there is none.
[[nodiscard]] UniqueFd socket_of_manager();

}  // namespace crosstalk::service
