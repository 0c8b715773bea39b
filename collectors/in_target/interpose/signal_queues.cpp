// SPDX-License-Identifier: Apache-2.0
// The functions that fail when the user's limit of pending signals is reached: our timers count against it, and make
// room.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(clockid_t, sigevent*, timer_t*)> real_timer_create("timer_create");
CROSSTALK_REAL constinit RealFunction<int(pid_t, int, sigval)> real_sigqueue("sigqueue");
CROSSTALK_REAL constinit RealFunction<int(pthread_t, int, sigval)> real_pthread_sigqueue("pthread_sigqueue");

bool made_room() {
  const SavedErrno saved;
  return on_signal_limit();
}

}  // namespace

void prepare_queue_wrappers() { real_sigqueue.prepare(); }

CROSSTALK_INTERPOSE(int, wrap_timer_create, "timer_create", (clockid_t, sigevent*, timer_t*));
int wrap_timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
  const int result = real_timer_create(clock, event, timer);
  return result == -1 && errno == EAGAIN && made_room() ? real_timer_create(clock, event, timer) : result;
}

CROSSTALK_INTERPOSE(int, wrap_sigqueue, "sigqueue", (pid_t, int, sigval));
int wrap_sigqueue(pid_t pid, int signal_number, sigval value) {
  const int result = real_sigqueue(pid, signal_number, value);
  return result == -1 && errno == EAGAIN && made_room() ? real_sigqueue(pid, signal_number, value) : result;
}

CROSSTALK_INTERPOSE(int, wrap_pthread_sigqueue, "pthread_sigqueue", (pthread_t, int, sigval));
int wrap_pthread_sigqueue(pthread_t thread, int signal_number, sigval value) {
  const int result = real_pthread_sigqueue(thread, signal_number, value);
  return result == EAGAIN && made_room() ? real_pthread_sigqueue(thread, signal_number, value) : result;
}

}  // namespace crosstalk::in_target
