// SPDX-License-Identifier: Apache-2.0
// Threads that sleep in the kernel while others exchange lines: nothing may interrupt them or change their time-outs.
// Each call waits for something that does not come, in a thread that has used the shared line before, so that it is a
// candidate for watching.
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"
#include "sleeping_calls.h"

namespace {

using namespace hostile;

int sleeps(int, char**) {
  return wait_all({
      {"nanosleep", [] { return static_cast<long>(nanosleep(&limit, nullptr)); }},
      {"clock_nanosleep", [] { return of_pthread(clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, nullptr)); }},
      {"clock_nanosleep until",
       [] {
         const timespec end = deadline(CLOCK_MONOTONIC);
         return of_pthread(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr));
       }},
      {"usleep", [] { return static_cast<long>(usleep(500'000)); }},
      {"poll", [] { return static_cast<long>(poll(nullptr, 0, 500)); }},
      {"ppoll", [] { return static_cast<long>(ppoll(nullptr, 0, &limit, nullptr)); }},
      {"select",
       [] {
         timeval span = limit_us;
         const long result = select(0, nullptr, nullptr, nullptr, &span);
         return span.tv_sec == 0 && span.tv_usec == 0 ? result : 1000;  // Linux writes what is left
       }},
      {"pselect", [] { return static_cast<long>(pselect(0, nullptr, nullptr, nullptr, &limit, nullptr)); }},
      {"epoll_wait",
       [] {
         const int fd = epoll_create1(EPOLL_CLOEXEC);
         epoll_event event{};
         return static_cast<long>(epoll_wait(fd, &event, 1, 500));
       }},
      {"epoll_pwait",
       [] {
         const int fd = epoll_create1(EPOLL_CLOEXEC);
         epoll_event event{};
         sigset_t mask;
         sigemptyset(&mask);
         return static_cast<long>(epoll_pwait(fd, &event, 1, 500, &mask));
       }},
      {"epoll_pwait2",
       [] {
         const int fd = epoll_create1(EPOLL_CLOEXEC);
         epoll_event event{};
         return static_cast<long>(epoll_pwait2(fd, &event, 1, &limit, nullptr));
       }},
  });
}

/// The same by system calls, through libc's syscall().
int system_calls(int, char**) {
  static int word = 0;
  return wait_all({
      {"nanosleep", [] { return syscall(SYS_nanosleep, &limit, nullptr); }},
      {"clock_nanosleep", [] { return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &limit, nullptr); }},
      {"poll", [] { return syscall(SYS_poll, nullptr, 0, 500); }},
      {"ppoll",
       [] {
         timespec span = limit;
         return syscall(SYS_ppoll, nullptr, 0, &span, nullptr, 8);
       }},
      {"select",
       [] {
         timeval span = limit_us;
         return syscall(SYS_select, 0, nullptr, nullptr, nullptr, &span);
       }},
      {"epoll_pwait",
       [] {
         const int fd = epoll_create1(EPOLL_CLOEXEC);
         epoll_event event{};
         return syscall(SYS_epoll_pwait, fd, &event, 1, 500, nullptr, 8);
       }},
      {"futex", [] { return syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, &limit, nullptr, 0); }},
      {"futex until",
       [] {
         const timespec end = deadline(CLOCK_MONOTONIC);
         return syscall(SYS_futex, &word, 9 /* FUTEX_WAIT_BITSET */, 0, &end, nullptr, -1);
       }},
      {"rt_sigtimedwait",
       [] {
         const std::uint64_t set = 1U << (SIGUSR2 - 1);
         return syscall(SYS_rt_sigtimedwait, &set, nullptr, &limit, 8);
       }},
      {"read of timerfd",
       [] {
         const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
         const itimerspec once{{0, 0}, limit};
         timerfd_settime(fd, 0, &once, nullptr);
         std::uint64_t count = 0;
         return syscall(SYS_read, fd, &count, sizeof count);
       }},
  });
}

int direct_calls(int, char**) {
  static int word = 0;
  static timespec span = limit;
  return wait_all({
      {"nanosleep", [] { return direct_call(SYS_nanosleep, reinterpret_cast<long>(&limit), 0, 0, 0); }},
      {"poll", [] { return direct_call(SYS_poll, 0, 0, 500, 0); }},
      {"futex",
       [] { return direct_call(SYS_futex, reinterpret_cast<long>(&word), 0, 0, reinterpret_cast<long>(&span)); }},
      {"semtimedop",
       [] {
         const int set = semget(IPC_PRIVATE, 1, 0600);
         sembuf take{0, -1, 0};
         const long result =
             direct_call(SYS_semtimedop, set, reinterpret_cast<long>(&take), 1, reinterpret_cast<long>(&limit));
         const int error = errno;
         semctl(set, 0, IPC_RMID);
         errno = error;
         return result;
       }},
      {"epoll_wait",
       [] {
         const int fd = epoll_create1(EPOLL_CLOEXEC);
         epoll_event event{};
         return direct_call(SYS_epoll_wait, fd, reinterpret_cast<long>(&event), 1, 500);
       }},
  });
}

int sockets(int, char**) {
  return wait_all({
      {"recv",
       [] {
         char byte = 0;
         return static_cast<long>(recv(silent_socket(), &byte, 1, 0));
       }},
      {"recvmsg",
       [] {
         char byte = 0;
         iovec part{&byte, 1};
         msghdr message{};
         message.msg_iov = &part;
         message.msg_iovlen = 1;
         return static_cast<long>(recvmsg(silent_socket(), &message, 0));
       }},
      {"read",
       [] {
         char byte = 0;
         return static_cast<long>(read(silent_socket(), &byte, 1));
       }},
      {"recvfrom of UDP",
       [] {
         const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
         sockaddr_in address{};
         address.sin_family = AF_INET;
         require(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
         set_time_outs(fd);
         char byte = 0;
         return static_cast<long>(recvfrom(fd, &byte, 1, 0, nullptr, nullptr));
       }},
      {"accept", [] { return static_cast<long>(accept(listening_socket(), nullptr, nullptr)); }},
      {"accept4", [] { return static_cast<long>(accept4(listening_socket(), nullptr, nullptr, SOCK_CLOEXEC)); }},
      {"send",
       [] {
         const int fd = silent_socket();
         static const char block[4096] = {};
         while (send(fd, block, sizeof block, MSG_DONTWAIT) > 0) {
         }
         return static_cast<long>(send(fd, block, sizeof block, 0));
       }},
  });
}

struct Message {
  long type = 1;
  char text[4096] = {};
};

long receive_message() {
  const int queue = msgget(IPC_PRIVATE, 0600);
  later([queue] { msgctl(queue, IPC_RMID, nullptr); });
  Message message;
  return msgrcv(queue, &message, sizeof message.text, 0, 0);
}

long send_message() {
  const int queue = msgget(IPC_PRIVATE, 0600);
  const Message message;
  while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) {
  }
  later([queue] { msgctl(queue, IPC_RMID, nullptr); });
  return msgsnd(queue, &message, sizeof message.text, 0);
}

long receive_posix_message() {
  const std::string name = "/crosstalk-hostile-" + std::to_string(syscall(SYS_gettid));
  const mqd_t queue = mq_open(name.c_str(), O_CREAT | O_RDWR, 0600, nullptr);
  mq_unlink(name.c_str());
  static thread_local char text[8192];
  const timespec end = deadline(CLOCK_REALTIME);
  return mq_timedreceive(queue, text, sizeof text, nullptr, &end);
}

int queues(int, char**) {
  return wait_all({{"msgrcv", receive_message},
                   {"msgsnd", send_message},
                   {"semop", [] { return take_semaphore(nullptr); }},
                   {"semtimedop", [] { return take_semaphore(&limit); }},
                   {"mq_timedreceive", receive_posix_message}});
}

int pthread_waits(int, char**) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
  static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  static sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  pthread_mutex_lock(&taken);
  pthread_rwlock_wrlock(&lock);
  return wait_all({
      {"sem_timedwait",
       [] {
         const timespec end = deadline(CLOCK_REALTIME);
         return static_cast<long>(sem_timedwait(&semaphore, &end));
       }},
      {"sem_clockwait",
       [] {
         const timespec end = deadline(CLOCK_MONOTONIC);
         return static_cast<long>(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end));
       }},
      {"pthread_cond_timedwait",
       [] {
         const timespec end = deadline(CLOCK_REALTIME);
         pthread_mutex_lock(&mutex);
         const long result = of_pthread(pthread_cond_timedwait(&condition, &mutex, &end));
         pthread_mutex_unlock(&mutex);
         errno = result < 0 ? ETIMEDOUT : 0;
         return result;
       }},
      {"pthread_mutex_timedlock",
       [] {
         const timespec end = deadline(CLOCK_REALTIME);
         return of_pthread(pthread_mutex_timedlock(&taken, &end));
       }},
      {"pthread_rwlock_timedrdlock",
       [] {
         const timespec end = deadline(CLOCK_REALTIME);
         return of_pthread(pthread_rwlock_timedrdlock(&lock, &end));
       }},
  });
}

