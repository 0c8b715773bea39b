// SPDX-License-Identifier: Apache-2.0
// Threads with a deque each. In turn, one thread fills a batch of tasks and pushes them to its own deque; it takes from
// one end, the others steal from the other, and the taker works on the task's lines. The machine decides the thefts, so
// each task's ticket names its previous thread, and the matrix holds the real order.
#include <deque>
#include <mutex>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr int tasks_of_each = 4;
constexpr int max_tasks = tasks_of_each * max_threads;
constexpr std::size_t task_lines = 64;

struct Task {
  struct alignas(workload::line_bytes) Line {
    std::uint64_t word = 0;
  };
  Line lines[task_lines];
};
Task tasks[max_tasks];

/// Goes with a task through the deques; the task's own lines are touched by nothing but the work.
struct Ticket {
  int task = 0;
  int last = 0;  // index of the thread that stored to its lines last; 0: nobody has
};

struct alignas(workload::line_bytes) Deque {
  std::mutex mutex;
  std::deque<Ticket> tickets;

  void push(const Ticket& ticket) {
    const std::lock_guard lock(mutex);
    tickets.push_back(ticket);
  }
  bool take(bool from_back, Ticket& ticket) {
    const std::lock_guard lock(mutex);
    if (tickets.empty()) {
      return false;
    }
    ticket = from_back ? tickets.back() : tickets.front();
    from_back ? tickets.pop_back() : tickets.pop_front();
    return true;
  }
};
Deque deques[max_threads];

/// The batch under way.
struct Batch {
  alignas(workload::line_bytes) std::uint32_t number = 0;  // 0: none yet
  alignas(workload::line_bytes) std::uint32_t done = 0;    // tasks of it that have been worked on
  alignas(workload::line_bytes) Ticket finished[max_tasks];
};
Batch batch;
constexpr std::uint32_t over = UINT32_MAX;

/// One thread's record; `from[n]`: number of tasks that it got whose lines thread n had stored to last.
struct Ledger {
  std::vector<std::uint64_t> from;
  std::uint64_t steals = 0, own = 0;
  CostClock clock;
};

constexpr int fill_line = __LINE__ + 3;
void fill(Task& task, std::uint64_t word) {
  for (auto& line : task.lines) {
    __atomic_store_n(&line.word, word, __ATOMIC_RELAXED);
  }
}

constexpr int work_line = __LINE__ + 3;
void work_on(Task& task) {
  for (auto& line : task.lines) {
    __atomic_fetch_add(&line.word, 1U, __ATOMIC_RELAXED);
  }
}

/// Does `work` to the lines of the ticket's task, and takes down from whom they come.
template <class Work>
void account(const Ticket& ticket, int me, Ledger& ledger, const Work& work) {
  if (ticket.last == 0 || ticket.last == me) {
    work(tasks[ticket.task]);
    return;
  }
  ++ledger.from[static_cast<std::size_t>(ticket.last)];
  ledger.clock.begin();
  work(tasks[ticket.task]);
  ledger.clock.end(ticket.last, workload::Sharing::same_word);
}

void finish(Ticket ticket, int me) {
  ticket.last = me;
  batch.finished[ticket.task] = ticket;
  __atomic_add_fetch(&batch.done, 1U, __ATOMIC_ACQ_REL);
}

/// Takes one task from its own deque or from another's, and works on it; false when there was none.
bool find_work(int me, int threads, Ledger& ledger) {
  Ticket ticket;
  for (int n = 0; n < threads; ++n) {
    const int victim = (me - 1 + n) % threads;
    if (deques[victim].take(n == 0, ticket)) {
      ++(n == 0 ? ledger.own : ledger.steals);
      account(ticket, me, ledger, work_on);
      finish(ticket, me);
      return true;
    }
  }
  return false;
}

/// Fills all tasks, works on a fair share of them, and waits until the others have stolen the rest: so there are steals
/// on any machine.
void lead(int me, int threads, std::uint32_t number, Ledger& ledger) {
  const int count = tasks_of_each * threads;
  __atomic_store_n(&batch.done, 0U, __ATOMIC_RELAXED);
  for (int task = 0; task < count; ++task) {
    Ticket ticket = batch.finished[task];
    ticket.task = task;
    account(ticket, me, ledger, [number](Task& filled) { fill(filled, number); });
    ticket.last = me;
    deques[me - 1].push(ticket);
  }
  for (int task = 0; task < tasks_of_each && find_work(me, threads, ledger); ++task) {
  }
  for (unsigned spins = 0; __atomic_load_n(&batch.done, __ATOMIC_ACQUIRE) != static_cast<std::uint32_t>(count);) {
    workload::relax(spins, true);
  }
}

Ledger take_part(int me, int threads, const Deadline& deadline) {
  Ledger ledger;
  ledger.from.resize(static_cast<std::size_t>(threads) + 1);
  for (unsigned spins = 0;;) {
    const std::uint32_t number = __atomic_load_n(&batch.number, __ATOMIC_ACQUIRE);
    if (number == over) {
      return ledger;
    }
    if (static_cast<int>(number % static_cast<std::uint32_t>(threads)) == me - 1) {
      lead(me, threads, number, ledger);
      const bool stop = number % 16 == 15 && deadline.passed();
      __atomic_store_n(&batch.number, stop ? over : number + 1, __ATOMIC_RELEASE);
    } else if (!find_work(me, threads, ledger)) {
      workload::relax(spins, true);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("work_stealing", "threads fill deques of their own and steal from each other's");
  flags.number("--threads", 2, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");

  const Deadline deadline(flags.real("--seconds"));
  std::vector<Ledger> ledgers(static_cast<std::size_t>(threads));
  workload::run_crew(
      threads, [&](int index) { ledgers[static_cast<std::size_t>(index - 1)] = take_part(index, threads, deadline); });

  Truth truth("work_stealing", threads + 1);
  truth.add_data("tasks", tasks);
  truth.sync = {"deques", "batch"};
  truth.file = __FILE_NAME__;
  truth.producer_line = fill_line;
  truth.consumer_line = work_line;
  std::uint64_t steals = 0;
  std::uint64_t own = 0;
  for (int consumer = 1; consumer <= threads; ++consumer) {
    const Ledger& ledger = ledgers[static_cast<std::size_t>(consumer - 1)];
    steals += ledger.steals;
    own += ledger.own;
    truth.add_costs(consumer, ledger.clock);
    for (int producer = 1; producer <= threads; ++producer) {
      truth.add_true(producer, consumer, task_lines * ledger.from[static_cast<std::size_t>(producer)]);
    }
  }
  truth.print(deadline.elapsed(), "\"steals\":" + std::to_string(steals) + ",\"own\":" + std::to_string(own) +
                                      ",\"lines\":" + std::to_string(task_lines));
}
