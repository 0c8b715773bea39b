// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/runtime.h"

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constinit Runtime the_runtime;
constinit Registry the_registry;
constinit watch_policy::Board the_board;
constinit AccessFinder the_finder;

}  // namespace

Runtime& runtime() { return the_runtime; }
Registry& registry() { return the_registry; }
watch_policy::Board& board() { return the_board; }
AccessFinder& finder() { return the_finder; }

bool observing() { return the_runtime.observing.load(std::memory_order_relaxed); }

const profile::SessionConfig* session_config() {
  return the_runtime.arena.header != nullptr ? &the_runtime.config : nullptr;
}

bool lends_stacks() { return !the_runtime.injected; }

std::int32_t attached_pid() { return the_runtime.pid; }

ThreadState* current_thread() { return registry().find(kernel_thread_id()); }

}  // namespace crosstalk::in_target
