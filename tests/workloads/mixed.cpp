// SPDX-License-Identifier: Apache-2.0
// Two threads take turns on two arrays of lines. In one they add to the same word of a line (true sharing), in
// the other to words of their own (false sharing); a given fraction of the turns goes to the former.
#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::size_t lines = 1024;
constexpr std::uint32_t over = 2;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word[workload::line_bytes / sizeof(std::uint64_t)];
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

constexpr int false_line = __LINE__ + 3;
void touch_own_word(int me) {
  for (auto& line : own_word) {
    __atomic_fetch_add(&line.word[me == 0 ? 1 : 5], 1U, __ATOMIC_RELAXED);
  }
}

bool await_turn(std::uint32_t me) {
  for (unsigned spins = 0;;) {
    const std::uint32_t whose = __atomic_load_n(&turn.whose, __ATOMIC_ACQUIRE);
    if (whose == me || whose == over) {
      return whose == me;
    }
    workload::relax(spins, false);
  }
}

struct Turns {
  std::uint64_t same = 0, own = 0;
};

/// Both threads choose alike in a round: `same` of ten rounds, evenly spread.
Turns take_turns(int me, std::uint64_t same_of_ten, const Deadline& deadline) {
  Turns turns;
  for (std::uint64_t round = 0; await_turn(static_cast<std::uint32_t>(me)); ++round) {
    if ((round * same_of_ten) % 10 < same_of_ten) {
      touch_same_word(me);
      ++turns.same;
    } else {
      touch_own_word(me);
      ++turns.own;
    }
    const bool stop = me == 1 && round % 64 == 63 && deadline.passed();
    __atomic_store_n(&turn.whose, stop ? over : static_cast<std::uint32_t>(1 - me), __ATOMIC_RELEASE);
    if (stop) {
      break;
    }
  }
  return turns;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("mixed", "true and false sharing in given parts");
  flags.number("--threads", 2, 2, 2, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--true-tenths", 5, 0, 10, "tenths of the turns that share truly");
  flags.parse(argc, argv);
  const auto same_of_ten = static_cast<std::uint64_t>(flags.integer("--true-tenths"));

  const Deadline deadline(flags.real("--seconds"));
  Turns turns[2];
  workload::run_crew(2, [&](int index) { turns[index - 1] = take_turns(index - 1, same_of_ten, deadline); });

  Truth truth("mixed", 3);
  truth.object = same_of_ten >= 5 ? "same_word" : "own_word";
  truth.more_objects = {same_of_ten >= 5 ? "own_word" : "same_word"};
  truth.sync = {"turn"};
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = same_of_ten >= 5 ? true_line : false_line;
  for (int me = 0; me < 2; ++me) {
    truth.add_true(2 - me, me + 1, turns[me].same * lines);
    truth.add_false(2 - me, me + 1, turns[me].own * lines);
  }
  truth.print(deadline.elapsed());
}
