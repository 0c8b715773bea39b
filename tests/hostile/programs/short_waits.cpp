// SPDX-License-Identifier: Apache-2.0
// Two threads, or two processes, that hand over to each other some tens of thousands of times a second, each time by a
// call that sleeps. A signal that is delivered to a thread on its way into such a call makes it return too early: these
// returns are counted.
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "hostile.h"
#include "sleeping_calls.h"

namespace {

using namespace hostile;

constexpr timespec patience{5, 0};
constexpr int patience_ms = 5000;

/// Data that the two sides share; `side` is 0 or 1 everywhere.
struct Table {
  Line line;
  std::atomic<int> tokens[2] = {};
  std::atomic<int> interrupted{0};
  std::atomic<int> failed{0};
  std::atomic<bool> over{false};
  std::atomic<int> tids[2] = {};
  sem_t semaphores[2];
  int queue = -1, set = -1;
  int ends[2] = {-1, -1};
  int events[2] = {-1, -1};
  int pollers[2] = {-1, -1};
};
Table* table = nullptr;

/// A way to hand over: post() wakes the other side, wait() waits for it and is 0, or -1 with errno.
struct Way {
  const char* name;
  void (*post)(int side);
  long (*wait)(int side);
};

struct Message {
  long type = 0;
  char text[8] = {};
};

void post_message(int side) {
  Message message;
  message.type = 2 - side;
  require(msgsnd(table->queue, &message, sizeof message.text, 0) == 0, "msgsnd");
}
long wait_message(int side) {
  Message message;
  return msgrcv(table->queue, &message, sizeof message.text, side + 1, 0) < 0 ? -1 : 0;
}

void post_semaphore(int side) {
  sembuf give{static_cast<unsigned short>(1 - side), 1, 0};
  require(semop(table->set, &give, 1) == 0, "semop");
}
long wait_semaphore(int side) {
  sembuf take{static_cast<unsigned short>(side), -1, 0};
  return semop(table->set, &take, 1);
}
long wait_semaphore_timed(int side) {
  sembuf take{static_cast<unsigned short>(side), -1, 0};
  return semtimedop(table->set, &take, 1, &patience);
}
long wait_semaphore_direct(int side) {
  sembuf take{static_cast<unsigned short>(side), -1, 0};
  return direct_call(SYS_semtimedop, table->set, reinterpret_cast<long>(&take), 1, reinterpret_cast<long>(&patience));
}

void post_byte(int side) { require(send(table->ends[side], "x", 1, 0) == 1, "send"); }
long wait_byte(int side) {
  char byte = 0;
  return recv(table->ends[side], &byte, 1, 0) == 1 ? 0 : -1;
}

void post_event(int side) {
  const std::uint64_t one = 1;
  require(write(table->events[1 - side], &one, sizeof one) == sizeof one, "write");
}
long take_event(int side, long ready) {
  std::uint64_t count = 0;
  return ready == 1 && read(table->events[side], &count, sizeof count) == sizeof count ? 0 : -1;
}
long wait_poll(int side) {
  pollfd wanted{table->events[side], POLLIN, 0};
  return take_event(side, poll(&wanted, 1, patience_ms));
}
long wait_select(int side) {
  fd_set wanted;
  FD_ZERO(&wanted);
  FD_SET(table->events[side], &wanted);
  timeval span{5, 0};
  return take_event(side, select(table->events[side] + 1, &wanted, nullptr, nullptr, &span));
}
long wait_epoll(int side) {
  epoll_event event{};
  return take_event(side, epoll_wait(table->pollers[side], &event, 1, patience_ms));
}
long wait_epoll_by_syscall(int side) {
  epoll_event event{};
  return take_event(side, syscall(SYS_epoll_pwait, table->pollers[side], &event, 1, patience_ms, nullptr, 8));
}

void post_token(int side) {
  table->tokens[1 - side] = 1;
  syscall(SYS_futex, &table->tokens[1 - side], FUTEX_WAKE, 1, nullptr, nullptr, 0);
}
long wait_token(int side) {
  while (table->tokens[side].exchange(0) == 0) {
    if (syscall(SYS_futex, &table->tokens[side], FUTEX_WAIT, 0, &patience, nullptr, 0) < 0 && errno != EAGAIN) {
      return -1;
    }
  }
  return 0;
}

void post_posix_semaphore(int side) { sem_post(&table->semaphores[1 - side]); }
long wait_posix_semaphore(int side) {
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 5;
  return sem_timedwait(&table->semaphores[side], &end);
}

void post_signal(int side) {
  while (table->tids[1 - side] == 0) {
  }
  syscall(SYS_tkill, table->tids[1 - side].load(), SIGRTMIN + 5);
}
long wait_signal(int side) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 5);
  table->tids[side] = static_cast<int>(syscall(SYS_gettid));
  return sigtimedwait(&set, nullptr, &patience) < 0 ? -1 : 0;
}

