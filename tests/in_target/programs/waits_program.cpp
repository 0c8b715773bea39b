// SPDX-License-Identifier: Apache-2.0
// Waits for other threads behave as without the library: results of mutexes of all kinds, errno, cancellation,
// time-outs. Calls that need not wait are not measured.
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "tests/in_target/guest_core.h"

namespace {

int waits() { return GUEST(guest_count)(guest_wait); }

/// Calls `call` and returns how many waits of it would have been measured.
template <class Call>
int waits_of(Call call) {
  const int before = waits();
  call();
  return waits() - before;
}

struct Mutex {
  explicit Mutex(int type, int robust = PTHREAD_MUTEX_STALLED, int protocol = PTHREAD_PRIO_NONE) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_settype(&attributes, type) == 0);
    CHECK(pthread_mutexattr_setrobust(&attributes, robust) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
    CHECK(pthread_mutex_init(&mutex, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
  }
  pthread_mutex_t mutex;
};

timespec soon() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_nsec += 20'000'000;
  now.tv_sec += now.tv_nsec / 1'000'000'000;
  now.tv_nsec %= 1'000'000'000;
  return now;
}

void mutexes_that_check() {
  Mutex checking(PTHREAD_MUTEX_ERRORCHECK);
  CHECK(waits_of([&] { CHECK(pthread_mutex_lock(&checking.mutex) == 0); }) == 0);
  CHECK(pthread_mutex_lock(&checking.mutex) == EDEADLK);
  CHECK(pthread_mutex_unlock(&checking.mutex) == 0);
  Mutex recursive(PTHREAD_MUTEX_RECURSIVE);
  CHECK(waits_of([&] {
          CHECK(pthread_mutex_lock(&recursive.mutex) == 0);
          CHECK(pthread_mutex_lock(&recursive.mutex) == 0);
        }) == 0);
  std::thread([&] { CHECK(pthread_mutex_trylock(&recursive.mutex) == EBUSY); }).join();
  CHECK(pthread_mutex_unlock(&recursive.mutex) == 0);
  CHECK(pthread_mutex_unlock(&recursive.mutex) == 0);
}

void robust_mutexes() {
  for (const int protocol : {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT}) {
    Mutex robust(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, protocol);
    std::thread([&] { CHECK(pthread_mutex_lock(&robust.mutex) == 0); }).join();  // and dies with it
    CHECK(pthread_mutex_lock(&robust.mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_unlock(&robust.mutex) == 0);  // not made consistent
    CHECK(pthread_mutex_lock(&robust.mutex) == ENOTRECOVERABLE);
  }
}

void contended_mutex() {
  Mutex plain(PTHREAD_MUTEX_NORMAL);
  CHECK(pthread_mutex_lock(&plain.mutex) == 0);
  const timespec until = soon();
  CHECK(waits_of([&] { CHECK(pthread_mutex_timedlock(&plain.mutex, &until) == ETIMEDOUT); }) == 1);
  std::thread other([&] {
    errno = 77;
    CHECK(waits_of([&] { CHECK(pthread_mutex_lock(&plain.mutex) == 0); }) == 1);
    CHECK(errno == 77);
    CHECK(pthread_mutex_unlock(&plain.mutex) == 0);
  });
  usleep(50'000);
  CHECK(pthread_mutex_unlock(&plain.mutex) == 0);
  other.join();
}

/// A thread that has just been made is not known yet, nor are other processes.
void contended_mutex_of_a_lone_thread() {
  GUEST(guest_be_alone)(1);
  Mutex plain(PTHREAD_MUTEX_NORMAL);
  CHECK(waits_of([&] { CHECK(pthread_mutex_lock(&plain.mutex) == 0); }) == 0);
  std::thread other([&] {
    usleep(50'000);
    CHECK(pthread_mutex_unlock(&plain.mutex) == 0);
  });
  CHECK(waits_of([&] { CHECK(pthread_mutex_lock(&plain.mutex) == 0); }) == 1);
  other.join();
  CHECK(pthread_mutex_unlock(&plain.mutex) == 0);
  GUEST(guest_be_alone)(0);
}

/// A clock that is not supported is refused, even if the mutex is free.
void unsupported_clock() {
  Mutex plain(PTHREAD_MUTEX_NORMAL);
  const timespec until = soon();
  CHECK(pthread_mutex_clocklock(&plain.mutex, CLOCK_BOOTTIME, &until) == EINVAL);
  CHECK(pthread_mutex_clocklock(&plain.mutex, CLOCK_REALTIME, &until) == 0);
  CHECK(pthread_mutex_clocklock(&plain.mutex, CLOCK_REALTIME, &until) == ETIMEDOUT);
}

void read_write_locks() {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  CHECK(waits_of([&] {
          CHECK(pthread_rwlock_rdlock(&lock) == 0);
          CHECK(pthread_rwlock_rdlock(&lock) == 0);
        }) == 0);
  const timespec until = soon();
  CHECK(pthread_rwlock_timedwrlock(&lock, &until) == ETIMEDOUT);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  CHECK(waits_of([&] { CHECK(pthread_rwlock_wrlock(&lock) == 0); }) == 0);
  CHECK(pthread_rwlock_wrlock(&lock) == EDEADLK);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
}

void semaphores() {
  sem_t semaphore;
  CHECK(sem_init(&semaphore, 0, 1) == 0);
  errno = 77;
  CHECK(waits_of([&] { CHECK(sem_wait(&semaphore) == 0); }) == 0);
  const timespec until = soon();
  CHECK(sem_timedwait(&semaphore, &until) == -1);
  CHECK(errno == ETIMEDOUT);
  errno = 77;
  std::thread poster([&] {
    usleep(50'000);
    sem_post(&semaphore);
  });
  CHECK(waits_of([&] { CHECK(sem_wait(&semaphore) == 0); }) == 1);
  CHECK(errno == 77);
  poster.join();
}

bool cleaned_up = false;
Mutex held(PTHREAD_MUTEX_NORMAL);
pthread_cond_t never = PTHREAD_COND_INITIALIZER;
sem_t empty;

void* wait_for_condition(void*) {
  pthread_mutex_lock(&held.mutex);
  pthread_cleanup_push([](void*) { cleaned_up = pthread_mutex_unlock(&held.mutex) == 0; }, nullptr);
  pthread_cond_wait(&never, &held.mutex);
  pthread_cleanup_pop(0);
  return nullptr;
}

void* wait_for_semaphore(void*) {
  sem_wait(&empty);
  return nullptr;
}

/// Cancellation points stay the same, and cleanup handlers own the mutexes.
void cancellation() {
  sem_init(&empty, 0, 0);
  for (void* (*routine)(void*) : {wait_for_condition, wait_for_semaphore}) {
    pthread_t thread = 0;
    CHECK(pthread_create(&thread, nullptr, routine, nullptr) == 0);
    usleep(50'000);
    CHECK(pthread_cancel(thread) == 0);
    void* result = nullptr;
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
  }
  CHECK(cleaned_up);
  CHECK(pthread_mutex_trylock(&held.mutex) == 0);
  // Also where it need not wait.
  sem_post(&empty);
  std::thread([] {
    pthread_t self = pthread_self();
    pthread_cancel(self);
    sem_wait(&empty);
    CHECK(false);
  }).join();
  int value = 0;
  CHECK(sem_getvalue(&empty, &value) == 0 && value == 1);
}

void futexes() {
  int word = 1;
  CHECK(waits_of([&] { CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0) == 0); }) == 0);
  const timespec brief{0, 20'000'000};
  CHECK(waits_of([&] {
          CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &brief, nullptr, 0) == -1);
          CHECK(errno == ETIMEDOUT);
        }) == 1);
  int owned = 1;  // by process 1
  CHECK(waits_of([&] { CHECK(syscall(SYS_futex, &owned, FUTEX_LOCK_PI_PRIVATE, 0, &brief, nullptr, 0) == -1); }) == 1);
  struct {
    std::uint64_t value, address;
    std::uint32_t flags, reserved;
  } const waiter{1, reinterpret_cast<std::uint64_t>(&word), FUTEX_PRIVATE_FLAG | 2, 0};
  constexpr long futex_waitv_call = 449;
  CHECK(waits_of([&] {
          CHECK(syscall(futex_waitv_call, &waiter, 1, 0, &brief, CLOCK_MONOTONIC) == -1);
          CHECK(errno == ETIMEDOUT || errno == ENOSYS);  // the time has long passed
        }) == 1);
  CHECK(syscall(511) == -1);
  CHECK(errno == ENOSYS);
  CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 2, nullptr, nullptr, ~0) == -1);
  CHECK(errno == EAGAIN);
}

void barriers() {
  pthread_barrier_t barrier;
  CHECK(pthread_barrier_init(&barrier, nullptr, 2) == 0);
  int serial = 0;
  std::thread other([&] { serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD ? 1 : 0; });
  const int mine = pthread_barrier_wait(&barrier);
  other.join();
  CHECK(mine == 0 || mine == PTHREAD_BARRIER_SERIAL_THREAD);
  CHECK(serial + (mine != 0 ? 1 : 0) == 1);
}

}  // namespace

int main() {
  alarm(60);  // ends an endless wait
  mutexes_that_check();
  robust_mutexes();
  contended_mutex();
  contended_mutex_of_a_lone_thread();
  unsupported_clock();
  read_write_locks();
  semaphores();
  cancellation();
  futexes();
  barriers();
  return 0;
}
