// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/found_table.h"

#include <algorithm>

#include "collectors/in_target/sampling/thread_timer.h"

namespace crosstalk::in_target {
namespace {

constinit FoundTable the_table = {};

}  // namespace

FoundTable& found_table() { return the_table; }

void drop_timer(Found& found) {
  const std::int32_t timer = found.timer.exchange(0, std::memory_order_acq_rel);
  if (timer != 0) {
    delete_thread_timer(timer - 1);
  }
}

Found* find_found(std::int32_t tid) {
  Found* const found = std::find_if(the_table.begin(), the_table.end(),
                                    [tid](const Found& f) { return f.tid.load(std::memory_order_acquire) == tid; });
  return found == the_table.end() ? nullptr : found;
}

void forget_found_thread(std::int32_t tid) {
  if (Found* found = find_found(tid); found != nullptr) {
    drop_timer(*found);
  }
}

void forget_found_threads() {
  for (Found& found : the_table) {
    drop_timer(found);
  }
}

void forget_found_timers() {
  for (Found& found : the_table) {
    found.tid.store(0, std::memory_order_relaxed);
    found.timer.store(0, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