constexpr Way ways[] = {
    {"msgrcv", post_message, wait_message},
    {"semop", post_semaphore, wait_semaphore},
    {"semtimedop", post_semaphore, wait_semaphore_timed},
    {"semtimedop_direct", post_semaphore, wait_semaphore_direct},
    {"recv", post_byte, wait_byte},
    {"poll", post_event, wait_poll},
    {"select", post_event, wait_select},
    {"epoll_wait", post_event, wait_epoll},
    {"epoll_pwait_by_syscall", post_event, wait_epoll_by_syscall},
    {"futex", post_token, wait_token},
    {"sem_timedwait", post_posix_semaphore, wait_posix_semaphore},
    {"sigtimedwait", post_signal, wait_signal},
};

void make_table() {
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  table = new (memory) Table;
  table->queue = msgget(IPC_PRIVATE, 0600);
  table->set = semget(IPC_PRIVATE, 2, 0600);
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, table->ends) == 0, "socketpair");
  for (int side = 0; side < 2; ++side) {
    const timeval span{5, 0};
    setsockopt(table->ends[side], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span);
    sem_init(&table->semaphores[side], 1, 0);
    table->events[side] = eventfd(0, 0);
    table->pollers[side] = epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    require(epoll_ctl(table->pollers[side], EPOLL_CTL_ADD, table->events[side], &event) == 0, "epoll_ctl");
  }
}

void wait_until_over(const Way& way, int side) {
  while (way.wait(side) != 0) {
    ++(errno == EINTR ? table->interrupted : table->failed);
    if (errno != EINTR) {
      return;
    }
  }
}

/// Side 0 begins, and ends the game when it has used its CPU time.
void play(const Way& way, int side, double cpu_seconds) {
  const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
  for (std::uint32_t turn = 1;; ++turn) {
    for (std::uint32_t n = 0; n < 1000; ++n) {
      __atomic_store_n(&table->line.words[side], n, __ATOMIC_RELAXED);
    }
    if (side == 0) {
      table->over = seconds_of(CLOCK_THREAD_CPUTIME_ID) > end || table->failed != 0;
      const bool last = table->over;
      way.post(side);
      wait_until_over(way, side);
      if (last) {
        return;
      }
    } else {
      wait_until_over(way, side);
      const bool last = table->over;
      way.post(side);
      if (last) {
        return;
      }
    }
  }
}

int hand_over(const char* name, bool by_processes) {
  const Way* way = std::find_if(std::begin(ways), std::end(ways), [&](const Way& w) { return !strcmp(w.name, name); });
  require(way != std::end(ways), name);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 5);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  make_table();
  if (by_processes) {
    const pid_t child = fork();
    if (child == 0) {
      play(*way, 1, 0);
      _exit(0);
    }
    play(*way, 0, 0.25);
    say("%s", end_of(child).c_str());
  } else {
    std::thread other(play, *way, 1, 0);
    play(*way, 0, 0.25);
    other.join();
  }
  msgctl(table->queue, IPC_RMID, nullptr);
  semctl(table->set, 0, IPC_RMID);
  say("%s: interrupted %d times, failed %d times", name, table->interrupted.load(), table->failed.load());
  return 0;
}

int threads(int, char** argv) { return hand_over(argv[0], false); }
int processes(int, char** argv) { return hand_over(argv[0], true); }

}  // namespace

int main(int argc, char** argv) { return dispatch({{"threads", threads}, {"processes", processes}}, argc, argv); }
