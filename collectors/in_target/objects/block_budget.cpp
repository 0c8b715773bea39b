// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/block_budget.h"

#include <atomic>

#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/block_table.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

using watch_policy::block_classes;
using watch_policy::BlockCounts;

constexpr double part_of_budget = 0.25;
constexpr std::uint64_t window_ns = 20'000'000;  // of CPU time, between two reviews

/// Sums over all threads since the last review.
struct Window {
  std::atomic<std::uint64_t> cpu_ns;
  std::atomic<std::uint64_t> made[block_classes];
};
constinit Window window{};

/// Belongs to the thread that holds `reviewing`.
struct Review {
  watch_policy::BlockThreshold policy;
  std::atomic<std::uint32_t> first;  // class from which on blocks are entered; read by all threads
  std::uint32_t highest = 0;         // the highest so far
  std::uint64_t cpu_ns = 0;          // used by the process
};
constinit Review review{};
constinit ProcessFlag reviewing;

BlockCounts recently_made(blocks::MadeBlocks& blocks) {
  std::array<std::uint32_t, block_classes> now{};
  for (std::uint32_t log = 4; log < blocks.made.size(); ++log) {
    now[watch_policy::class_of_log(log)] += std::atomic_ref(blocks.made[log]).load(std::memory_order_relaxed);
  }
  BlockCounts made{};
  for (std::uint32_t i = 0; i < block_classes; ++i) {
    made[i] = now[i] - blocks.charged[i];
  }
  blocks.charged = now;
  return made;
}

/// A line of text, cut if it is too long.
class Line {
 public:
  void append(const char* text) {
    for (; *text != 0 && length_ + 1 < sizeof text_; ++text) {
      text_[length_++] = *text;
    }
  }
  void append(std::uint64_t number) {
    char digits[21] = {};
    char* at = digits + 20;
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    append(at);
  }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  char text_[256] = {};
  std::size_t length_ = 0;
};

void say_left_out(std::uint64_t bytes, std::uint64_t cpu_ns) {
  constexpr std::uint64_t tenth_ns = 100'000'000;
  Line line;
  line.append("heap blocks below ");
  line.append(bytes);
  line.append(" bytes");
  if (cpu_ns >= tenth_ns) {
    line.append(" that were allocated after ");
    line.append(cpu_ns / (10 * tenth_ns));
    line.append(".");
    line.append(cpu_ns / tenth_ns % 10);
    line.append(" s of CPU time");
  }
  line.append(
      " may be left unnamed: listing them all would take more than a quarter of the budget "
      "(--heap-threshold 1 lists them whatever it takes)");
  emit_message("small_blocks_unnamed", line.text());
}

void apply(std::uint32_t first, std::uint64_t cpu_ns) {
  const std::uint32_t before = review.first.load(std::memory_order_relaxed);
  if (first == before || !blocks::move_threshold(watch_policy::least_block(before), watch_policy::least_block(first))) {
    return;
  }
  review.first.store(first, std::memory_order_relaxed);
  if (first > review.highest) {
    review.highest = first;
    say_left_out(watch_policy::least_block(first), cpu_ns);
  }
}

void review_threshold() {
  const TryLock lock(reviewing, runtime().pid);
  if (!lock.held()) {
    return;
  }
  BlockCounts made{};
  for (std::uint32_t i = 0; i < block_classes; ++i) {
    made[i] = window.made[i].exchange(0, std::memory_order_relaxed);
  }
  const std::uint64_t cpu_ns = window.cpu_ns.exchange(0, std::memory_order_relaxed);
  review.cpu_ns += cpu_ns;
  apply(review.policy.review(made, cpu_ns, runtime().config.budget * part_of_budget), review.cpu_ns);
}

}  // namespace

void charge_blocks(std::uint64_t thread_pointer, std::uint64_t cpu_ns) {
  if (static constinit Once said; blocks::lacks_full_table() && said.first()) {
    emit_message("blocks_without_memory",
                 "most heap blocks have no name: the table that knows them needs 6 MB more than the limit of the "
                 "program's memory leaves (ulimit -v, ulimit -d)");
  }
  // The cost that the user asked for must not reduce the budget of the watches.
  if (runtime().config.heap_threshold != 0 || thread_pointer == 0) {
    return;
  }
  const BlockCounts made = recently_made(blocks::made_blocks_of(thread_pointer));
  runtime().budget.spend(watch_policy::entry_cost_ns(made, review.first.load(std::memory_order_relaxed)));
  for (std::uint32_t i = 0; i < block_classes; ++i) {
    if (made[i] != 0) {
      window.made[i].fetch_add(made[i], std::memory_order_relaxed);
    }
  }
  if (window.cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed) + cpu_ns >= window_ns) {
    review_threshold();
  }
}

}  // namespace crosstalk::in_target
