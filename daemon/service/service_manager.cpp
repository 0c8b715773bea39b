// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

namespace crosstalk::service {

ServiceManager::ServiceManager() {
  std::uint64_t limit_us = 0;
  if (::sd_watchdog_enabled(0, &limit_us) > 0) {
    period_ns_ = limit_us * 1000 / 3;
  }
}

void ServiceManager::ready() { ::sd_notify(0, "READY=1"); }
void ServiceManager::reloading() { ::sd_notify(0, "RELOADING=1"); }
void ServiceManager::reloaded() { ::sd_notify(0, "READY=1"); }
void ServiceManager::stopping() { ::sd_notify(0, "STOPPING=1"); }

std::uint64_t ServiceManager::alive(std::uint64_t now_ns) {
  if (period_ns_ != 0 && now_ns >= due_ns_) {
    due_ns_ = now_ns + period_ns_;
    ::sd_notify(0, "WATCHDOG=1");
  }
  return period_ns_ != 0 ? due_ns_ : UINT64_MAX;
}

UniqueFd socket_of_manager() {
  const int count = ::sd_listen_fds(1);
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    if (::sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0) {
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
      return UniqueFd(fd);
    }
  }
  return UniqueFd();
}

}  // namespace crosstalk::service