/// Calls that wait for a byte, a lock, a child or a signal, which comes when the time is up.
int events(int, char**) {
  constexpr long starting = 3;  // sleeps of a call that first starts another thread, process or context
  const auto read_later = [&](int reader, int writer) {
    later([writer] {
      const std::uint64_t one = 1;
      require(write(writer, &one, sizeof one) == sizeof one, "write");
    });
    std::uint64_t got = 0;
    return static_cast<long>(read(reader, &got, sizeof got));
  };
  handle(SIGUSR1, [](int) {});
  return wait_all({
      {"read of a pipe",
       [&] {
         int ends[2];
         require(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
         return read_later(ends[0], ends[1]);
       },
       starting},
      {"read of eventfd",
       [&] {
         const int fd = eventfd(0, EFD_CLOEXEC);
         return read_later(fd, fd);
       },
       starting},
      {"flock",
       [&] {
         char name[] = "lock-XXXXXX";
         const int held = mkostemp(name, O_CLOEXEC);
         const int wanted = open(name, O_RDWR | O_CLOEXEC);
         flock(held, LOCK_EX);
         later([held] { flock(held, LOCK_UN); });
         return static_cast<long>(flock(wanted, LOCK_EX));
       },
       starting},
      {"fcntl of an open file's lock",
       [&] {
         char name[] = "lock-XXXXXX";
         const int held = mkostemp(name, O_CLOEXEC);
         const int wanted = open(name, O_RDWR | O_CLOEXEC);
         struct flock whole {};
         whole.l_type = F_WRLCK;
         fcntl(held, F_OFD_SETLK, &whole);
         later([held] { close(held); });
         return static_cast<long>(fcntl(wanted, F_OFD_SETLKW, &whole));
       },
       starting},
      {"waitpid",
       [&] {
         const pid_t child = fork();
         if (child == 0) {
           timespec left = limit;
           while (nanosleep(&left, &left) != 0) {
           }
           _exit(0);
         }
         int status = 0;
         return waitpid(child, &status, 0) == child ? static_cast<long>(status) : -1L;
       },
       starting},
      {"sigsuspend",
       [&] {
         const pthread_t self = pthread_self();
         later([self] { pthread_kill(self, SIGUSR1); });
         sigset_t none;
         sigemptyset(&none);
         return static_cast<long>(sigsuspend(&none));
       },
       starting},
      {"pause",
       [&] {
         const pthread_t self = pthread_self();
         later([self] { pthread_kill(self, SIGUSR1); });
         return static_cast<long>(pause());
       },
       starting},
      {"sigtimedwait",
       [] {
         sigset_t set;
         sigemptyset(&set);
         sigaddset(&set, SIGUSR2);
         return static_cast<long>(sigtimedwait(&set, nullptr, &limit));
       }},
      {"io_getevents",
       [] {
         aio_context_t context = 0;
         require(syscall(SYS_io_setup, 1, &context) == 0, "io_setup");
         io_event event{};
         timespec span = limit;
         const long result = syscall(SYS_io_getevents, context, 1, 1, &event, &span);
         const int error = errno;
         syscall(SYS_io_destroy, context);
         errno = error;
         return result;
       },
       starting},
  });
}

/// The sleepers' line is exchanged by two other processes all the time, in memory that all three share.
int beside_processes(int, char**) {
  auto* line = static_cast<Line*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto use = [line](int word, double cpu_seconds) {
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
    for (std::uint32_t n = 1; (n & 0x1fffU) != 0 || seconds_of(CLOCK_THREAD_CPUTIME_ID) < end; ++n) {
      __atomic_store_n(&line->words[word], n, __ATOMIC_RELAXED);
    }
  };
  pid_t children[2];
  for (int n = 0; n < 2; ++n) {
    children[n] = fork();
    if (children[n] == 0) {
      use(n + 1, 0.8);
      _exit(0);
    }
  }
  use(0, 0.1);
  const int result = wait_all({{"nanosleep", [] { return static_cast<long>(nanosleep(&limit, nullptr)); }},
                               {"poll", [] { return static_cast<long>(poll(nullptr, 0, 500)); }},
                               {"recv",
                                [] {
                                  char byte = 0;
                                  return static_cast<long>(recv(silent_socket(), &byte, 1, 0));
                                }},
                               {"semtimedop", [] { return take_semaphore(&limit); }},
                               {"direct semtimedop",
                                [] {
                                  const int set = semget(IPC_PRIVATE, 1, 0600);
                                  sembuf take{0, -1, 0};
                                  const long got = direct_call(SYS_semtimedop, set, reinterpret_cast<long>(&take), 1,
                                                               reinterpret_cast<long>(&limit));
                                  const int error = errno;
                                  semctl(set, 0, IPC_RMID);
                                  errno = error;
                                  return got;
                                }}},
                              [&] { use(3, 0.03); });
  for (const pid_t child : children) {
    say("%s", end_of(child).c_str());
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"sleeps", sleeps},
                   {"system_calls", system_calls},
                   {"direct_calls", direct_calls},
                   {"sockets", sockets},
                   {"queues", queues},
                   {"pthread_waits", pthread_waits},
                   {"events", events},
                   {"beside_processes", beside_processes}},
                  argc, argv);
}
