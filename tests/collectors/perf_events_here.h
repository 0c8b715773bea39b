// SPDX-License-Identifier: Apache-2.0
// Decides if perf events can be tested here. It uses no product code, so that a fault of that code fails a test instead
// of skipping it.
#pragma once

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace crosstalk::collectors {

/// Returns why this user can have no events on his own thread; empty if he can, or if the reason is unknown.
inline std::string why_no_perf_events() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  const long fd = ::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) {
    ::close(static_cast<int>(fd));
    return {};
  }
  switch (const int error = errno) {
    case EACCES:
    case EPERM:
    case ENOSYS:
    case ENOENT:
    case EOPNOTSUPP:
      return std::string("no perf events here: ") + std::strerror(error);
    default:
      return {};
  }
}

}  // namespace crosstalk::collectors
