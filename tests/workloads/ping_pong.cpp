// SPDX-License-Identifier: Apache-2.0
// Two threads hand one word to and fro: true sharing, one communication a hand-over, in both directions alike. With
// `--lines`, whoever has the ball also adds to a word in each of so many lines.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::uint32_t over = 2;
constexpr int max_lines = 1024;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};
struct alignas(workload::line_bytes) Ball {
  std::uint32_t turn = 0;  // whose turn it is: 0, 1, or over
  Line lines[max_lines];
};
Ball ball;

alignas(workload::line_bytes) std::mutex referee;
alignas(workload::line_bytes) std::condition_variable whistle;

enum class Wait { spin, yield, futex, condvar };
Wait wait_kind = Wait::spin;
int line_count = 0;

constexpr int consumer_line = __LINE__ + 4;
void wait_spinning(std::uint32_t me, bool yields) {
  unsigned spins = 0;
  for (;;) {
    const std::uint32_t turn = __atomic_load_n(&ball.turn, __ATOMIC_ACQUIRE);
    if (turn == me || turn == over) {
      return;
    }
    workload::relax(spins, yields);
  }
}

constexpr int futex_line = __LINE__ + 3;
void wait_futex(std::uint32_t me) {
  for (;;) {
    const std::uint32_t turn = __atomic_load_n(&ball.turn, __ATOMIC_ACQUIRE);
    if (turn == me || turn == over) {
      return;
    }
    syscall(SYS_futex, &ball.turn, FUTEX_WAIT_PRIVATE, turn, nullptr, nullptr, 0);
  }
}

void wait_for(std::uint32_t me) {
  switch (wait_kind) {
    case Wait::spin:
      return wait_spinning(me, false);
    case Wait::yield:
      return wait_spinning(me, true);
    case Wait::futex:
      return wait_futex(me);
    case Wait::condvar: {
      std::unique_lock lock(referee);
      whistle.wait(lock, [me] { return ball.turn == me || ball.turn == over; });
    }
  }
}

constexpr int producer_line = __LINE__ + 8;
void pass(std::uint32_t to) {
  if (wait_kind == Wait::condvar) {
    const std::lock_guard lock(referee);
    ball.turn = to;
    whistle.notify_one();
    return;
  }
  __atomic_store_n(&ball.turn, to, __ATOMIC_RELEASE);
  if (wait_kind == Wait::futex) {
    syscall(SYS_futex, &ball.turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

constexpr int add_line = __LINE__ + 3;
void add_to_lines() {
  for (int n = 0; n < line_count; ++n) {
    __atomic_fetch_add(&ball.lines[n].word, 1U, __ATOMIC_RELAXED);
  }
}

/// Plays until the time is up; returns how often this player passed the ball.
std::uint64_t play(std::uint32_t me, const Deadline& deadline) {
  std::uint64_t passes = 0;
  for (;;) {
    wait_for(me);
    if (__atomic_load_n(&ball.turn, __ATOMIC_RELAXED) == over) {
      return passes;
    }
    ++passes;
    add_to_lines();
    if (me == 0 && (passes & 63U) == 0 && deadline.passed()) {
      pass(over);
      return passes;
    }
    pass(1 - me);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("ping_pong", "two threads hand one word to and fro");
  flags.number("--threads", 2, 2, 2, "players").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", 0, 0, max_lines, "lines that travel with the ball");
  flags.choice("--wait", {"spin", "yield", "futex", "condvar"}, "how a player waits for the ball");
  flags.parse(argc, argv);
  line_count = flags.integer("--lines");
  const std::string& wait = flags.word("--wait");
  wait_kind = wait == "spin"    ? Wait::spin
              : wait == "yield" ? Wait::yield
              : wait == "futex" ? Wait::futex
                                : Wait::condvar;

  const Deadline deadline(flags.real("--seconds"));
  std::uint64_t passes[2] = {};
  workload::run_crew(2, [&](int index) { passes[index - 1] = play(static_cast<std::uint32_t>(index - 1), deadline); });

  Truth truth("ping_pong", 3);
  truth.object = "ball";
  truth.file = __FILE_NAME__;
  truth.producer_line = line_count > 0 ? add_line : producer_line;
  truth.consumer_line = line_count > 0 ? add_line : wait_kind == Wait::futex ? futex_line : consumer_line;
  if (wait_kind == Wait::condvar) {
    truth.sync = {"referee", "whistle"};
  }
  const auto lines = static_cast<std::uint64_t>(1 + line_count);
  truth.add_true(1, 2, passes[0] * lines);
  truth.add_true(2, 1, passes[1] * lines);
  truth.print(deadline.elapsed());
}
