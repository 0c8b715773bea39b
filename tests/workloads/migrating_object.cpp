// SPDX-License-Identifier: Apache-2.0
// Threads update one object of several lines under a mutex. The holder notes the previous holder, so the matrix is
// exact although the machine chooses the order.
#include <mutex>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr std::size_t object_lines = 16;

struct Account {
  struct alignas(workload::line_bytes) Entry {
    std::uint64_t balance;
    std::uint64_t changes;
  };
  Entry entries[object_lines];
};
Account account;

struct Guard {
  alignas(workload::line_bytes) std::mutex mutex;
  int last_owner = 0;  // 0: nobody yet
};
Guard guard;

constexpr int update_line = __LINE__ + 3;
void update(Account& what, std::uint64_t amount) {
  for (auto& entry : what.entries) {
    __atomic_fetch_add(&entry.balance, amount, __ATOMIC_RELAXED);
    entry.changes = entry.changes + 1;
  }
}

/// Private work between two updates, so that the others get their turn.
void think(std::uint64_t steps) {
  for (std::uint64_t n = 0; n < steps; ++n) {
    __builtin_ia32_pause();
  }
}

/// Takeovers by one thread: the previous threads, how often, and the cost.
struct Turns {
  std::vector<std::uint64_t> from;
  CostClock clock;
};

void take_turn(int me, std::uint64_t amount, Turns& turns) {
  const std::lock_guard lock(guard.mutex);
  if (guard.last_owner == me) {
    update(account, amount);
    return;
  }
  turns.clock.begin();
  update(account, amount);
  turns.clock.end(guard.last_owner, workload::Sharing::same_word);
  ++turns.from[static_cast<std::size_t>(guard.last_owner)];
  guard.last_owner = me;
}

Turns take_turns(int me, int threads, const Deadline& deadline) {
  Turns turns;
  turns.from.resize(static_cast<std::size_t>(threads) + 1);
  for (std::uint64_t n = 0; (n & 63U) != 0 || !deadline.passed(); ++n) {
    take_turn(me, n, turns);
    think(4);
  }
  return turns;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("migrating_object", "an object of several lines moves from thread to thread under a mutex");
  flags.number("--threads", 2, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");

  const Deadline deadline(flags.real("--seconds"));
  std::vector<Turns> crew(static_cast<std::size_t>(threads) + 1);
  workload::run_crew(threads,
                     [&](int index) { crew[static_cast<std::size_t>(index)] = take_turns(index, threads, deadline); });

  Truth truth("migrating_object", threads + 1);
  truth.add_data("account", account);
  truth.sync = {"guard"};
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = update_line;
  for (int consumer = 1; consumer <= threads; ++consumer) {
    const Turns& turns = crew[static_cast<std::size_t>(consumer)];
    truth.add_costs(consumer, turns.clock);
    for (int producer = 1; producer <= threads; ++producer) {
      truth.add_true(producer, consumer, object_lines * turns.from[static_cast<std::size_t>(producer)]);
    }
  }
  truth.print(deadline.elapsed());
}
