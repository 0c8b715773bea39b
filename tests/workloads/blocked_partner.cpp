// SPDX-License-Identifier: Apache-2.0
// Two processes exchange lines of shared memory; then one of them blocks in a system call while the other goes on using
// the lines. It blocks in turn in each kind of call that a signal would end too early, and the program counts the
// results. Undisturbed, no call is interrupted, and no time-out restarts.
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

constexpr int lines = 32;
constexpr double exchange_s = 0.01;      // before each call
constexpr double patience_s = 5;         // for a call that was to have ended by then
constexpr long blocked_ns = 30'000'000;  // of each call

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};

enum class Stage : std::uint32_t { exchanging, blocking, blocked, returned, over };

struct Table {
  Line turn;
  Line line[lines];
};

struct Ledger {
  struct Entry {
    std::uint64_t calls, interrupted, wrong;
    double longest_s;
  };
  alignas(workload::line_bytes) std::uint32_t stage;
  alignas(workload::line_bytes) std::uint64_t round;
  std::array<Entry, 16> entry;
};

/// Objects of the calls. Made before the fork.
struct Objects {
  int full_queue = -1, empty_queue = -1, semaphores = -1, socket = -1, listener = -1, epoll = -1;
};

struct Message {
  long type = 1;
  std::array<char, 64> text{};
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "blocked_partner: %s failed: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int checked(int result, const char* what) {
  if (result < 0) {
    die(what);
  }
  return result;
}

timespec relative() { return {0, blocked_ns}; }

int limit_waits(int socket) {
  const timeval wait{0, blocked_ns / 1000};
  checked(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), "SO_RCVTIMEO");
  return socket;
}

int listening_socket() {
  const int listener = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "blocked_partner-%d", getpid());  // abstract
  checked(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  checked(listen(listener, 1), "listen");
  return limit_waits(listener);
}

void fill(int queue) {
  const Message message;
  while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) {
  }
}

Objects make_objects() {
  Objects objects;
  objects.full_queue = checked(msgget(IPC_PRIVATE, IPC_CREAT | 0600), "msgget");
  objects.empty_queue = checked(msgget(IPC_PRIVATE, IPC_CREAT | 0600), "msgget");
  objects.semaphores = checked(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600), "semget");
  std::array<int, 2> pair{};
  checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), "socketpair");
  objects.socket = limit_waits(pair[0]);
  objects.listener = listening_socket();
  objects.epoll = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  fill(objects.full_queue);
  return objects;
}

void remove_objects(const Objects& objects) {
  msgctl(objects.full_queue, IPC_RMID, nullptr);
  msgctl(objects.empty_queue, IPC_RMID, nullptr);
  semctl(objects.semaphores, 0, IPC_RMID);
}

/// A call that blocks: its expected result and error, and the partner's action to end it.
struct Call {
  const char* name;
  int (*block)(const Objects&);
  int wanted_errno;  // 0: it succeeds
  void (*release)(const Objects&);
};

void nothing(const Objects& /*objects*/) {}

int wait_for_turn(int semaphores, short change) {
  sembuf operation{0, change, 0};
  return semop(semaphores, &operation, 1);
}

std::uint32_t futex_word = 0;

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"msgrcv",
       [](const Objects& o) {
         Message message;
         return static_cast<int>(msgrcv(o.empty_queue, &message, sizeof message.text, 0, 0));
       },
       0,
       [](const Objects& o) {
         const Message message;
         msgsnd(o.empty_queue, &message, sizeof message.text, 0);
       }},
      {"msgsnd",
       [](const Objects& o) {
         const Message message;
         return msgsnd(o.full_queue, &message, sizeof message.text, 0);
       },
       0,
       [](const Objects& o) {
         Message message;
         msgrcv(o.full_queue, &message, sizeof message.text, 0, IPC_NOWAIT);
       }},
      {"semop", [](const Objects& o) { return wait_for_turn(o.semaphores, -1); }, 0,
       [](const Objects& o) { wait_for_turn(o.semaphores, 1); }},
      {"semtimedop",
       [](const Objects& o) {
         sembuf operation{0, -1, 0};
         const timespec limit = relative();
         return semtimedop(o.semaphores, &operation, 1, &limit);
       },
       EAGAIN, nothing},
      {"recv",
       [](const Objects& o) {
         char byte = 0;
         return static_cast<int>(recv(o.socket, &byte, 1, 0));
       },
       EAGAIN, nothing},
      {"accept", [](const Objects& o) { return accept(o.listener, nullptr, nullptr); }, EAGAIN, nothing},
      {"epoll_wait",
       [](const Objects& o) {
         epoll_event event{};
         return epoll_wait(o.epoll, &event, 1, blocked_ns / 1'000'000);
       },
       0, nothing},
      {"poll", [](const Objects& /*o*/) { return poll(nullptr, 0, blocked_ns / 1'000'000); }, 0, nothing},
      {"select",
       [](const Objects& /*o*/) {
         timeval limit{0, blocked_ns / 1000};
         return select(0, nullptr, nullptr, nullptr, &limit);
       },
       0, nothing},
      {"nanosleep",
       [](const Objects& /*o*/) {
         const timespec limit = relative();
         return nanosleep(&limit, nullptr);
       },
       0, nothing},
      {"sigtimedwait",
       [](const Objects& /*o*/) {
         sigset_t set;
         sigemptyset(&set);
         sigaddset(&set, SIGUSR1);
         const timespec limit = relative();
         return sigtimedwait(&set, nullptr, &limit);
       },
       EAGAIN, nothing},
      {"futex",
       [](const Objects& /*o*/) {
         const timespec limit = relative();
         return static_cast<int>(syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &limit, nullptr, 0));
       },
       ETIMEDOUT, nothing},
  };
  return all;
}

