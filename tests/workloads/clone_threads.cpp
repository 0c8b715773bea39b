// SPDX-License-Identifier: Apache-2.0
// Threads made by clone() itself, unknown to the C library: no pthread_create to interpose, no thread-local storage of
// their own. Two of them hand a word to and fro, while main works on its own.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr std::uint32_t over = 2;

struct alignas(workload::line_bytes) Ball {
  std::uint32_t turn = 0;
};
Ball ball;

struct Player {
  std::uint32_t me = 0;
  std::uint64_t passes = 0;
  const Deadline* deadline = nullptr;
  alignas(workload::line_bytes) pid_t alive = 1;  // cleared by the kernel when the thread is gone
};

constexpr int consumer_line = __LINE__ + 6;
int play(void* argument) {
  auto& player = *static_cast<Player*>(argument);
  const std::uint32_t me = player.me;
  workload::note_thread(static_cast<int>(me) + 1);
  for (;;) {
    const std::uint32_t turn = __atomic_load_n(&ball.turn, __ATOMIC_ACQUIRE);
    if (turn == over) {
      break;
    }
    if (turn != me) {
      __builtin_ia32_pause();
      continue;
    }
    ++player.passes;
    const bool stop = me == 0 && (player.passes & 63U) == 0 && player.deadline->passed();
    __atomic_store_n(&ball.turn, stop ? over : 1 - me, __ATOMIC_RELEASE);
  }
  syscall(SYS_exit, 0);  // of this thread alone
  return 0;
}
constexpr int producer_line = __LINE__ - 5;

bool start(Player& player) {
  void* stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    return false;
  }
  const int flags =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  return clone(play, static_cast<char*>(stack) + stack_bytes, flags, &player, nullptr, nullptr, &player.alive) > 0;
}

void join(Player& player) {
  for (pid_t alive = 0; (alive = __atomic_load_n(&player.alive, __ATOMIC_ACQUIRE)) != 0;) {
    syscall(SYS_futex, &player.alive, FUTEX_WAIT, alive, nullptr, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("clone_threads", "two threads made by clone() hand a word to and fro");
  flags.number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);

  const Deadline deadline(flags.real("--seconds"));
  static Player players[2];
  for (std::uint32_t me = 0; me < 2; ++me) {
    players[me].me = me;
    players[me].deadline = &deadline;
    if (!start(players[me])) {
      flags.refuse("clone failed");
    }
  }
  join(players[0]);
  join(players[1]);

  Truth truth("clone_threads", 3);
  truth.add_data("ball", ball);
  truth.file = __FILE_NAME__;
  truth.producer_line = producer_line;
  truth.consumer_line = consumer_line;
  truth.invalidations_unknown = "how often a waiting thread reads is not forced";
  truth.add_true(1, 2, players[0].passes);
  truth.add_true(2, 1, players[1].passes);
  truth.print(deadline.elapsed());
}
