// SPDX-License-Identifier: Apache-2.0
// The threads of this process, as /proc lists them.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>

#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

inline long open_task_list() { return open_to_read("/proc/self/task", O_DIRECTORY); }

/// Calls `visit(tid)` for each thread in a list that is open, ten thousand at most. Signal-safe if `visit` is.
template <class Visit>
void each_task_of(long list, Visit visit) {
  constexpr int most_rounds = 512;
  alignas(8) char entries[512];
  for (int round = 0; round < most_rounds; ++round) {
    const long bytes = system_call(SYS_getdents64, list, static_cast<char*>(entries), sizeof entries);
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);  // NOLINT: the kernel's bytes
      std::int32_t tid = 0;
      for (const char* c = entry->d_name; *c >= '0' && *c <= '9'; ++c) {
        tid = tid * 10 + (*c - '0');
      }
      at += entry->d_reclen;
      if (tid != 0) {
        visit(tid);
      }
    }
    if (bytes <= 0) {
      return;
    }
  }
}

/// For each thread of the process.
template <class Visit>
void each_task(Visit visit) {
  const long list = open_task_list();
  if (list >= 0) {
    each_task_of(list, visit);
    system_call(SYS_close, list);
  }
}

}  // namespace crosstalk::in_target