Stage stage_of(const Ledger& ledger) { return static_cast<Stage>(__atomic_load_n(&ledger.stage, __ATOMIC_ACQUIRE)); }

void set_stage(Ledger& ledger, Stage stage) {
  __atomic_store_n(&ledger.stage, static_cast<std::uint32_t>(stage), __ATOMIC_RELEASE);
}

void add_to_lines(Table& table) {
  for (Line& line : table.line) {
    __atomic_fetch_add(&line.word, 1U, __ATOMIC_RELAXED);
  }
}

/// Waits for the turn of `me`, 0 or 1, and adds to the lines. The turn is kept.
void take_turn(Table& table, std::uint64_t me) {
  unsigned spins = 0;
  while (__atomic_load_n(&table.turn.word, __ATOMIC_ACQUIRE) % 2 != me) {
    workload::relax(spins, true);
  }
  add_to_lines(table);
}

void pass_turn(Table& table) { __atomic_fetch_add(&table.turn.word, 1U, __ATOMIC_RELEASE); }

/// In the child: exchanges, blocks, notes what came of it.
void block_in_turn(const Objects& objects, Table& table, Ledger& ledger) {
  while (stage_of(ledger) != Stage::over) {
    do {
      take_turn(table, 1);
      pass_turn(table);
    } while (stage_of(ledger) == Stage::exchanging);
    const std::size_t kind = ledger.round % calls().size();
    const Call& call = calls()[kind];
    set_stage(ledger, Stage::blocked);
    const Deadline watch(0);
    errno = 0;
    const int result = call.block(objects);
    const int error = result < 0 ? errno : 0;
    Ledger::Entry& entry = ledger.entry[kind];
    ++entry.calls;
    entry.interrupted += error == EINTR ? 1 : 0;
    entry.wrong += error != EINTR && error != call.wanted_errno ? 1 : 0;
    entry.longest_s = std::max(entry.longest_s, watch.elapsed());
    set_stage(ledger, Stage::returned);
    while (stage_of(ledger) == Stage::returned) {
      sched_yield();  // until the partner has seen it
    }
  }
}

/// In the parent: while the child is blocked, the parent has the lines to itself.
void talk(const Objects& objects, Table& table, Ledger& ledger, const Deadline& deadline) {
  while (true) {
    for (const Deadline exchanging(exchange_s); !exchanging.passed();) {
      take_turn(table, 0);
      pass_turn(table);
    }
    take_turn(table, 0);
    set_stage(ledger, Stage::blocking);
    pass_turn(table);
    while (stage_of(ledger) == Stage::blocking) {
      sched_yield();
    }
    const Deadline use(static_cast<double>(blocked_ns) / 1e9);
    while (!use.passed() && stage_of(ledger) == Stage::blocked) {
      add_to_lines(table);
    }
    calls()[ledger.round % calls().size()].release(objects);
    const Deadline patience(patience_s);
    while (stage_of(ledger) != Stage::returned) {
      add_to_lines(table);
      if (patience.passed()) {
        const char* name = calls()[ledger.round % calls().size()].name;
        std::fprintf(stderr, "blocked_partner: %s has not returned within %g s\n", name, patience_s);
        std::exit(1);
      }
    }
    ++ledger.round;
    const bool over = deadline.passed();
    set_stage(ledger, over ? Stage::over : Stage::exchanging);
    if (over) {
      return;
    }
  }
}

void print(const Ledger& ledger) {
  std::string text;
  for (std::size_t n = 0; n < calls().size(); ++n) {
    const Ledger::Entry& entry = ledger.entry[n];
    text += (n > 0 ? ",\"" : "\"") + std::string(calls()[n].name) + R"(":{"calls":)" + std::to_string(entry.calls) +
            R"(,"interrupted":)" + std::to_string(entry.interrupted) + R"(,"wrong":)" + std::to_string(entry.wrong) +
            R"(,"longest_s":)" + std::to_string(entry.longest_s) + "}";
  }
  std::printf(R"({"workload":"blocked_partner","blocked_s":%g,"calls":{%s}})"
              "\n",
              static_cast<double>(blocked_ns) / 1e9, text.c_str());
}

template <class T>
T& share() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    die("mmap");
  }
  return *static_cast<T*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("blocked_partner", "of two processes that share memory, one blocks while the other uses it");
  flags.number("--seconds", 4, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const Deadline deadline(flags.real("--seconds"));
  auto& table = share<Table>();
  auto& ledger = share<Ledger>();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const Objects objects = make_objects();
  const pid_t child = checked(fork(), "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    block_in_turn(objects, table, ledger);
    return 0;
  }
  talk(objects, table, ledger, deadline);
  int status = 0;
  const bool well = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  remove_objects(objects);
  if (!well) {
    std::fprintf(stderr, "blocked_partner: the child did not end well\n");
    return 1;
  }
  print(ledger);
}
