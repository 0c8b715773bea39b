// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/tracing.h"

#include "collectors/observer/target_process.h"

namespace crosstalk::observer {

bool Tracing::is_traced(std::uint64_t now_ns) {
  constexpr std::uint64_t pause_ns = 100'000'000;  // a debugger takes longer from attaching to its first watchpoint
  if (now_ns >= due_ns_) {
    due_ns_ = now_ns + pause_ns;
    const auto facts = thread_facts(pid_, pid_);
    now_ = facts ? facts->tracer : 0;
    note(now_);
  }
  return now_ != 0;
}

void Tracing::note(pid_t tracer) {
  if (tracer == 0 || tracer == last_) {
    return;
  }
  last_ = tracer;
  const auto facts = thread_facts(tracer, tracer);
  tracer_ = (facts ? facts->name : std::string("a tracer")) + " (process " + std::to_string(tracer) + ")";
}

}  // namespace crosstalk::observer
