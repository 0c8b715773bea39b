// SPDX-License-Identifier: Apache-2.0
// Luggage goes round N threads: each has a rack of its own into which only its predecessor stores, so thread i
// communicates only to thread i + 1, by every line of the rack once a round. Tokens, in lines of their own, announce
// it. With `--passes`, a thread goes over both racks more often than once, so that threads take turns less often.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr std::size_t most_lines = 128;
constexpr std::uint32_t over = UINT32_MAX;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};
struct alignas(workload::line_bytes) Token {
  std::uint32_t round = 0;  // that the luggage belongs to
};
struct Rack {
  Line lines[most_lines];
};
Rack luggage[max_threads];
Token tokens[max_threads];

enum class Wait { yield, spin, futex };
Wait wait_kind = Wait::yield;
std::size_t rack_lines = most_lines;
int passes = 1;

std::uint32_t await_token(const Token& mine, std::uint32_t round) {
  unsigned spins = 0;
  for (;;) {
    const std::uint32_t token = __atomic_load_n(&mine.round, __ATOMIC_ACQUIRE);
    if (token == round || token == over) {
      return token;
    }
    if (wait_kind == Wait::futex) {
      syscall(SYS_futex, &mine.round, FUTEX_WAIT_PRIVATE, token, nullptr, nullptr, 0);
    } else {
      workload::relax(spins, wait_kind == Wait::yield);
    }
  }
}

constexpr int pick_up_line = __LINE__ + 5;
std::uint64_t pick_up(const Rack& rack) {
  std::uint64_t sum = 0;
  for (int left = passes; left > 0; --left) {
    for (std::size_t n = 0, end = rack_lines; n < end; ++n) {
      sum += __atomic_load_n(&rack.lines[n].word, __ATOMIC_RELAXED);
    }
  }
  return sum;
}

constexpr int put_down_line = __LINE__ + 4;
void put_down(Rack& rack, std::uint64_t word) {
  for (int left = passes; left > 0; --left) {
    for (std::size_t n = 0, end = rack_lines; n < end; ++n) {
      __atomic_store_n(&rack.lines[n].word, word, __ATOMIC_RELAXED);
    }
  }
}

void hand_on(Token& next, std::uint32_t token) {
  __atomic_store_n(&next.round, token, __ATOMIC_RELEASE);
  if (wait_kind == Wait::futex) {
    syscall(SYS_futex, &next.round, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

/// The pieces that one thread has picked up, and their cost.
struct Gain {
  std::uint64_t rounds = 0;
  CostClock clock;
};

std::uint64_t pick_up_timed(int me, int threads, CostClock& clock) {
  clock.begin();
  const std::uint64_t sum = pick_up(luggage[me]);
  clock.end((me + threads - 1) % threads + 1, workload::Sharing::same_word);
  return sum;
}

Gain take_part(int me, int threads, const Deadline& deadline) {
  CostClock clock;
  const int next = (me + 1) % threads;
  for (std::uint32_t round = 1;; ++round) {
    const bool first = me == 0 && round == 1;  // thread 0 starts the first round
    if (!first && await_token(tokens[me], me == 0 ? round - 1 : round) == over) {
      hand_on(tokens[next], over);
      return {me == 0 ? round - 2 : round - 1, clock};
    }
    const std::uint64_t word = first ? 0 : pick_up_timed(me, threads, clock);
    const bool stop = me == 0 && (round & 63U) == 0 && deadline.passed();
    if (!stop) {
      put_down(luggage[next], word + 1);
    }
    hand_on(tokens[next], stop ? over : round);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("ring", "luggage goes round N threads");
  flags.number("--threads", 3, 2, max_threads, "threads in the ring").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", most_lines, 1, most_lines, "lines of a rack");
  flags.number("--passes", 1, 1, 1e6, "times that a thread loads all of its rack, and stores to all of the next");
  flags.choice("--wait", {"yield", "spin", "futex"}, "how a thread waits for the token");
  flags.parse(argc, argv);
  const std::string& wait = flags.word("--wait");
  wait_kind = wait == "yield" ? Wait::yield : wait == "spin" ? Wait::spin : Wait::futex;
  rack_lines = static_cast<std::size_t>(flags.integer("--lines"));
  passes = flags.integer("--passes");
  const int threads = flags.integer("--threads");

  const Deadline deadline(flags.real("--seconds"));
  std::vector<Gain> gains(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    gains[static_cast<std::size_t>(index - 1)] = take_part(index - 1, threads, deadline);
  });

  Truth truth("ring", threads + 1);
  truth.add_data("luggage", luggage);
  truth.sync = {"tokens"};
  truth.file = __FILE_NAME__;
  truth.producer_line = put_down_line;
  truth.consumer_line = pick_up_line;
  for (int me = 0; me < threads; ++me) {
    const int before = (me + threads - 1) % threads;
    const auto& [rounds, clock] = gains[static_cast<std::size_t>(me)];
    truth.add_costs(me + 1, clock);
    truth.add_true(before + 1, me + 1, rack_lines * rounds);
    truth.add_invalidations(before + 1, me + 1, rack_lines * (rounds - 1));  // the first round finds nothing read yet
  }
  truth.print(deadline.elapsed());
}
