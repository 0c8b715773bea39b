// SPDX-License-Identifier: Apache-2.0
// Threads take turns on two arrays of lines. In one they add to the same word of a line (true sharing), in the
// other to words of their own (false sharing; with more threads than words, bytes); a given fraction of the turns
// goes to the former.
#include <algorithm>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::size_t lines = 1024;
constexpr int max_threads = 64;
constexpr std::uint32_t over = max_threads;
constexpr std::size_t line_words = workload::line_bytes / sizeof(std::uint64_t);

struct alignas(workload::line_bytes) Line {
  std::uint64_t word[line_words];
};
Line same_word[lines];
Line own_word[lines];

struct alignas(workload::line_bytes) Turn {
  std::uint32_t whose = 0;
};
Turn turn;

constexpr int true_line = __LINE__ + 3;
void touch_same_word(int) {
  for (auto& line : same_word) {
    __atomic_fetch_add(&line.word[3], 1U, __ATOMIC_RELAXED);
  }
}

/// Neighbours in turn are half a line apart.
std::size_t own_index(int me) {
  const auto n = static_cast<std::size_t>(me);
  return (1 + n * line_words / 2 + n / 2) % line_words;
}

constexpr int word_line = __LINE__ + 4;
void touch_own_word(int me) {
  const std::size_t index = own_index(me);
  for (auto& line : own_word) {
    __atomic_fetch_add(&line.word[index], 1U, __ATOMIC_RELAXED);
  }
}

constexpr int byte_line = __LINE__ + 5;
void touch_own_byte(int me) {
  constexpr auto words = static_cast<int>(line_words);
  const std::size_t index = own_index(me % words) * sizeof(std::uint64_t) + static_cast<std::size_t>(me / words);
  for (auto& line : own_word) {
    __atomic_fetch_add(reinterpret_cast<std::uint8_t*>(line.word) + index, 1U, __ATOMIC_RELAXED);
  }
}

bool await_turn(std::uint32_t me, bool yields) {
  for (unsigned spins = 0;;) {
    const std::uint32_t whose = __atomic_load_n(&turn.whose, __ATOMIC_ACQUIRE);
    if (whose == me || whose == over) {
      return whose == me;
    }
    workload::relax(spins, yields);
  }
}

struct Turns {
  std::uint64_t same = 0, own = 0;
  CostClock clock;
};

/// All threads choose alike in a round: `same` of ten rounds, evenly spread. The last thread ends the last round.
Turns take_turns(int me, int threads, std::uint64_t same_of_ten, const Deadline& deadline) {
  const auto touch_own = static_cast<std::size_t>(threads) > line_words ? touch_own_byte : touch_own_word;
  const int before = (me + threads - 1) % threads + 1;
  Turns turns;
  for (std::uint64_t round = 0; await_turn(static_cast<std::uint32_t>(me), threads > 2); ++round) {
    if ((round * same_of_ten) % 10 < same_of_ten) {
      turns.clock.begin();
      touch_same_word(me);
      turns.clock.end(before, workload::Sharing::same_word);
      ++turns.same;
    } else {
      turns.clock.begin();
      touch_own(me);
      turns.clock.end(before, workload::Sharing::own_words);
      ++turns.own;
    }
    const bool stop = me + 1 == threads && round % 64 == 63 && deadline.passed();
    __atomic_store_n(&turn.whose, stop ? over : static_cast<std::uint32_t>((me + 1) % threads), __ATOMIC_RELEASE);
    if (stop) {
      break;
    }
  }
  return turns;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("mixed", "true and false sharing in given parts");
  flags.number("--threads", 2, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--true-tenths", 5, 0, 10, "tenths of the turns that share truly");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const auto same_of_ten = static_cast<std::uint64_t>(flags.integer("--true-tenths"));

  const Deadline deadline(flags.real("--seconds"));
  std::vector<Turns> turns(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    turns[static_cast<std::size_t>(index - 1)] = take_turns(index - 1, threads, same_of_ten, deadline);
  });

  Truth truth("mixed", threads + 1);
  truth.add_data(same_of_ten >= 5 ? "same_word" : "own_word", same_of_ten >= 5 ? same_word : own_word);
  truth.add_data(same_of_ten >= 5 ? "own_word" : "same_word", same_of_ten >= 5 ? own_word : same_word);
  truth.sync = {"turn"};
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = same_of_ten >= 5                                 ? true_line
                                              : static_cast<std::size_t>(threads) > line_words ? byte_line
                                                                                               : word_line;
  for (int me = 0; me < threads; ++me) {
    const Turns& mine = turns[static_cast<std::size_t>(me)];
    const int before = (me + threads - 1) % threads;
    const std::uint64_t first = me == 0 ? 1 : 0;  // the very first turn on an array finds what nobody has stored
    truth.add_true(before + 1, me + 1, (mine.same - std::min(mine.same, first)) * lines);
    truth.add_false(before + 1, me + 1, (mine.own - std::min(mine.own, first)) * lines);
    truth.add_costs(me + 1, mine.clock);
  }
  truth.print(deadline.elapsed());
}
