// SPDX-License-Identifier: Apache-2.0
// Functions of POSIX threads that wait for other threads (C++'s mutexes and condition variables are these). We first
// call the function that never waits, if it does all that the waiting one would: on success nothing is measured, and
// the cost is one call. Otherwise the waiting function is called, once, and its result is the target's.
#include <pthread.h>
#include <semaphore.h>

#include <cerrno>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sync/measured_wait.h"

namespace crosstalk::in_target {
namespace {

using profile::WaitKind;
using Mutex = pthread_mutex_t;
using RwLock = pthread_rwlock_t;
using Condition = pthread_cond_t;
using Time = const timespec*;

CROSSTALK_REAL constinit RealFunction<int(Mutex*)> real_lock("pthread_mutex_lock");
CROSSTALK_REAL constinit RealFunction<int(Mutex*)> real_try_lock("pthread_mutex_trylock");
CROSSTALK_REAL constinit RealFunction<int(Mutex*, Time)> real_timed_lock("pthread_mutex_timedlock");
CROSSTALK_REAL constinit RealFunction<int(Mutex*, clockid_t, Time)> real_clock_lock("pthread_mutex_clocklock");
CROSSTALK_REAL constinit RealFunction<int(pthread_spinlock_t*)> real_spin_lock("pthread_spin_lock");
CROSSTALK_REAL constinit RealFunction<int(pthread_spinlock_t*)> real_try_spin_lock("pthread_spin_trylock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*)> real_read_lock("pthread_rwlock_rdlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*)> real_try_read_lock("pthread_rwlock_tryrdlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*, Time)> real_timed_read_lock("pthread_rwlock_timedrdlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*, clockid_t, Time)> real_clock_read_lock("pthread_rwlock_clockrdlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*)> real_write_lock("pthread_rwlock_wrlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*)> real_try_write_lock("pthread_rwlock_trywrlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*, Time)> real_timed_write_lock("pthread_rwlock_timedwrlock");
CROSSTALK_REAL constinit RealFunction<int(RwLock*, clockid_t, Time)> real_clock_write_lock(
    "pthread_rwlock_clockwrlock");
CROSSTALK_REAL constinit RealFunction<int(Condition*, Mutex*)> real_wait("pthread_cond_wait");
CROSSTALK_REAL constinit RealFunction<int(Condition*, Mutex*, Time)> real_timed_wait("pthread_cond_timedwait");
CROSSTALK_REAL constinit RealFunction<int(Condition*, Mutex*, clockid_t, Time)> real_clock_wait(
    "pthread_cond_clockwait");
CROSSTALK_REAL constinit RealFunction<int(pthread_barrier_t*)> real_barrier_wait("pthread_barrier_wait");
CROSSTALK_REAL constinit RealFunction<int(sem_t*)> real_sem_wait("sem_wait");
CROSSTALK_REAL constinit RealFunction<int(sem_t*, Time)> real_sem_timed_wait("sem_timedwait");
CROSSTALK_REAL constinit RealFunction<int(sem_t*, clockid_t, Time)> real_sem_clock_wait("sem_clockwait");
CROSSTALK_REAL constinit RealFunction<int(sem_t*, int*)> real_sem_value("sem_getvalue");

/// The function belongs to a later C library than the present one: no program can have been linked to it.
template <class Real, class... Args>
int call(Real& real, Args... args) {
  return real.get() != nullptr ? real(args...) : ENOSYS;
}

/// Tries to lock if trying does the same as locking. Only looks at mutexes that are robust or change priorities: a
/// glibc that tries to lock one that is not recoverable leaves it locked. EBUSY: the thread may have to wait.
int try_plainly(Mutex* mutex) {
  constexpr int robust = 16, inherit = 32, protect = 64;  // nptl's bits of a mutex's kind
  const bool plain = (mutex->__data.__kind & (robust | inherit | protect)) == 0;
  return plain && real_try_lock.get() != nullptr ? real_try_lock(mutex) : EBUSY;
}
bool seems_free(const Mutex* mutex) { return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 0; }

/// sem_wait() is a cancellation point even if it need not wait, and sem_trywait() is not. So this reads only the value.
bool would_wait(sem_t* semaphore) {
  int value = 0;
  return real_sem_value.get() == nullptr || real_sem_value(semaphore, &value) != 0 || value <= 0;
}

}  // namespace

// Gives each of these a frame of its own, so that the call that does not wait need not save registers for the one that
// does.
#define CROSSTALK_WAITING __attribute__((noinline, cold)) static
#define CROSSTALK_SITE __builtin_return_address(0)
#define CROSSTALK_FRAME __builtin_frame_address(0)

CROSSTALK_WAITING int wait_for_mutex(Mutex* mutex, const void* site) {
  const MeasuredWait wait(WaitKind::mutex, site, CROSSTALK_FRAME);
  return real_lock(mutex);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_mutex_lock, "pthread_mutex_lock", (Mutex * mutex));
int wrap_mutex_lock(Mutex* mutex) {
  if (!measures_waits() || (is_alone() && seems_free(mutex))) {
    return call(real_lock, mutex);
  }
  const int tried = try_plainly(mutex);
  if (tried != EBUSY) {
    return tried;
  }
  return seems_free(mutex) ? real_lock(mutex) : wait_for_mutex(mutex, CROSSTALK_SITE);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_mutex_timedlock, "pthread_mutex_timedlock", (Mutex * mutex, Time until));
int wrap_mutex_timedlock(Mutex* mutex, Time until) {
  if (const int tried = measures_waits() ? try_plainly(mutex) : EBUSY; tried != EBUSY) {
    return tried;  // the time is not even looked at
  }
  const MeasuredWait wait(WaitKind::mutex, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_timed_lock, mutex, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_mutex_clocklock, "pthread_mutex_clocklock",
                         (Mutex * mutex, clockid_t clock, Time until));
int wrap_mutex_clocklock(Mutex* mutex, clockid_t clock, Time until) {
  const bool known = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;  // others are refused even if it is free
  if (const int tried = measures_waits() && known ? try_plainly(mutex) : EBUSY; tried != EBUSY) {
    return tried;  // the time is not even looked at
  }
  const MeasuredWait wait(WaitKind::mutex, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_clock_lock, mutex, clock, until);
}

CROSSTALK_WAITING int wait_for_spin_lock(pthread_spinlock_t* lock, const void* site) {
  const MeasuredWait wait(WaitKind::mutex, site, CROSSTALK_FRAME);
  return real_spin_lock(lock);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_spin_lock, "pthread_spin_lock", (pthread_spinlock_t * lock));
int wrap_spin_lock(pthread_spinlock_t* lock) {
  if (!measures_waits() || real_try_spin_lock.get() == nullptr) {
    return call(real_spin_lock, lock);
  }
  return real_try_spin_lock(lock) == 0 ? 0 : wait_for_spin_lock(lock, CROSSTALK_SITE);
}

CROSSTALK_WAITING int wait_to_read(RwLock* lock, const void* site) {
  const MeasuredWait wait(WaitKind::rwlock, site, CROSSTALK_FRAME);
  return real_read_lock(lock);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_rdlock, "pthread_rwlock_rdlock", (RwLock * lock));
int wrap_rdlock(RwLock* lock) {
  if (!measures_waits() || real_try_read_lock.get() == nullptr) {
    return call(real_read_lock, lock);
  }
  return real_try_read_lock(lock) == 0 ? 0 : wait_to_read(lock, CROSSTALK_SITE);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_timedrdlock, "pthread_rwlock_timedrdlock", (RwLock * lock, Time until));
int wrap_timedrdlock(RwLock* lock, Time until) {
  const MeasuredWait wait(WaitKind::rwlock, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_timed_read_lock, lock, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_clockrdlock, "pthread_rwlock_clockrdlock",
                         (RwLock * lock, clockid_t clock, Time until));
int wrap_clockrdlock(RwLock* lock, clockid_t clock, Time until) {
  const MeasuredWait wait(WaitKind::rwlock, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_clock_read_lock, lock, clock, until);
}

CROSSTALK_WAITING int wait_to_write(RwLock* lock, const void* site) {
  const MeasuredWait wait(WaitKind::rwlock, site, CROSSTALK_FRAME);
  return real_write_lock(lock);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_wrlock, "pthread_rwlock_wrlock", (RwLock * lock));
int wrap_wrlock(RwLock* lock) {
  if (!measures_waits() || real_try_write_lock.get() == nullptr) {
    return call(real_write_lock, lock);
  }
  return real_try_write_lock(lock) == 0 ? 0 : wait_to_write(lock, CROSSTALK_SITE);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_timedwrlock, "pthread_rwlock_timedwrlock", (RwLock * lock, Time until));
int wrap_timedwrlock(RwLock* lock, Time until) {
  const MeasuredWait wait(WaitKind::rwlock, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_timed_write_lock, lock, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_clockwrlock, "pthread_rwlock_clockwrlock",
                         (RwLock * lock, clockid_t clock, Time until));
int wrap_clockwrlock(RwLock* lock, clockid_t clock, Time until) {
  const MeasuredWait wait(WaitKind::rwlock, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_clock_write_lock, lock, clock, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_cond_wait, "pthread_cond_wait", (Condition * condition, Mutex* mutex));
int wrap_cond_wait(Condition* condition, Mutex* mutex) {
  const MeasuredWait wait(WaitKind::condition, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_wait, condition, mutex);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_cond_timedwait, "pthread_cond_timedwait",
                         (Condition * condition, Mutex* mutex, Time until));
int wrap_cond_timedwait(Condition* condition, Mutex* mutex, Time until) {
  const MeasuredWait wait(WaitKind::condition, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_timed_wait, condition, mutex, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_cond_clockwait, "pthread_cond_clockwait",
                         (Condition * condition, Mutex* mutex, clockid_t clock, Time until));
int wrap_cond_clockwait(Condition* condition, Mutex* mutex, clockid_t clock, Time until) {
  const MeasuredWait wait(WaitKind::condition, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_clock_wait, condition, mutex, clock, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_barrier_wait, "pthread_barrier_wait", (pthread_barrier_t * barrier));
int wrap_barrier_wait(pthread_barrier_t* barrier) {
  const MeasuredWait wait(WaitKind::barrier, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_barrier_wait, barrier);
}

CROSSTALK_WAITING int wait_for_semaphore(sem_t* semaphore, const void* site) {
  const MeasuredWait wait(WaitKind::semaphore, site, CROSSTALK_FRAME);
  return real_sem_wait(semaphore);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_sem_wait, "sem_wait", (sem_t * semaphore));
int wrap_sem_wait(sem_t* semaphore) {
  if (!measures_waits() || !would_wait(semaphore)) {
    return call(real_sem_wait, semaphore);
  }
  return wait_for_semaphore(semaphore, CROSSTALK_SITE);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_sem_timedwait, "sem_timedwait", (sem_t * semaphore, Time until));
int wrap_sem_timedwait(sem_t* semaphore, Time until) {
  const MeasuredWait wait(WaitKind::semaphore, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_sem_timed_wait, semaphore, until);
}

CROSSTALK_INTERPOSE_WAIT(int, wrap_sem_clockwait, "sem_clockwait", (sem_t * semaphore, clockid_t clock, Time until));
int wrap_sem_clockwait(sem_t* semaphore, clockid_t clock, Time until) {
  const MeasuredWait wait(WaitKind::semaphore, CROSSTALK_SITE, CROSSTALK_FRAME);
  return call(real_sem_clock_wait, semaphore, clock, until);
}

}  // namespace crosstalk::in_target
