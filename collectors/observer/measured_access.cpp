// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/measured_access.h"

#include <linux/perf_event.h>

#include "collectors/pmu/ibs_op.h"

namespace crosstalk::observer {
namespace {

using collectors::Observation;

constexpr std::uint64_t user_end = 1ULL << 47U;

/// What perf says that the instruction did: perf_mem_data_src's mem_op.
AccessKind kind_in(std::uint64_t data_source) {
  constexpr std::uint64_t operation_bits = 0x1f;
  const std::uint64_t operation = data_source & operation_bits;
  const bool load = (operation & PERF_MEM_OP_LOAD) != 0;
  const bool store = (operation & PERF_MEM_OP_STORE) != 0;
  return static_cast<AccessKind>((load ? 1U : 0U) | (store ? 2U : 0U));
}

AccessKind kind_of(collectors::Accesses accesses) {
  switch (accesses) {
    case collectors::Accesses::loads:
      return AccessKind::load;
    case collectors::Accesses::stores:
      return AccessKind::store;
    case collectors::Accesses::both:
      break;
  }
  return AccessKind::none;
}

/// Kernels before 6.2 say nothing of where an access of IBS found its line. Whether it was in the first cache is enough
/// to tell whether another thread can have stored to it since.
std::uint64_t data_source_of(const collectors::IbsOp& op, std::uint64_t given) {
  perf_mem_data_src source{};
  source.val = given;
  const bool told = (source.mem_lvl & ~std::uint64_t{PERF_MEM_LVL_NA}) != 0 ||
                    (source.mem_lvl_num != 0 && source.mem_lvl_num != PERF_MEM_LVLNUM_NA);
  if (!told) {
    source.mem_op = (loads(op.kind) ? PERF_MEM_OP_LOAD : 0U) | (stores(op.kind) ? PERF_MEM_OP_STORE : 0U);
    source.mem_lvl = PERF_MEM_LVL_L1 | (op.missed ? PERF_MEM_LVL_MISS : PERF_MEM_LVL_HIT);
  }
  return source.val;
}

/// What IBS has tagged is known from its registers; whatever else the kernel makes of them is the same or less.
void take_ibs(const collectors::IbsOp& op, Observation& seen) {
  seen.ip = op.ip != 0 ? op.ip : seen.ip;
  seen.skid_known = op.ip != 0;
  seen.address = op.address;
  seen.kind = op.kind;
  seen.width = op.width;
  seen.latency_cycles = op.latency_cycles;
  seen.data_source = op.kind != AccessKind::none ? data_source_of(op, seen.data_source) : 0;
}

/// What the instruction itself says. One that loads and stores is one access: where its load and its store are sampled
/// apart, the load stands for it.
Measured complete_from(const in_target::FoundAccess& found, Observation& seen) {
  seen.access_ip = found.instruction;
  seen.width = seen.width != 0 ? seen.width : found.width;
  if (found.kind == AccessKind::load_store && seen.kind == AccessKind::store) {
    return Measured::half_an_update;
  }
  seen.kind = seen.kind == AccessKind::none || found.kind == AccessKind::load_store ? found.kind : seen.kind;
  return Measured::access;
}

}  // namespace

Measured measured_access(const PerfSample& sample, const collectors::MemoryEvent& event, SampleView& view,
                         in_target::AccessFinder& finder, Observation& seen) {
  if (sample.in_kernel) {
    return Measured::in_kernel;
  }
  seen.source = event.source;
  seen.weight_unit = event.weight_unit;
  seen.ip = sample.ip;
  seen.skid_known = sample.exact_ip;
  seen.address = sample.address;
  seen.data_source = sample.data_source;
  seen.kind = kind_in(sample.data_source);
  seen.latency_cycles = sample.latency_cycles;
  const bool ibs = event.source == profile::SourceKind::ibs || event.source == profile::SourceKind::ibs_kmod;
  const auto op = ibs ? collectors::decode_ibs_op(sample.raw) : std::nullopt;
  if (op) {
    take_ibs(*op, seen);
  }
  if (seen.address == 0 || seen.address >= user_end) {
    return Measured::no_access;
  }
  seen.from = profile::AddressFrom::hardware;
  seen.kind = seen.kind != AccessKind::none ? seen.kind : kind_of(event.accesses);
  seen.access_ip = seen.skid_known ? seen.ip : 0;
  const auto found = seen.skid_known ? view.at(seen.ip) : view.find_at(finder, seen.address);
  const Measured measured = found ? complete_from(*found, seen) : Measured::access;
  return seen.kind != AccessKind::none ? measured : Measured::no_access;
}

}  // namespace crosstalk::observer
