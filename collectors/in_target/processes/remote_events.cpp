// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/remote_events.h"

#include <errno.h>

#include <atomic>

#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/cross_process_state.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

using profile::ThreadSlot;
using profile::ThreadWatchpoints;

constexpr int no_descriptor = 0;        // yet
constexpr std::uint32_t max_held = 64;  // of a pair: more than the threads that a watch arms, times two

/// An event that this process has opened on a thread of another one.
struct Held {
  ThreadSlot* thread = nullptr;
  std::int32_t tid = 0;
  std::uint32_t event = 0;
  OwnedEvent descriptor;
};

struct HeldEvents {
  std::atomic<std::uint32_t> count;
  Held held[max_held];
};

constinit HeldEvents all_held[watch_slots];

std::uint64_t name_of(std::int32_t pid, int fd) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(pid)) << 32U | static_cast<std::uint32_t>(fd);
}

std::int32_t pid_of(std::uint64_t holder) { return static_cast<std::int32_t>(holder >> 32U); }
int descriptor_of(std::uint64_t holder) { return static_cast<int>(holder & 0xffffffffU); }

// A copy of another process's descriptor.
long borrow_descriptor(std::int32_t pid, int fd) {
  return open_for_a_moment([=] {
    const long process = system_call(SYS_pidfd_open, pid, 0);
    if (process < 0) {
      return process;
    }
    const long copy = system_call(SYS_pidfd_getfd, process, fd, 0);
    system_call(SYS_close, process);
    return copy;
  });
}

void note_place(ThreadWatchpoints& thread, std::uint32_t event, const WatchPlace& place) {
  note_mode_at(thread, event, place.mode, monotonic_ns());
  if (place.mode != WatchMode::off) {
    thread.address[event].store(place.address, std::memory_order_relaxed);
  }
}

bool no_longer_held(long result) { return result == -ESRCH || result == -EBADF || result == -ENOTTY; }

// The thread of the slot is the one that it was, and may be armed.
bool same_thread(const ThreadSlot& thread, std::int32_t tid) {
  return thread.tid.load(std::memory_order_relaxed) == tid &&
         thread.watchpoints.words.load(std::memory_order_seq_cst) != 0;
}

bool used_by_others(const Held& held) {
  const auto& watch = held.thread->watchpoints.watch[held.event / words_per_slot];
  return same_thread(*held.thread, held.tid) && watch.load(std::memory_order_seq_cst) != 0;
}

void end(Held& held) {
  set_watch_event(held.descriptor, {});  // a forked child may have a copy of the descriptor
  close_event(held.descriptor);
}

// Returns true when it is closed. A user of a copy of the descriptor first marks the event as in use, and then checks
// that it is still held.
bool release(Held& held) {
  if (used_by_others(held)) {
    return false;
  }
  ThreadWatchpoints& thread = held.thread->watchpoints;
  withdraw_event(thread, held.event, held.descriptor);
  if (used_by_others(held) && claim_event(thread, held.event)) {
    publish_event(thread, held.event, held.descriptor);
    return false;
  }
  end(held);
  return true;
}

long open_remote_event(ThreadSlot& thread, std::uint32_t event, const WatchPlace& place) {
  HeldEvents& list = all_held[event / words_per_slot];
  const std::uint32_t count = list.count.load(std::memory_order_relaxed);
  const std::int32_t tid = thread.tid.load(std::memory_order_relaxed);
  if (count == max_held || tid == 0) {
    return -ENOSPC;
  }
  if (!claim_event(thread.watchpoints, event)) {
    return set_held_event(thread.watchpoints, event, place);
  }
  Held& held = list.held[count];
  held.thread = &thread;
  held.tid = tid;
  held.event = event;
  held.descriptor = {};
  long result = open_watch_event(tid, event, held.descriptor);
  publish_event(thread.watchpoints, event, held.descriptor);
  if (result < 0) {
    return result;
  }
  list.count.store(count + 1, std::memory_order_relaxed);
  result = set_watch_event(held.descriptor, place);
  // A thread that must not be armed any more has its events switched off, after it has said so.
  if (!same_thread(thread, tid)) {
    set_watch_event(held.descriptor, {});
    return -ESRCH;
  }
  return result;
}

}  // namespace

bool claim_event(ThreadWatchpoints& thread, std::uint32_t event) {
  std::uint64_t nobody = 0;
  return thread.event[event].holder.compare_exchange_strong(nobody, name_of(runtime().pid, no_descriptor),
                                                            std::memory_order_seq_cst);
}

void publish_event(ThreadWatchpoints& thread, std::uint32_t event, const OwnedEvent& held) {
  ThreadWatchpoints::Event& shared = thread.event[event];
  shared.id.store(held.id, std::memory_order_relaxed);
  shared.holder.store(held.fd > 0 ? name_of(runtime().pid, held.fd) : 0, std::memory_order_seq_cst);
}

