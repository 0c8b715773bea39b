// SPDX-License-Identifier: Apache-2.0
// mlockall: locks only the target's own memory. Unlocks our mappings again; if the call fails only because our mappings
// count, locks the target's mappings one by one.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(int)> real_mlockall("mlockall");

/// Reads /proc/self/maps and gives each mapping's bounds to a function.
class Mappings {
 public:
  template <class Visit>
  static void each(Visit visit) {
    const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char text[1024];
    std::uint64_t bound[2] = {};  // begin and end, as far as they have been read
    unsigned part = 0;            // of the line: begin, end, the rest
    for (long got = 1; fd >= 0 && got > 0;) {
      got = system_call(SYS_read, fd, static_cast<char*>(text), sizeof text);
      for (long i = 0; i < got; ++i) {
        const char c = text[i];
        if (c == '\n') {
          bound[0] = bound[1] = 0;
          part = 0;
        } else if (part < 2 && (c == '-' || c == ' ')) {
          if (++part == 2) {
            visit(bound[0], bound[1]);
          }
        } else if (part < 2) {
          bound[part] = bound[part] * 16 + static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
        }
      }
    }
    if (fd >= 0) {
      system_call(SYS_close, fd);
    }
  }
};

/// True if mlockall() of all current memory would have failed without us, too. The kernel compares all mapped memory
/// with the limit, even if less of it is locked in the end.
bool fails_by_itself() {
  rlimit64 limit{};
  std::uint64_t mapped = 0;
  Mappings::each([&](std::uint64_t begin, std::uint64_t end) { mapped += is_own_memory(begin) ? 0 : end - begin; });
  return system_call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, nullptr, &limit) < 0 || mapped > limit.rlim_cur;
}

/// As mlockall(flags) with MCL_CURRENT, but for our memory. As there, memory that cannot be populated is no error.
int lock_one_by_one(int flags) {
  if ((flags & MCL_FUTURE) != 0) {
    const int result = real_mlockall(flags & ~MCL_CURRENT);
    if (result != 0) {
      return result;
    }
  }
  const int how = (flags & MCL_ONFAULT) != 0 ? MLOCK_ONFAULT : 0;
  Mappings::each([&](std::uint64_t begin, std::uint64_t end) {
    if (!is_own_memory(begin)) {
      system_call(SYS_mlock2, begin, end - begin, how);
    }
  });
  return 0;
}

}  // namespace

CROSSTALK_INTERPOSE(int, wrap_mlockall, "mlockall", (int flags));
int wrap_mlockall(int flags) {
  if (real_mlockall.get() == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  int result = real_mlockall(flags);
  if (result != 0 && errno == ENOMEM && (flags & MCL_CURRENT) != 0 && !fails_by_itself()) {
    result = lock_one_by_one(flags);
  }
  if (result == 0 && !confined()) {  // a filter may forbid what follows
    const SavedErrno saved;
    unlock_own_memory();
  }
  return result;
}

}  // namespace crosstalk::in_target
