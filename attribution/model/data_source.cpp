// SPDX-License-Identifier: Apache-2.0
#include "attribution/model/data_source.h"

#include <linux/perf_event.h>

#include <array>

namespace crosstalk::attribution {
namespace {

// Values of kernels newer than the headers.
constexpr std::uint64_t level_l2_miss_buffer = 5, level_memory_side = 6, level_l0 = 7, level_uncached = 8;
constexpr std::uint64_t op_mask = 0x1f, level_mask = 0x3fff, snoop_mask = 0x1f, lock_mask = 3, tlb_mask = 0x7f;
constexpr std::uint64_t number_mask = 0xf, remote_mask = 1, blocked_mask = 7, hops_mask = 7;

/// The raw fields.
struct Fields {
  std::uint64_t op, level, snoop, lock, tlb, number, remote, blocked, hops;
  explicit Fields(std::uint64_t value)
      : op(value >> PERF_MEM_OP_SHIFT & op_mask),
        level(value >> PERF_MEM_LVL_SHIFT & level_mask),
        snoop(value >> PERF_MEM_SNOOP_SHIFT & snoop_mask),
        lock(value >> PERF_MEM_LOCK_SHIFT & lock_mask),
        tlb(value >> PERF_MEM_TLB_SHIFT & tlb_mask),
        number(value >> PERF_MEM_LVLNUM_SHIFT & number_mask),
        remote(value >> PERF_MEM_REMOTE_SHIFT & remote_mask),
        blocked(value >> PERF_MEM_BLK_SHIFT & blocked_mask),
        hops(value >> PERF_MEM_HOPS_SHIFT & hops_mask) {}
};

/// A cache of another core: in this node if the kernel says that it is no hop away.
MemoryLevel cache_elsewhere(const Fields& fields) {
  return fields.hops == PERF_MEM_HOPS_0 ? MemoryLevel::peer_cache : MemoryLevel::remote_cache;
}

bool beyond_node(const Fields& fields) { return fields.remote != 0 && fields.hops != PERF_MEM_HOPS_0; }

/// The level by its bits, which the numbers only refine: the nearest first, except for explicitly remote ones.
MemoryLevel level_by_bits(const Fields& fields) {
  const auto has = [&](std::uint64_t bits) { return (fields.level & bits) != 0; };
  if (has(PERF_MEM_LVL_L1)) {
    return MemoryLevel::l1;
  }
  if (has(PERF_MEM_LVL_LFB)) {
    return MemoryLevel::line_fill_buffer;
  }
  if (has(PERF_MEM_LVL_L2)) {
    return fields.remote != 0 ? cache_elsewhere(fields) : MemoryLevel::l2;
  }
  if (has(PERF_MEM_LVL_L3)) {  // of AMD before Zen 4 with REM_CCE1: one of the two, not told which
    return fields.remote != 0 ? cache_elsewhere(fields) : MemoryLevel::l3;
  }
  if (has(PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2)) {
    return cache_elsewhere(fields);
  }
  if (has(PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2)) {
    return MemoryLevel::remote_memory;
  }
  if (has(PERF_MEM_LVL_LOC_RAM)) {
    return beyond_node(fields) ? MemoryLevel::remote_memory : MemoryLevel::local_memory;
  }
  return has(PERF_MEM_LVL_IO) ? MemoryLevel::io : has(PERF_MEM_LVL_UNC) ? MemoryLevel::uncached : MemoryLevel::unknown;
}

MemoryLevel level_by_number(const Fields& fields) {
  const auto cache = [&](MemoryLevel own) { return fields.remote != 0 ? cache_elsewhere(fields) : own; };
  switch (fields.number) {
    case PERF_MEM_LVLNUM_L1:
      return MemoryLevel::l1;
    case PERF_MEM_LVLNUM_L2:
      return cache(MemoryLevel::l2);
    case PERF_MEM_LVLNUM_L3:
      return cache(MemoryLevel::l3);
    case PERF_MEM_LVLNUM_L4:
      return cache(MemoryLevel::l4);
    case level_l2_miss_buffer:
      return MemoryLevel::l2_miss_buffer;
    case level_memory_side:
      return MemoryLevel::memory_side_cache;
    case level_l0:
      return MemoryLevel::l0;
    case level_uncached:
      return MemoryLevel::uncached;
    case PERF_MEM_LVLNUM_CXL:
      return MemoryLevel::cxl;
    case PERF_MEM_LVLNUM_IO:
      return MemoryLevel::io;
    case PERF_MEM_LVLNUM_ANY_CACHE:
      return cache(MemoryLevel::any_cache);
    case PERF_MEM_LVLNUM_LFB:
      return MemoryLevel::line_fill_buffer;
    case PERF_MEM_LVLNUM_RAM:
      return beyond_node(fields) ? MemoryLevel::remote_memory : MemoryLevel::local_memory;
    case PERF_MEM_LVLNUM_PMEM:
      return MemoryLevel::persistent_memory;
    default:
      return MemoryLevel::unknown;
  }
}

Snoop snoop_of(const Fields& fields) {
  return (fields.snoop & PERF_MEM_SNOOP_HITM) != 0   ? Snoop::hitm
         : (fields.snoop & PERF_MEM_SNOOP_HIT) != 0  ? Snoop::hit
         : (fields.snoop & PERF_MEM_SNOOP_MISS) != 0 ? Snoop::miss
         : (fields.snoop & PERF_MEM_SNOOP_NONE) != 0 ? Snoop::none
                                                     : Snoop::unknown;
}

Translation translation_of(const Fields& fields) {
  const auto has = [&](std::uint64_t bits) { return (fields.tlb & bits) != 0; };
  if (has(PERF_MEM_TLB_OS)) {
    return Translation::fault;
  }
  if (has(PERF_MEM_TLB_WK) || (has(PERF_MEM_TLB_MISS) && has(PERF_MEM_TLB_L2))) {
    return Translation::walk;
  }
  if (!has(PERF_MEM_TLB_HIT)) {
    return Translation::unknown;  // a miss of the first one alone does not tell whether the second one had it
  }
  return has(PERF_MEM_TLB_L1) && has(PERF_MEM_TLB_L2) ? Translation::l1_or_l2
         : has(PERF_MEM_TLB_L1)                       ? Translation::l1
         : has(PERF_MEM_TLB_L2)                       ? Translation::l2
                                                      : Translation::unknown;
}

}  // namespace

DataSource decode_data_source(std::uint64_t data_source) {
  const Fields fields(data_source);
  DataSource decoded;
  decoded.load = (fields.op & PERF_MEM_OP_LOAD) != 0;
  decoded.store = (fields.op & PERF_MEM_OP_STORE) != 0;
  decoded.prefetch = (fields.op & PERF_MEM_OP_PFETCH) != 0;
  decoded.execute = (fields.op & PERF_MEM_OP_EXEC) != 0;
  const MemoryLevel by_bits = level_by_bits(fields);
  const MemoryLevel level = by_bits != MemoryLevel::unknown ? by_bits : level_by_number(fields);
  const bool missed = (fields.level & PERF_MEM_LVL_MISS) != 0 && (fields.level & PERF_MEM_LVL_HIT) == 0;
  (missed ? decoded.missed : decoded.found) = level;
  decoded.remote = beyond_node(fields) || level == MemoryLevel::remote_cache || level == MemoryLevel::remote_memory;
  decoded.snoop = snoop_of(fields);
  decoded.locked = (fields.lock & PERF_MEM_LOCK_LOCKED) != 0;
  decoded.lock_known = data_source != 0 && (fields.lock & PERF_MEM_LOCK_NA) == 0;  // 0 in the field: not locked
  decoded.translation = translation_of(fields);
  decoded.blocked_data = (fields.blocked & PERF_MEM_BLK_DATA) != 0;
  decoded.blocked_address = (fields.blocked & PERF_MEM_BLK_ADDR) != 0;
  return decoded;
}

const char* memory_level_name(MemoryLevel level) {
  static constexpr std::array<const char*, memory_levels> names = {"unknown",
                                                                   "l0",
                                                                   "l1",
                                                                   "line_fill_buffer",
                                                                   "l2",
                                                                   "l2_miss_buffer",
                                                                   "l3",
                                                                   "l4",
                                                                   "memory_side_cache",
                                                                   "any_cache",
                                                                   "peer_cache",
                                                                   "remote_cache",
                                                                   "local_memory",
                                                                   "remote_memory",
                                                                   "persistent_memory",
                                                                   "cxl",
                                                                   "io",
                                                                   "uncached"};
  return names[static_cast<std::size_t>(level)];
}

const char* snoop_name(Snoop snoop) {
  static constexpr std::array<const char*, snoops> names = {"unknown", "none", "hit", "miss", "hitm"};
  return names[static_cast<std::size_t>(snoop)];
}

const char* translation_name(Translation translation) {
  static constexpr std::array<const char*, translations> names = {"unknown", "l1", "l2", "l1_or_l2", "walk", "fault"};
  return names[static_cast<std::size_t>(translation)];
}

}  // namespace crosstalk::attribution
