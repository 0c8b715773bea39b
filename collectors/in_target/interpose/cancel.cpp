// SPDX-License-Identifier: Apache-2.0
// pthread_cancel: libc installs its handler for the signal that is the clock's, too.
#include <errno.h>
#include <pthread.h>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sys/clock_signal.h"

namespace crosstalk::in_target {
namespace {
CROSSTALK_REAL constinit RealFunction<int(pthread_t)> real_cancel{"pthread_cancel"};
}  // namespace

CROSSTALK_INTERPOSE(int, cancel_thread, "pthread_cancel", (pthread_t thread));

// A thread that cancels itself, asynchronously, does not come back from here: its end looks after the handler.
int cancel_thread(pthread_t thread) {
  if (real_cancel.get() == nullptr) {
    return ENOSYS;
  }
  const int result = real_cancel(thread);
  const Passage passage;
  if (observing()) {
    keep_clock_signal();
  }
  return result;
}

}  // namespace crosstalk::in_target