void withdraw_event(ThreadWatchpoints& thread, std::uint32_t event, const OwnedEvent& held) {
  std::uint64_t mine = name_of(runtime().pid, held.fd);
  if (held.fd > 0) {
    thread.event[event].holder.compare_exchange_strong(mine, 0, std::memory_order_seq_cst);
  }
}

bool held_elsewhere(const ThreadWatchpoints& thread, std::uint32_t event) {
  const std::uint64_t holder = thread.event[event].holder.load(std::memory_order_acquire);
  return holder != 0 && pid_of(holder) != runtime().pid;
}

bool any_held_elsewhere(const ThreadWatchpoints& thread) {
  for (std::uint32_t event = 0; event < ThreadWatchpoints::max_events; ++event) {
    if (held_elsewhere(thread, event)) {
      return true;
    }
  }
  return false;
}

long set_held_event(ThreadWatchpoints& thread, std::uint32_t event, const WatchPlace& place) {
  ThreadWatchpoints::Event& shared = thread.event[event];
  std::uint64_t holder = shared.holder.load(std::memory_order_seq_cst);
  if (holder == 0) {
    return -ESRCH;
  }
  if (descriptor_of(holder) == no_descriptor) {
    // Its opener may have been killed.
    return system_call(SYS_kill, pid_of(holder), 0) == -ESRCH &&
                   shared.holder.compare_exchange_strong(holder, 0, std::memory_order_seq_cst)
               ? -ESRCH
               : -EBUSY;
  }
  OwnedEvent copy;
  copy.id = shared.id.load(std::memory_order_acquire);
  copy.mark = watch_mark + event;
  const bool ours = pid_of(holder) == runtime().pid;
  const long fd = ours ? descriptor_of(holder) : borrow_descriptor(pid_of(holder), descriptor_of(holder));
  long result = fd;
  if (fd >= 0) {
    copy.fd = static_cast<int>(fd);
    note_place(thread, event, place);
    result = set_watch_event(copy, place);
    if (!ours) {
      system_call(SYS_close, fd);
    }
  }
  if (no_longer_held(result)) {  // the holder has ended, or its program has closed the descriptor
    shared.holder.compare_exchange_strong(holder, 0, std::memory_order_seq_cst);
    return -ESRCH;
  }
  return result >= 0 && shared.holder.load(std::memory_order_seq_cst) != holder ? -ESRCH : result;
}

long arm_remote_thread(ThreadSlot& thread, std::uint32_t event, std::uint32_t watch, const WatchPlace& place) {
  ThreadWatchpoints& watchpoints = thread.watchpoints;
  const bool on_stack = place.address >= watchpoints.stack_low.load(std::memory_order_relaxed) &&
                        place.address < watchpoints.stack_high.load(std::memory_order_relaxed);
  if (event >= watchpoints.words.load(std::memory_order_seq_cst) || on_stack) {
    return -ENOSPC;
  }
  watchpoints.watch[event / words_per_slot].store(watch, std::memory_order_seq_cst);
  const long result = set_held_event(watchpoints, event, place);
  if (result != -ESRCH) {
    return result;
  }
  note_place(watchpoints, event, place);
  const long opened = open_remote_event(thread, event, place);
  if (opened < 0) {
    note_place(watchpoints, event, {});
  }
  return opened;
}

void release_remote_events(std::uint32_t pair) {
  HeldEvents& list = all_held[pair];
  std::uint32_t kept = 0;
  const std::uint32_t count = list.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!release(list.held[i])) {
      list.held[kept++] = list.held[i];
    }
  }
  list.count.store(kept, std::memory_order_relaxed);
}

void forgo_remote_events(std::uint32_t pair) {
  HeldEvents& list = all_held[pair];
  for (std::uint32_t i = 0, count = list.count.load(std::memory_order_relaxed); i < count; ++i) {
    Held& held = list.held[i];
    ThreadWatchpoints& thread = held.thread->watchpoints;
    withdraw_event(thread, held.event, held.descriptor);
    if (same_thread(*held.thread, held.tid)) {
      note_place(thread, held.event, {});
    }
    end(held);
  }
  list.count.store(0, std::memory_order_relaxed);
}

bool holds_remote_events(std::uint32_t pair) { return all_held[pair].count.load(std::memory_order_relaxed) != 0; }

void drop_remote_events() {
  for (HeldEvents& list : all_held) {
    for (std::uint32_t i = 0, count = list.count.exchange(0, std::memory_order_relaxed); i < count; ++i) {
      close_event(list.held[i].descriptor);
    }
  }
}

}  // namespace crosstalk::in_target
