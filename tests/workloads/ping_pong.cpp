// SPDX-License-Identifier: Apache-2.0
// Two threads hand one word to and fro: true sharing, one communication a hand-over, in both directions alike. With
// `--lines`, the thread with the ball also adds to a word in each of so many lines; with more threads, each pair has a
// ball of its own.
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
constexpr int max_threads = 64;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};
struct alignas(workload::line_bytes) Ball {
  std::uint32_t turn = 0;  // the side with the turn: 0, 1, or over
  Line lines[max_lines];
};
Ball ball[max_threads / 2];

struct alignas(workload::line_bytes) Referee {
  std::mutex mutex;
};
struct alignas(workload::line_bytes) Whistle {
  std::condition_variable condition;
};
Referee referee[max_threads / 2];
Whistle whistle[max_threads / 2];

enum class Wait { spin, yield, futex, condvar };
Wait wait_kind = Wait::spin;
int line_count = 0;

/// One of the two who share a ball.
struct Player {
  int pair = 0;
  std::uint32_t me = 0;  // 0 or 1
  std::uint64_t passes = 0;
  [[nodiscard]] Ball& own() const { return ball[pair]; }
};

constexpr int consumer_line = __LINE__ + 4;
void wait_spinning(const Ball& what, std::uint32_t me, bool yields) {
  unsigned spins = 0;
  for (;;) {
    const std::uint32_t turn = __atomic_load_n(&what.turn, __ATOMIC_ACQUIRE);
    if (turn == me || turn == over) {
      return;
    }
    workload::relax(spins, yields);
  }
}

constexpr int futex_line = __LINE__ + 3;
void wait_futex(const Ball& what, std::uint32_t me) {
  for (;;) {
    const std::uint32_t turn = __atomic_load_n(&what.turn, __ATOMIC_ACQUIRE);
    if (turn == me || turn == over) {
      return;
    }
    syscall(SYS_futex, &what.turn, FUTEX_WAIT_PRIVATE, turn, nullptr, nullptr, 0);
  }
}

constexpr int condvar_wait_line = __LINE__ + 3;
void wait_condvar(const Player& player) {
  std::unique_lock lock(referee[player.pair].mutex);
  const auto mine = [&player] { return player.own().turn == player.me || player.own().turn == over; };
  whistle[player.pair].condition.wait(lock, mine);
}

void wait_for_ball(const Player& player) {
  switch (wait_kind) {
    case Wait::spin:
      return wait_spinning(player.own(), player.me, false);
    case Wait::yield:
      return wait_spinning(player.own(), player.me, true);
    case Wait::futex:
      return wait_futex(player.own(), player.me);
    case Wait::condvar:
      return wait_condvar(player);
  }
}

constexpr int condvar_pass_line = __LINE__ + 4;
void pass(const Player& player, std::uint32_t to) {
  if (wait_kind == Wait::condvar) {
    const std::lock_guard lock(referee[player.pair].mutex);
    player.own().turn = to;
    whistle[player.pair].condition.notify_one();
    return;
  }
  __atomic_store_n(&player.own().turn, to, __ATOMIC_RELEASE);
  if (wait_kind == Wait::futex) {
    syscall(SYS_futex, &player.own().turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}
constexpr int producer_line = __LINE__ - 5;

constexpr int add_line = __LINE__ + 3;
void add_to_lines(Ball& what) {
  for (int n = 0; n < line_count; ++n) {
    __atomic_fetch_add(&what.lines[n].word, 1U, __ATOMIC_RELAXED);
  }
}

/// Plays until the time is up; returns how often this player passed the ball.
std::uint64_t play(Player player, const Deadline& deadline) {
  for (;;) {
    wait_for_ball(player);
    if (__atomic_load_n(&player.own().turn, __ATOMIC_RELAXED) == over) {
      return player.passes;
    }
    ++player.passes;
    add_to_lines(player.own());
    if (player.me == 0 && (player.passes & 63U) == 0 && deadline.passed()) {
      pass(player, over);
      return player.passes;
    }
    pass(player, 1 - player.me);
  }
}

void set_lines(Truth& truth) {
  truth.producer_line = producer_line;
  truth.consumer_line = consumer_line;
  if (wait_kind == Wait::futex) {
    truth.consumer_line = futex_line;
  } else if (wait_kind == Wait::condvar) {
    truth.producer_line = condvar_pass_line;
    truth.consumer_line = condvar_wait_line;
  }
  if (line_count > 0) {
    truth.producer_line = truth.consumer_line = add_line;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("ping_pong", "pairs of threads hand one word to and fro");
  flags.number("--threads", 2, 2, max_threads, "players, an even number")
      .number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", 0, 0, max_lines, "lines that travel with the ball");
  flags.choice("--wait", {"spin", "yield", "futex", "condvar"}, "how a player waits for the ball");
  flags.parse(argc, argv);
  line_count = flags.integer("--lines");
  const std::string& wait = flags.word("--wait");
  wait_kind = wait == "spin"    ? Wait::spin
              : wait == "yield" ? Wait::yield
              : wait == "futex" ? Wait::futex
                                : Wait::condvar;

  const int threads = flags.integer("--threads");
  if (threads % 2 != 0) {
    flags.refuse("--threads " + std::to_string(threads) + " is odd: players come in pairs");
  }

  const Deadline deadline(flags.real("--seconds"));
  std::vector<std::uint64_t> passes(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    const int player = index - 1;
    passes[static_cast<std::size_t>(player)] = play({player / 2, static_cast<std::uint32_t>(player % 2), 0}, deadline);
  });

  Truth truth("ping_pong", threads + 1);
  truth.add_data("ball", ball);
  truth.file = __FILE_NAME__;
  truth.invalidations_unknown = "how often a waiting thread reads is not forced";
  set_lines(truth);
  if (wait_kind == Wait::condvar) {
    truth.sync = {"referee", "whistle"};
  }
  const auto lines = static_cast<std::uint64_t>(line_count);
  for (int one = 0; one < threads; one += 2) {
    const std::uint64_t first = passes[static_cast<std::size_t>(one)];
    const std::uint64_t second = passes[static_cast<std::size_t>(one) + 1];
    // The other thread sees each pass. The lines move with the ball: but the first holder finds them unstored, and
    // after the last pass no thread reads them.
    truth.add_true(one + 1, one + 2, first + second * lines);
    truth.add_true(one + 2, one + 1, second + (first - 1) * lines);
  }
  truth.print(deadline.elapsed());
}
