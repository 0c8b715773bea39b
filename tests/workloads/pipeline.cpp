// SPDX-License-Identifier: Apache-2.0
// Items pass through a chain of threads by bounded queues (a mutex and condition variables each). Every stage reads and
// rewrites the item's lines; the first stage refills items that the last one has finished.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr std::size_t item_lines = 64;
constexpr std::size_t pool_items = 32;

struct Item {
  struct alignas(workload::line_bytes) Line {
    std::uint64_t value;
  };
  Line lines[item_lines];
};
Item items[pool_items];

/// Null is the end of the stream.
class Queue {
 public:
  void push(Item* item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
    filled_.notify_one();
  }
  Item* pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !items_.empty(); });
    Item* item = items_.front();
    items_.pop_front();
    return item;
  }

 private:
  alignas(workload::line_bytes) std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item*> items_;
};

constexpr int work_line = __LINE__ + 3;
void work_on(Item& item) {
  for (auto& line : item.lines) {
    __atomic_fetch_add(&line.value, 1U, __ATOMIC_RELAXED);
  }
}

struct Shift {
  std::uint64_t handled = 0;
  CostClock clock;
};

/// Stage `me` of `stages` takes from queues[me] and gives to the next; the last gives back to the first.
Shift run_stage(int me, int stages, std::vector<std::unique_ptr<Queue>>& queues, const Deadline& deadline) {
  Queue& in = *queues[static_cast<std::size_t>(me)];
  Queue& out = *queues[static_cast<std::size_t>((me + 1) % stages)];
  Shift shift;
  for (;;) {
    Item* item = in.pop();
    if (item == nullptr || (me == 0 && (shift.handled & 63U) == 0 && deadline.passed())) {
      break;
    }
    shift.clock.begin();
    work_on(*item);
    shift.clock.end((me + stages - 1) % stages + 1, workload::Sharing::same_word);
    ++shift.handled;
    out.push(item);
  }
  if (me + 1 < stages) {
    out.push(nullptr);
  }
  return shift;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("pipeline", "items pass through a chain of threads");
  flags.number("--threads", 3, 2, max_threads, "stages").number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int stages = flags.integer("--threads");

  const Deadline deadline(flags.real("--seconds"));
  std::vector<std::unique_ptr<Queue>> queues;
  for (int n = 0; n < stages; ++n) {
    queues.push_back(std::make_unique<Queue>());
  }
  for (Item& item : items) {
    queues[0]->push(&item);
  }
  std::vector<Shift> shifts(static_cast<std::size_t>(stages));
  workload::run_crew(stages, [&](int index) {
    shifts[static_cast<std::size_t>(index - 1)] = run_stage(index - 1, stages, queues, deadline);
  });

  Truth truth("pipeline", stages + 1);
  truth.add_data("items", items);
  truth.sync = {"queues"};
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = work_line;
  for (int stage = 1; stage < stages; ++stage) {
    truth.add_true(stage, stage + 1, item_lines * shifts[static_cast<std::size_t>(stage)].handled);
  }
  for (int stage = 1; stage <= stages; ++stage) {
    truth.add_costs(stage, shifts[static_cast<std::size_t>(stage - 1)].clock);
  }
  const std::uint64_t begun = shifts[0].handled;
  truth.add_true(stages, 1, item_lines * (begun > pool_items ? begun - pool_items : 0));
  truth.print(deadline.elapsed());
}
