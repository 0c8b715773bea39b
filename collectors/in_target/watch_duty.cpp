// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch_duty.h"

#include "collectors/in_target/clocks.h"
#include "collectors/in_target/runtime.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t cycle_ns = 2'000'000'000;  // opening takes some 0.1 ms, which is to be little in a cycle

bool on_duty(const ThreadState& self, std::uint64_t now_ns) {
  const std::uint64_t phase = (now_ns - runtime().attached_ns) % cycle_ns * full_duty / cycle_ns;
  return phase < self.watch_duty;
}

}  // namespace

void keep_duty(ThreadState& self, std::uint64_t now_ns) {
  WatchUnit& watch = runtime().watch;
  const bool wanted = on_duty(self, now_ns);
  if (wanted == self.watch_tried) {
    return;
  }
  charge_switches(self);  // they cost otherwise from here on
  if (wanted) {
    watch.prepare(self);
  } else {
    watch.withdraw(self);
  }
}

}  // namespace crosstalk::in_target
