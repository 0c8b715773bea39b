// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/regions/marked_regions.h"

#include <atomic>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/fork_mark.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/regions/region_names.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/wait_clock.h"

namespace crosstalk::in_target {
namespace {

using profile::ThreadRegions;
using Node = ThreadRegions::Node;
using Open = ThreadRegions::Open;

/// The table of a thread, kept in its thread-local storage.
struct OwnRegions {
  ThreadRegions* table = nullptr;
  std::int32_t pid = 0;       // the process that it was looked up in
  std::uint32_t refused = 0;  // looks that found the thread unobserved
};
constinit thread_local OwnRegions the_own_regions __attribute__((tls_model("initial-exec")));

/// All zero. The atomic fields are written one by one: the recorder may look at any time.
void clear(ThreadRegions& table) {
  table.depth.store(0, std::memory_order_relaxed);
  table.nodes.store(0, std::memory_order_relaxed);
  table.without_room.store(0, std::memory_order_relaxed);
  table.unmatched.store(0, std::memory_order_relaxed);
  for (Open& open : table.open) {
    open.node.store(0, std::memory_order_relaxed);
  }
  for (Node& node : table.node) {
    node.key.store(0, std::memory_order_relaxed);
    node.entries.store(0, std::memory_order_relaxed);
    node.elapsed_ns.store(0, std::memory_order_relaxed);
    for (auto& waited : node.waited_ns) {
      waited.store(0, std::memory_order_relaxed);
    }
  }
}

/// The thread's table, in use from now on; null: it cannot have one.
ThreadRegions* take_table(const ThreadState& self) {
  ThreadRegions* const table = runtime().rings.regions(self.number - 1);
  if (table == nullptr || wait_clock_ns() == 0) {
    return nullptr;
  }
  if (self.slot->marks_regions.load(std::memory_order_relaxed) == 0) {
    clear(*table);
    self.slot->marks_regions.store(1, std::memory_order_release);
  }
  return table;
}

/// Asks the kernel which thread this is: not at each mark of a thread that is not observed.
__attribute__((noinline, cold)) ThreadRegions* look_up() {
  OwnRegions& own = the_own_regions;
  if (own.pid == runtime().pid && own.refused != 0 && (own.refused++ & 1023U) != 0) {
    return nullptr;
  }
  const Passage passage;
  if (!observing() || runtime().injected || kernel_process_id() != runtime().pid) {
    return nullptr;
  }
  const ThreadState* const self = current_thread();
  const bool live =
      self != nullptr && self->phase.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(ThreadPhase::live);
  ThreadRegions* const table = live ? take_table(*self) : nullptr;
  own = {table, runtime().pid, table == nullptr ? 1U : 0U};
  return table;
}

/// Returns null if nothing may be written: a forked child shares the table's memory with its parent.
ThreadRegions* own_table() {
  if (__builtin_expect(static_cast<long>(!observing() || is_unnoticed_fork()), 0) != 0) {
    return nullptr;
  }
  const OwnRegions& own = the_own_regions;
  return own.table != nullptr && own.pid == runtime().pid ? own.table : look_up();
}

/// The number of the node of `key`, made if there is none yet; 0: there is no room.
std::uint32_t node_of(ThreadRegions& table, ThreadRegions::Key key) {
  const std::uint32_t used = table.nodes.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (table.node[i].key.load(std::memory_order_relaxed) == key) {
      return i + 1;
    }
  }
  // A signal's handler that begins a region here may have the same place in mind.
  for (std::uint32_t i = used; i < ThreadRegions::most_nodes; ++i) {
    ThreadRegions::Key now = 0;
    if (table.node[i].key.compare_exchange_strong(now, key, std::memory_order_release) || now == key) {
      if (table.nodes.load(std::memory_order_relaxed) < i + 1) {
        table.nodes.store(i + 1, std::memory_order_relaxed);
      }
      return i + 1;
    }
  }
  return 0;
}

void add(std::atomic<std::uint64_t>& sum, std::uint64_t amount) {
  // Only the thread itself writes, and its handlers of signals, which a read-modify-write without a lock prefix spans.
  __asm__("addq %1, %0" : "+m"(sum) : "r"(amount) : "cc");
}

void close(ThreadRegions& table, Open& open, std::uint64_t now_ns) {
  const std::uint32_t number = open.node.load(std::memory_order_relaxed);
  const std::uint64_t begin_ns = open.begin_ns.load(std::memory_order_relaxed);
  open.node.store(0, std::memory_order_relaxed);
  if (number != 0) {
    Node& node = table.node[number - 1];
    add(node.entries, 1);
    add(node.elapsed_ns, now_ns > begin_ns ? now_ns - begin_ns : 0);
  }
}

/// Null: its thread has marked no region.
ThreadRegions* table_of(std::uint32_t slot) {
  Runtime& r = runtime();
  return r.arena.slot(slot)->marks_regions.load(std::memory_order_relaxed) != 0 ? r.rings.regions(slot) : nullptr;
}

/// Ends the innermost that is open.
void pop(ThreadRegions& table, std::uint64_t now_ns) {
  const std::uint32_t depth = table.depth.load(std::memory_order_relaxed);
  if (depth == 0) {
    add(table.unmatched, 1);
    return;
  }
  if (depth <= ThreadRegions::most_open) {
    close(table, table.open[depth - 1], now_ns);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  table.depth.store(depth - 1, std::memory_order_relaxed);
}

}  // namespace

// A signal handler in between may begin and end regions, too, and uses the entries behind `depth`. So the place is
// taken before it is filled in.
void begin_region(const char* name, const void* frame) {
  ThreadRegions* const table = own_table();
  if (table == nullptr) {
    return;
  }
  const std::uint32_t within = table->current();
  const std::uint32_t depth = table->depth.load(std::memory_order_relaxed);
  if (depth < ThreadRegions::most_open) {
    table->open[depth].node.store(0, std::memory_order_relaxed);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  table->depth.store(depth + 1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t named = depth < ThreadRegions::most_open ? number_of_name(*runtime().arena.header, name) : 0;
  const std::uint32_t node = named != 0 ? node_of(*table, ThreadRegions::key_of(within, named)) : 0;
  if (node == 0) {
    add(table->without_room, 1);
    return;
  }
  Open& open = table->open[depth];
  open.frame.store(reinterpret_cast<std::uint64_t>(frame), std::memory_order_relaxed);
  open.begin_ns.store(wait_clock_ns(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  open.node.store(node, std::memory_order_relaxed);
}

void end_region() {
  if (ThreadRegions* const table = own_table(); table != nullptr) {
    pop(*table, wait_clock_ns());
  }
}

void begin_regions(const ThreadState& self) { self.slot->marks_regions.store(0, std::memory_order_relaxed); }

void end_regions(const ThreadState& self) {
  ThreadRegions* const table = table_of(self.number - 1);
  the_own_regions = {};
  if (table == nullptr) {
    return;
  }
  const std::uint64_t now_ns = wait_clock_ns();
  while (table->depth.load(std::memory_order_relaxed) != 0) {
    pop(*table, now_ns);
  }
}

void end_regions_below(std::uint64_t stack_pointer) {
  const OwnRegions& own = the_own_regions;
  if (own.table == nullptr || own.pid != runtime().pid || !observing()) {
    return;
  }
  const std::uint64_t now_ns = wait_clock_ns();
  for (;;) {
    const std::uint32_t depth = own.table->depth.load(std::memory_order_relaxed);
    if (depth == 0 || depth > ThreadRegions::most_open ||
        own.table->open[depth - 1].frame.load(std::memory_order_relaxed) >= stack_pointer) {
      return;
    }
    pop(*own.table, now_ns);
  }
}

std::uint16_t region_of(const ThreadState& self) {
  const ThreadRegions* const table = table_of(self.number - 1);
  return table == nullptr ? std::uint16_t{0} : static_cast<std::uint16_t>(table->current());
}

std::uint16_t region_at(const ThreadState& self, std::uint64_t time_ns) {
  const ThreadRegions* const table = table_of(self.number - 1);
  if (table == nullptr) {
    return 0;
  }
  std::uint32_t at = table->depth.load(std::memory_order_relaxed);
  for (at = at < ThreadRegions::most_open ? at : ThreadRegions::most_open; at > 0; --at) {
    const ThreadRegions::Open& open = table->open[at - 1];
    const std::uint32_t number = open.node.load(std::memory_order_relaxed);
    if (number != 0 && open.begin_ns.load(std::memory_order_relaxed) <= time_ns) {
      return static_cast<std::uint16_t>(number);
    }
  }
  return 0;
}

void add_region_wait(std::uint32_t slot, profile::WaitClass what, std::uint64_t waited_ns) {
  ThreadRegions* const table = table_of(slot);
  const std::uint32_t number = table != nullptr ? table->current() : 0;
  if (number != 0) {
    // By the team's last thread, too, while its own thread waits.
    table->node[number - 1].waited_ns[static_cast<std::size_t>(what)].fetch_add(waited_ns, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
