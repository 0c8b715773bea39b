// SPDX-License-Identifier: Apache-2.0
// unshare() and close_range(), by which a thread gets descriptors of its own: the numbers that our threads know events
// by would mean others there. Threads that clone() makes so are in threads.cpp.
#include <linux/close_range.h>
#include <sched.h>

#include <cerrno>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(int)> real_unshare("unshare");
CROSSTALK_REAL constinit RealFunction<int(unsigned, unsigned, int)> real_close_range("close_range");

}  // namespace

CROSSTALK_INTERPOSE(int, wrap_unshare, "unshare", (int flags));
int wrap_unshare(int flags) {
  if ((flags & CLONE_FILES) != 0) {
    const SavedErrno saved;
    on_own_descriptors();
  }
  return real_unshare(flags);
}

CROSSTALK_INTERPOSE(int, wrap_close_range, "close_range", (unsigned first, unsigned last, int flags));
int wrap_close_range(unsigned first, unsigned last, int flags) {
  if (real_close_range.get() == nullptr) {  // before glibc 2.34
    errno = ENOSYS;
    return -1;
  }
  if ((static_cast<unsigned>(flags) & CLOSE_RANGE_UNSHARE) != 0) {
    const SavedErrno saved;
    on_own_descriptors();
  }
  return real_close_range(first, last, flags);
}

}  // namespace crosstalk::in_target
