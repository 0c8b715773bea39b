// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/lookahead_sampling.h"

#include <array>
#include <atomic>

#include "collectors/access/checked_table.h"
#include "collectors/access/lookahead.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/target_view.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"
#include "profile/branch_trace.h"

namespace crosstalk::in_target {
namespace {

// A random one in so many of the samples that the budget allows gets a lookahead, so that lookaheads cannot keep step
// with the program.
constexpr std::uint64_t lookahead_one_in = 2;
// After so many lookaheads from one place all its iterations count as alike; this part is still made.
constexpr std::uint64_t enough_alike = 4;
constexpr std::uint64_t again_one_in = 16;
constexpr std::size_t trace_capacity = 2048;
static_assert(trace_capacity <= profile::max_branch_trace_bytes);

/// The results of lookaheads by place. If all iterations take the same branches, a few lookaheads suffice; the others
/// are better spent at places where branches depend on data. The choice rests on earlier lookaheads only, so it does
/// not bias the next ones. Two concurrent writers may leave a useless entry, which costs a lookahead or two.
class KnownPlaces {
 public:
  [[nodiscard]] bool is_alike(std::uint64_t ip) const {
    const std::uint64_t entry = entry_[slot(ip)].load(std::memory_order_relaxed);
    return entry >> count_bits == tag(ip) && (entry & count_mask) >= enough_alike;
  }
  void add(std::uint64_t ip, bool alike) {
    std::atomic<std::uint64_t>& entry = entry_[slot(ip)];
    const std::uint64_t before = entry.load(std::memory_order_relaxed);
    const std::uint64_t count = before >> count_bits == tag(ip) ? before & count_mask : 0;
    const std::uint64_t after = !alike ? 0 : count < enough_alike ? count + 1 : count;
    entry.store(tag(ip) << count_bits | after, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t entries = 2048;
  static constexpr unsigned count_bits = 8;
  static constexpr std::uint64_t count_mask = 0xff;
  static std::uint64_t tag(std::uint64_t ip) { return ip & (~std::uint64_t{0} >> count_bits); }
  static std::size_t slot(std::uint64_t ip) { return (mix(0, ip) >> 24U) % entries; }
  std::atomic<std::uint64_t> entry_[entries];
};

constinit KnownPlaces known_places;
constinit LookaheadState state{};  // of the one lookahead at a time
constinit std::array<std::uint8_t, trace_capacity> trace{};
constinit ProcessFlag looking_ahead;
constinit std::atomic<std::uint32_t> mean_cost_ns{50'000};

bool wanted(ThreadState& self, std::uint64_t ip) {
  const Runtime& r = runtime();
  return r.config.lookahead != 0 && next_random(self.random) % lookahead_one_in == 0 &&
         r.budget.affords_lookahead(mean_cost_ns.load(std::memory_order_relaxed)) &&
         (!known_places.is_alike(ip) || next_random(self.random) % again_one_in == 0);
}

void record(ThreadState& self, const Lookahead& found, std::uint64_t begin, std::uint64_t now_ns,
            std::uint64_t cost_ns) {
  profile::Lookahead record;
  record.header.type = profile::RecordType::lookahead;
  record.time_ns = now_ns;
  record.begin = begin;
  record.head = found.head;
  record.instructions = found.instructions;
  record.passages = found.passages;
  record.cost_ns = cost_ns < UINT32_MAX ? static_cast<std::uint32_t>(cost_ns) : UINT32_MAX;
  record.end = found.end;
  append(self, &record, sizeof record, trace.data(), found.trace_bytes);
}

}  // namespace

void prepare_to_look_ahead() {
  // A program may have the instruction raise a signal, to answer it itself: then vectors are not followed.
  constexpr long get_cpuid = 0x1011;  // ARCH_GET_CPUID, asm/prctl.h
  if (system_call(SYS_arch_prctl, get_cpuid, 0) == 1) {
    state.processor = find_processor_features();
  }
}

std::uint64_t perhaps_look_ahead(ThreadState& self, const collectors::Observation& seen) {
  const std::uint64_t ip = seen.registers[Register::rip];
  if (!wanted(self, ip)) {
    return 0;
  }
  Runtime& r = runtime();
  const TryLock lock(looking_ahead, r.pid);
  if (!lock.held()) {
    return 0;
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  TargetView view(self, seen.registers);
  const CodeReader reader = view.reader();
  state.vectors.load(VectorFrame::of_signal(seen.vector_state), state.processor);
  const Lookahead found = finder().look_ahead(seen.registers, seen.flags, self.thread_pointer, reader,
                                              LookaheadLimits{}, state, trace.data(), trace.size());
  const std::uint64_t cost_ns = thread_cpu_ns() - begin_ns;
  record(self, found, ip, seen.time_ns, cost_ns);
  known_places.add(ip, found.alike && found.end == profile::LookaheadEnd::whole);
  const std::uint32_t mean = mean_cost_ns.load(std::memory_order_relaxed);
  mean_cost_ns.store(static_cast<std::uint32_t>(mean - mean / 16 + (cost_ns < 10'000'000 ? cost_ns : 10'000'000) / 16),
                     std::memory_order_relaxed);
  r.budget.look_ahead(cost_ns);
  return cost_ns;
}

}  // namespace crosstalk::in_target
