// SPDX-License-Identifier: Apache-2.0
// Luggage goes round N threads: each has a rack of its own into which only its predecessor stores, so thread i
// communicates only to thread i + 1, by every line of the rack once a round. Tokens, in lines of their own, announce
// it.
#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr std::size_t rack_lines = 128;
constexpr std::uint64_t over = UINT64_MAX;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};
struct Rack {
  Line lines[rack_lines];
};
Rack luggage[max_threads];
Line tokens[max_threads];  // the round that the luggage belongs to

bool yields = true;

std::uint64_t await_token(const Line& mine, std::uint64_t round) {
  unsigned spins = 0;
  for (;;) {
    const std::uint64_t token = __atomic_load_n(&mine.word, __ATOMIC_ACQUIRE);
    if (token == round || token == over) {
      return token;
    }
    workload::relax(spins, yields);
  }
}

constexpr int pick_up_line = __LINE__ + 4;
std::uint64_t pick_up(const Rack& rack) {
  std::uint64_t sum = 0;
  for (const Line& line : rack.lines) {
    sum += __atomic_load_n(&line.word, __ATOMIC_RELAXED);
  }
  return sum;
}

constexpr int put_down_line = __LINE__ + 3;
void put_down(Rack& rack, std::uint64_t word) {
  for (Line& line : rack.lines) {
    __atomic_store_n(&line.word, word, __ATOMIC_RELAXED);
  }
}

void hand_on(Line& next, std::uint64_t token) { __atomic_store_n(&next.word, token, __ATOMIC_RELEASE); }

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
  for (std::uint64_t round = 1;; ++round) {
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
  flags.choice("--wait", {"yield", "spin"}, "how a thread waits for the token");
  flags.parse(argc, argv);
  yields = flags.word("--wait") == "yield";
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
