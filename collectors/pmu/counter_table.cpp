// SPDX-License-Identifier: Apache-2.0
// docs/reasons.md, "What the events are checked against", says how each event was checked, and which could not be.
// Encodings are those of libpfm4 if it has the event (a test compares them). The others, and the events' meanings, are
// from: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3B, chapter "Performance Monitoring
// Events", and the event lists that Intel publishes with it (github.com/intel/perfmon: ADL for Gracemont and Golden
// Cove, MTL for Crestmont); AMD Processor Programming References of families 17h, 19h (models 00h-0Fh, 11h) and 1Ah
// (model 02h), chapter "Core Performance Monitor Counters"; BIOS and Kernel Developer's Guide of family 15h. The
// counters that an event can have are from the same lists and from the kernel (arch/x86/events).
//
// Slots for micro-operations are given as parts of cycles: a count of them stands for 1 / (slots a cycle) of a cycle.
// The slots a cycle, and their use, are from A. Yasin, "A Top-Down Method for Performance Analysis and Counters
// Architecture", ISPASS 2014, and for AMD from "Performance Monitor Counters for AMD Family 1Ah Model 00h-0Fh
// Processors", table "Pipeline Utilization".
#include "collectors/pmu/counter_table.h"

#include <algorithm>

namespace crosstalk::collectors {
namespace {

using profile::CounterQuantity;
using Q = CounterQuantity;
using F = CounterFamily;

/// Intel's layout of an event: code, unit mask, counter mask.
constexpr std::uint64_t intel(unsigned code, unsigned mask, unsigned counter_mask = 0) {
  return code | mask << 8U | static_cast<std::uint64_t>(counter_mask) << 24U;
}
/// Returns the code of an AMD event: it has 12 bits, the upper four above everything else.
constexpr std::uint64_t amd(unsigned code, unsigned mask = 0) {
  return (code & 0xffU) | mask << 8U | static_cast<std::uint64_t>(code >> 8U) << 32U;
}
constexpr CountedEvent lower(CountedEvent event) {
  event.place = CounterPlace::lower;
  return event;
}
constexpr CountedEvent alone(CountedEvent event) {
  event.place = CounterPlace::alone;
  return event;
}
/// With the name that the manual has.
constexpr CountedEvent of_manual(CountedEvent event) {
  event.in_library = false;
  return event;
}

// ---- Intel ---------------------------------------------------------------------------------------------------------

constexpr CountedEvent intel_cycles{Q::cycles, F::base, intel(0x3c, 0), 1, "UNHALTED_CORE_CYCLES", 0};
constexpr CountedEvent intel_instructions{Q::instructions, F::base, intel(0xc0, 0), 1, "INST_RETIRED:ANY_P", 0};
constexpr CountedEvent branch_misses{Q::branch_misses, F::accesses, intel(0xc5, 0), 1, "BR_MISP_RETIRED:ALL_BRANCHES"};
constexpr CountedEvent branches{Q::branches, F::accesses, intel(0xc4, 0), 1, "BR_INST_RETIRED:ALL_BRANCHES"};
constexpr CountedEvent l1d_fills = lower({Q::l1d_fills, F::traffic, intel(0x51, 0x01), 1, "L1D:REPLACEMENT"});
constexpr CountedEvent l3_misses{Q::l3_misses, F::traffic, intel(0x2e, 0x41), 1, "LONGEST_LAT_CACHE:MISS"};

constexpr CountedEvent load_uops{Q::loads, F::accesses, intel(0xd0, 0x81), 1, "MEM_UOPS_RETIRED:ALL_LOADS"};
constexpr CountedEvent store_uops{Q::stores, F::accesses, intel(0xd0, 0x82), 1, "MEM_UOPS_RETIRED:ALL_STORES"};

// Sandy Bridge and Ivy Bridge. Operations that wait for data are counted each time they are tried: too often if
// accesses miss the caches (SDM, "FP_COMP_OPS_EXE").
constexpr CountedEvent sandy_bridge_events[] = {
    intel_cycles,
    intel_instructions,
    {Q::flops_scalar, F::flops, intel(0x10, 0xa0), 1,
     "FP_COMP_OPS_EXE:SSE_SCALAR_DOUBLE+FP_COMP_OPS_EXE:SSE_FP_SCALAR_SINGLE"},
    {Q::flops_sse_double, F::flops, intel(0x10, 0x10), 2, "FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE"},
    {Q::flops_sse_single, F::flops, intel(0x10, 0x40), 4, "FP_COMP_OPS_EXE:SSE_PACKED_SINGLE"},
    {Q::flops_avx2_double, F::flops, intel(0x11, 0x02), 4, "SIMD_FP_256:PACKED_DOUBLE"},
    {Q::flops_avx2_single, F::flops, intel(0x11, 0x01), 8, "SIMD_FP_256:PACKED_SINGLE"},
    alone(load_uops),
    alone(store_uops),
    l1d_fills,
    {Q::l1d_writebacks, F::traffic, intel(0xf0, 0x10), 1, "L2_TRANS:L1D_WB"},
    {Q::l2_fills, F::traffic, intel(0xf1, 0x07), 1, "L2_LINES_IN:ANY"},
    {Q::l2_writebacks, F::traffic, intel(0xf0, 0x40), 1, "L2_TRANS:L2_WB"},
    of_manual(l3_misses),  // libpfm4 4.13 has the unit mask 0x1
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 4.0, "UOPS_RETIRED:RETIRE_SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 4.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    {Q::issued, F::slots, intel(0x0e, 0x01), 1 / 4.0, "UOPS_ISSUED:ANY"},
    {Q::recovery, F::slots, intel(0x0d, 0x03, 1), 1, "INT_MISC:RECOVERY_CYCLES"},
};
// On Haswell and Broadwell no event tells the last level from memory in cycles that wait.
constexpr CountedEvent haswell_events[] = {
    intel_cycles,
    intel_instructions,
    alone(load_uops),
    alone(store_uops),
    l1d_fills,
    {Q::l1d_writebacks, F::traffic, intel(0xf0, 0x10), 1, "L2_TRANS:L1D_WB"},
    {Q::l2_fills, F::traffic, intel(0xf1, 0x07), 1, "L2_LINES_IN:ALL"},
    {Q::l2_writebacks, F::traffic, intel(0xf0, 0x40), 1, "L2_TRANS:L2_WB"},
    l3_misses,
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 4.0, "UOPS_RETIRED:RETIRE_SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 4.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    {Q::issued, F::slots, intel(0x0e, 0x01), 1 / 4.0, "UOPS_ISSUED:ANY"},
    {Q::recovery, F::slots, intel(0x0d, 0x03, 1), 1, "INT_MISC:RECOVERY_CYCLES"},
    {Q::stalls_load, F::stalls, intel(0xa3, 0x06, 6), 1, "CYCLE_ACTIVITY:STALLS_LDM_PENDING"},
    branches,
    branch_misses,
};
constexpr CountedEvent flops_scalar{Q::flops_scalar, F::flops, intel(0xc7, 0x03), 1,
                                    "FP_ARITH_INST_RETIRED:SCALAR_DOUBLE+FP_ARITH_INST_RETIRED:SCALAR_SINGLE"};
constexpr CountedEvent flops_sse_double{Q::flops_sse_double, F::flops, intel(0xc7, 0x04), 2,
                                        "FP_ARITH_INST_RETIRED:128B_PACKED_DOUBLE"};
constexpr CountedEvent flops_sse_single{Q::flops_sse_single, F::flops, intel(0xc7, 0x08), 4,
                                        "FP_ARITH_INST_RETIRED:128B_PACKED_SINGLE"};
constexpr CountedEvent flops_avx2_double{Q::flops_avx2_double, F::flops, intel(0xc7, 0x10), 4,
                                         "FP_ARITH_INST_RETIRED:256B_PACKED_DOUBLE"};
constexpr CountedEvent flops_avx2_single{Q::flops_avx2_single, F::flops, intel(0xc7, 0x20), 8,
                                         "FP_ARITH_INST_RETIRED:256B_PACKED_SINGLE"};
constexpr CountedEvent flops_avx512_double{Q::flops_avx512_double, F::flops, intel(0xc7, 0x40), 8,
                                           "FP_ARITH_INST_RETIRED:512B_PACKED_DOUBLE"};
constexpr CountedEvent flops_avx512_single{Q::flops_avx512_single, F::flops, intel(0xc7, 0x80), 16,
                                           "FP_ARITH_INST_RETIRED:512B_PACKED_SINGLE"};
constexpr CountedEvent broadwell_events[] = {
    intel_cycles,
    intel_instructions,
    flops_scalar,
    flops_sse_double,
    flops_sse_single,
    flops_avx2_double,
    flops_avx2_single,
    load_uops,
    store_uops,
    l1d_fills,
    {Q::l1d_writebacks, F::traffic, intel(0xf0, 0x10), 1, "L2_TRANS:L1D_WB"},
    {Q::l2_fills, F::traffic, intel(0xf1, 0x07), 1, "L2_LINES_IN:ALL"},
    {Q::l2_writebacks, F::traffic, intel(0xf0, 0x40), 1, "L2_TRANS:L2_WB"},
    l3_misses,
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 4.0, "UOPS_RETIRED:RETIRE_SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 4.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    {Q::issued, F::slots, intel(0x0e, 0x01), 1 / 4.0, "UOPS_ISSUED:ANY"},
    {Q::recovery, F::slots, intel(0x0d, 0x03, 1), 1, "INT_MISC:RECOVERY_CYCLES"},
    {Q::stalls_load, F::stalls, intel(0xa3, 0x06, 6), 1, "CYCLE_ACTIVITY:STALLS_LDM_PENDING"},
    branches,
    branch_misses,
};
constexpr CountedEvent loads = lower({Q::loads, F::accesses, intel(0xd0, 0x81), 1, "MEM_INST_RETIRED:ALL_LOADS"});
constexpr CountedEvent stores = lower({Q::stores, F::accesses, intel(0xd0, 0x82), 1, "MEM_INST_RETIRED:ALL_STORES"});
constexpr CountedEvent l2_fills = lower({Q::l2_fills, F::traffic, intel(0xf1, 0x1f), 1, "L2_LINES_IN:ALL"});
constexpr CountedEvent l2_writebacks = lower({Q::l2_writebacks, F::traffic, intel(0xf0, 0x40), 1, "L2_TRANS:L2_WB"});
constexpr CountedEvent stalls_load{Q::stalls_load, F::stalls, intel(0xa3, 0x14, 0x14), 1,
                                   "CYCLE_ACTIVITY:STALLS_MEM_ANY"};
constexpr CountedEvent stalls_l1d_miss =
    lower({Q::stalls_l1d_miss, F::stalls, intel(0xa3, 0x0c, 0x0c), 1, "CYCLE_ACTIVITY:STALLS_L1D_MISS"});
constexpr CountedEvent stalls_l2_miss =
    lower({Q::stalls_l2_miss, F::stalls, intel(0xa3, 0x05, 0x05), 1, "CYCLE_ACTIVITY:STALLS_L2_MISS"});
constexpr CountedEvent stalls_l3_miss =
    lower({Q::stalls_l3_miss, F::stalls, intel(0xa3, 0x06, 0x06), 1, "CYCLE_ACTIVITY:STALLS_L3_MISS"});
// Processors without AVX-512 lack the last two.
constexpr std::size_t avx512_events = 2;
constexpr CountedEvent skylake_events[] = {
    intel_cycles,
    intel_instructions,
    flops_scalar,
    flops_sse_double,
    flops_sse_single,
    flops_avx2_double,
    flops_avx2_single,
    loads,
    stores,
    l1d_fills,
    l2_fills,
    l2_writebacks,
    l3_misses,
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 4.0, "UOPS_RETIRED:RETIRE_SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 4.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    {Q::issued, F::slots, intel(0x0e, 0x01), 1 / 4.0, "UOPS_ISSUED:ANY"},
    {Q::recovery, F::slots, intel(0x0d, 0x01), 1, "INT_MISC:RECOVERY_CYCLES"},
    stalls_load,
    stalls_l1d_miss,
    stalls_l2_miss,
    stalls_l3_miss,
    branches,
    branch_misses,
    flops_avx512_double,
    flops_avx512_single,
};
constexpr CountedEvent ice_lake_events[] = {
    intel_cycles,
    intel_instructions,
    flops_scalar,
    flops_sse_double,
    flops_sse_single,
    flops_avx2_double,
    flops_avx2_single,
    flops_avx512_double,
    flops_avx512_single,
    loads,
    stores,
    l1d_fills,
    l2_fills,
    l2_writebacks,
    l3_misses,
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 5.0, "UOPS_RETIRED:SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 5.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    {Q::issued, F::slots, intel(0x0e, 0x01), 1 / 5.0, "UOPS_ISSUED:ANY"},
    {Q::recovery, F::slots, intel(0x0d, 0x01), 1, "INT_MISC:RECOVERY_CYCLES"},
    stalls_load,
    stalls_l1d_miss,
    stalls_l2_miss,
    stalls_l3_miss,
    branches,
    branch_misses,
};
// Golden Cove and what came of it: Sapphire and Emerald Rapids, Granite Rapids; without AVX-512 the large cores of
// Alder, Raptor and Meteor Lake. CYCLE_ACTIVITY has the stalls by level, too, but the kernel may give it counters on
// which it does not count them.
constexpr CountedEvent golden_cove_events[] = {
    intel_cycles,
    intel_instructions,
    flops_scalar,
    flops_sse_double,
    flops_sse_single,
    flops_avx2_double,
    flops_avx2_single,
    loads,
    stores,
    l1d_fills,
    lower({Q::l2_fills, F::traffic, intel(0x25, 0x1f), 1, "L2_LINES_IN:ALL"}),
    l3_misses,
    {Q::retiring, F::slots, intel(0xc2, 0x02), 1 / 6.0, "UOPS_RETIRED:SLOTS"},
    {Q::frontend_bound, F::slots, intel(0x9c, 0x01), 1 / 6.0, "IDQ_UOPS_NOT_DELIVERED:CORE"},
    of_manual({Q::backend_bound, F::slots, intel(0xa4, 0x02), 1 / 6.0, "TOPDOWN:BACKEND_BOUND_SLOTS"}),  // 4.13: code 0
    // Any wait for a load, of which STALLS_MEM_ANY told before.
    {Q::stalls_load, F::stalls, intel(0xa6, 0x21, 5), 1, "EXE_ACTIVITY:BOUND_ON_LOADS"},
    lower({Q::stalls_l1d_miss, F::stalls, intel(0x47, 0x03, 3), 1, "MEMORY_ACTIVITY:STALLS_L1D_MISS"}),
    lower({Q::stalls_l2_miss, F::stalls, intel(0x47, 0x05, 5), 1, "MEMORY_ACTIVITY:STALLS_L2_MISS"}),
    lower({Q::stalls_l3_miss, F::stalls, intel(0x47, 0x09, 9), 1, "MEMORY_ACTIVITY:STALLS_L3_MISS"}),
    branches,
    branch_misses,
    flops_avx512_double,
    flops_avx512_single,
};
// The small cores of Alder and Raptor Lake. Retired loads by where their data came from would be of loads alone.
constexpr CountedEvent gracemont_events[] = {
    of_manual({Q::cycles, F::base, intel(0x3c, 0), 1, "CPU_CLK_UNHALTED.CORE_P", 0}),
    of_manual({Q::instructions, F::base, intel(0xc0, 0), 1, "INST_RETIRED.ANY_P", 0}),
    of_manual({Q::loads, F::accesses, intel(0xd0, 0x81), 1, "MEM_UOPS_RETIRED.ALL_LOADS"}),
    of_manual({Q::stores, F::accesses, intel(0xd0, 0x82), 1, "MEM_UOPS_RETIRED.ALL_STORES"}),
    of_manual({Q::l3_misses, F::traffic, intel(0x2e, 0x41), 1, "LONGEST_LAT_CACHE.MISS"}),
    of_manual({Q::retiring, F::slots, intel(0xc2, 0x00), 1 / 5.0, "TOPDOWN_RETIRING.ALL"}),
    of_manual({Q::frontend_bound, F::slots, intel(0x71, 0x00), 1 / 5.0, "TOPDOWN_FE_BOUND.ALL"}),
    of_manual({Q::bad_speculation, F::slots, intel(0x73, 0x00), 1 / 5.0, "TOPDOWN_BAD_SPECULATION.ALL"}),
    of_manual({Q::backend_bound, F::slots, intel(0x74, 0x00), 1 / 5.0, "TOPDOWN_BE_BOUND.ALL"}),
    of_manual({Q::branches, F::accesses, intel(0xc4, 0x00), 1, "BR_INST_RETIRED.ALL_BRANCHES"}),
    of_manual({Q::branch_misses, F::accesses, intel(0xc5, 0x00), 1, "BR_MISP_RETIRED.ALL_BRANCHES"}),
};
// The events of Meteor Lake.
constexpr CountedEvent crestmont_events[] = {
    of_manual({Q::cycles, F::base, intel(0x3c, 0), 1, "CPU_CLK_UNHALTED.CORE_P", 0}),
    of_manual({Q::instructions, F::base, intel(0xc0, 0), 1, "INST_RETIRED.ANY_P", 0}),
    of_manual({Q::flops, F::flops, intel(0xc8, 0x03), 1, "FP_FLOPS_RETIRED.ALL"}),
    of_manual({Q::loads, F::accesses, intel(0xd0, 0x81), 1, "MEM_UOPS_RETIRED.ALL_LOADS"}),
    of_manual({Q::stores, F::accesses, intel(0xd0, 0x82), 1, "MEM_UOPS_RETIRED.ALL_STORES"}),
    of_manual({Q::l3_misses, F::traffic, intel(0x2e, 0x41), 1, "LONGEST_LAT_CACHE.MISS"}),
    of_manual({Q::retiring, F::slots, intel(0x72, 0x00), 1 / 6.0, "TOPDOWN_RETIRING.ALL"}),
    of_manual({Q::frontend_bound, F::slots, intel(0x71, 0x00), 1 / 6.0, "TOPDOWN_FE_BOUND.ALL"}),
    of_manual({Q::bad_speculation, F::slots, intel(0x73, 0x00), 1 / 6.0, "TOPDOWN_BAD_SPECULATION.ALL"}),
    of_manual({Q::backend_bound, F::slots, intel(0x74, 0x00), 1 / 6.0, "TOPDOWN_BE_BOUND.ALL"}),
    of_manual({Q::branches, F::accesses, intel(0xc4, 0x00), 1, "BR_INST_RETIRED.ALL_BRANCHES"}),
    of_manual({Q::branch_misses, F::accesses, intel(0xc5, 0x00), 1, "BR_MISP_RETIRED.ALL_BRANCHES"}),
};

// ---- AMD -----------------------------------------------------------------------------------------------------------

constexpr CountedEvent amd_cycles{Q::cycles, F::base, amd(0x76), 1, "CYCLES_NOT_IN_HALT"};
constexpr CountedEvent amd_instructions{Q::instructions, F::base, amd(0xc0), 1, "RETIRED_INSTRUCTIONS"};
// More than 15 operations of one kind of instruction can retire in a cycle; for them the kernel joins two counters
// (arch/x86/events/amd/core.c, PERF_X86_EVENT_PAIR).
constexpr CountedEvent amd_loads{Q::loads, F::accesses, amd(0x29, 0x05), 1, "LS_DISPATCH:LD_DISPATCH:LD_ST_DISPATCH"};
constexpr CountedEvent amd_stores{Q::stores, F::accesses, amd(0x29, 0x06), 1,
                                  "LS_DISPATCH:STORE_DISPATCH:LD_ST_DISPATCH"};
constexpr CountedEvent amd_branches{Q::branches, F::accesses, amd(0xc2), 1, "RETIRED_BRANCH_INSTRUCTIONS"};
constexpr CountedEvent amd_branch_misses{Q::branch_misses, F::accesses, amd(0xc3), 1,
                                         "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"};

// Two cores share a second level: no manual at hand says if its events are of one of them.
constexpr CountedEvent family_15h_events[] = {
    {Q::cycles, F::base, amd(0x76), 1, "CPU_CLK_UNHALTED"},
    amd_instructions,
    {Q::flops, F::flops, amd(0x03, 0xff), 1, "RETIRED_SSE_OPS:ALL"},
    {Q::loads, F::accesses, amd(0x29, 0x05), 1, "LS_DISPATCH:LOADS:LOAD_OP_STORES"},
    {Q::stores, F::accesses, amd(0x29, 0x06), 1, "LS_DISPATCH:STORES:LOAD_OP_STORES"},
    {Q::l1d_fills, F::traffic, amd(0x42, 0x0f), 1, "DATA_CACHE_REFILLS_FROM_L2_OR_NORTHBRIDGE:ALL"},
    amd_branches,
    {Q::branch_misses, F::accesses, amd(0xc3), 1, "RETIRED_MISPREDICTED_BRANCH_INSTRUCTIONS"},
};
constexpr CountedEvent zen1_events[] = {
    amd_cycles,
    amd_instructions,
    {Q::flops, F::flops, amd(0x03, 0xff), 1,
     "RETIRED_SSE_AVX_OPERATIONS:DP_MULT_ADD_FLOPS:DP_DIV_FLOPS:DP_MULT_FLOPS:DP_ADD_SUB_FLOPS:SP_MULT_ADD_FLOPS:SP_"
     "DIV_FLOPS:SP_MULT_FLOPS:SP_ADD_SUB_FLOPS",
     2},
    amd_loads,
    amd_stores,
    amd_branches,
    amd_branch_misses,
};
// Lines that a demand, and from Zen 3 on also a prefetch, brings into the first level: from the second, from the other
// caches, from memory.
constexpr CountedEvent zen2_events[] = {
    amd_cycles,        amd_instructions, {Q::flops, F::flops, amd(0x03, 0x0f), 1, "RETIRED_SSE_AVX_FLOPS:ANY", 2},
    amd_loads,         amd_stores,       amd_branches,
    amd_branch_misses,
};
constexpr CountedEvent zen3_events[] = {
    amd_cycles,
    amd_instructions,
    {Q::flops, F::flops, amd(0x03, 0x0f), 1, "RETIRED_SSE_AVX_FLOPS:ANY", 2},
    amd_loads,
    amd_stores,
    {Q::l1d_fills, F::traffic, amd(0x44, 0x5f), 1,
     "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:LCL_L2:INT_CACHE:EXT_CACHE_LCL:MEM_IO_LCL:EXT_CACHE_RMT:MEM_IO_RMT"},
    {Q::memory_fills, F::traffic, amd(0x44, 0x48), 1, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:MEM_IO_LCL:MEM_IO_RMT"},
    amd_branches,
    amd_branch_misses,
};
constexpr CountedEvent zen4_events[] = {
    amd_cycles,
    amd_instructions,
    {Q::flops, F::flops, amd(0x03, 0x0f), 1, "RETIRED_SSE_AVX_FLOPS:ADD_SUB_FLOPS:MULT_FLOPS:DIV_FLOPS:MAC_FLOPS", 2},
    amd_loads,
    amd_stores,
    {Q::l1d_fills, F::traffic, amd(0x44, 0xdf), 1,
     "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:LCL_L2:LOCAL_CCX:NEAR_CACHE_NEAR_FAR:DRAM_IO_NEAR:FAR_CACHE_NEAR_FAR:DRAM_IO_"
     "FAR:ALT_MEM_NEAR_FAR"},
    {Q::memory_fills, F::traffic, amd(0x44, 0xc8), 1,
     "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR:DRAM_IO_FAR:ALT_MEM_NEAR_FAR"},
    {Q::retiring, F::slots, amd(0xc1), 1 / 6.0, "RETIRED_OPS"},
    {Q::frontend_bound, F::slots, amd(0x1a0, 0x01), 1 / 6.0, "DISPATCH_STALLS_1:FE_NO_OPS"},
    {Q::backend_bound, F::slots, amd(0x1a0, 0x1e), 1 / 6.0, "DISPATCH_STALLS_1:BE_STALLS"},
    {Q::issued, F::slots, amd(0xaa, 0x07), 1 / 6.0, "OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER"},
    amd_branches,
    amd_branch_misses,
};
constexpr CountedEvent zen5_events[] = {
    of_manual({Q::cycles, F::base, amd(0x76), 1, "ls_not_halted_cyc"}),
    of_manual({Q::instructions, F::base, amd(0xc0), 1, "ex_ret_instr"}),
    of_manual({Q::flops, F::flops, amd(0x03, 0x0f), 1, "fp_ret_sse_avx_ops.all", 2}),
    of_manual({Q::loads, F::accesses, amd(0x29, 0x05), 1, "ls_dispatch.ld_dispatch+ls_dispatch.ld_st_dispatch"}),
    of_manual({Q::stores, F::accesses, amd(0x29, 0x06), 1, "ls_dispatch.store_dispatch+ls_dispatch.ld_st_dispatch"}),
    of_manual({Q::l1d_fills, F::traffic, amd(0x44, 0xff), 1, "ls_any_fills_from_sys.all"}),
    of_manual({Q::memory_fills, F::traffic, amd(0x44, 0xc8), 1,
               "ls_any_fills_from_sys.dram_io_all+ls_any_fills_from_sys.alternate_memories"}),
    of_manual({Q::retiring, F::slots, amd(0xc1), 1 / 8.0, "ex_ret_ops"}),
    of_manual({Q::frontend_bound, F::slots, amd(0x1a0, 0x01), 1 / 8.0, "de_no_dispatch_per_slot.no_ops_from_frontend"}),
    of_manual({Q::backend_bound, F::slots, amd(0x1a0, 0x1e), 1 / 8.0, "de_no_dispatch_per_slot.backend_stalls"}),
    of_manual({Q::issued, F::slots, amd(0xaa, 0x07), 1 / 8.0, "de_src_op_disp.all"}),
    of_manual({Q::branches, F::accesses, amd(0xc2), 1, "ex_ret_brn"}),
    of_manual({Q::branch_misses, F::accesses, amd(0xc3), 1, "ex_ret_brn_misp"}),
};

// ---- the tables ----------------------------------------------------------------------------------------------------

using Lacks = std::array<std::string_view, counter_families>;
/// By family, in the order of CounterFamily.
constexpr Lacks lacks(std::string_view flops, std::string_view traffic, std::string_view slots,
                      std::string_view stalls) {
  return {"", flops, "", traffic, slots, stalls};
}

constexpr std::string_view by_level = "its counters do not tell which level loads waited for";
constexpr CounterTable sandy_bridge{"Sandy Bridge", "snb snb_ep ivb ivb_ep", 4,
                                    true,           sandy_bridge_events,     lacks("", "", "", by_level)};
constexpr CounterTable haswell{"Haswell", "hsw hsw_ep",   4,
                               true,      haswell_events, lacks("its counters count none", "", "", by_level)};
constexpr CounterTable broadwell{"Broadwell", "bdw bdw_ep", 4, true, broadwell_events, lacks("", "", "", by_level)};
constexpr CounterTable skylake_sp{"Skylake", "skx clx", 4, true, skylake_events};
constexpr CounterTable skylake{"Skylake", "skl", 4, true,
                               std::span(skylake_events).first(std::size(skylake_events) - avx512_events)};
constexpr CounterTable ice_lake{"Ice Lake", "icl icx", 8, true, ice_lake_events};
constexpr CounterTable sapphire_rapids{"Golden Cove", "spr", 8, true, golden_cove_events};
constexpr CounterTable golden_cove{"Golden Cove", "spr", 8, true,
                                   std::span(golden_cove_events).first(std::size(golden_cove_events) - avx512_events)};
constexpr std::string_view only_l3_misses = "of a core they count requests that miss the last level alone";
constexpr CounterTable gracemont{
    "Gracemont", "", 6, true, gracemont_events, lacks("its counters count none", only_l3_misses, "", by_level)};
constexpr CounterTable crestmont{"Crestmont", "", 8, true, crestmont_events, lacks("", only_l3_misses, "", by_level)};
constexpr std::string_view no_slots = "its counters do not count slots for micro-operations";
constexpr std::string_view no_stalls = "its counters do not count cycles that wait for loads";
constexpr std::string_view only_l1d_fills = "beyond the first level they may count what both cores of a module do";
constexpr CounterTable family_15h{
    "family 15h", "amd64_fam15h_interlagos", 6,
    false,        family_15h_events,         lacks("", only_l1d_fills, no_slots, no_stalls)};
constexpr std::string_view no_fills = "its counters count lines that are asked for, not those that are prefetched";
constexpr CounterTable zen1{"Zen", "amd64_fam17h_zen1", 6,
                            false, zen1_events,         lacks("", no_fills, no_slots, no_stalls)};
constexpr CounterTable zen2{"Zen 2", "amd64_fam17h_zen2", 6,
                            false,   zen2_events,         lacks("", no_fills, no_slots, no_stalls)};
constexpr CounterTable zen3{"Zen 3", "amd64_fam19h_zen3", 6, false, zen3_events, lacks("", "", no_slots, no_stalls)};
constexpr CounterTable zen4{"Zen 4", "amd64_fam19h_zen4", 6, false, zen4_events, lacks("", "", "", no_stalls)};
constexpr CounterTable zen5{"Zen 5", "", 6, false, zen5_events, lacks("", "", "", no_stalls)};

constexpr const CounterTable* all_tables[] = {
    &sandy_bridge, &haswell,   &broadwell, &skylake_sp, &skylake, &ice_lake, &sapphire_rapids,
    &golden_cove,  &gracemont, &crestmont, &family_15h, &zen1,    &zen2,     &zen3,
    &zen4,         &zen5};

struct IntelModel {
  unsigned model;
  const CounterTable* table;
};
// SDM, volume 4, table 2-1. The large cores if there are two kinds.
constexpr IntelModel intel_models[] = {
    {0x2a, &sandy_bridge},    {0x2d, &sandy_bridge},    {0x3a, &sandy_bridge},    {0x3c, &haswell},
    {0x3d, &broadwell},       {0x3e, &sandy_bridge},    {0x3f, &haswell},         {0x45, &haswell},
    {0x46, &haswell},         {0x47, &broadwell},       {0x4e, &skylake},         {0x4f, &broadwell},
    {0x55, &skylake_sp},      {0x56, &broadwell},       {0x5e, &skylake},         {0x6a, &ice_lake},
    {0x6c, &ice_lake},        {0x7d, &ice_lake},        {0x7e, &ice_lake},        {0x8c, &ice_lake},
    {0x8d, &ice_lake},        {0x8e, &skylake},         {0x8f, &sapphire_rapids}, {0x97, &golden_cove},
    {0x9a, &golden_cove},     {0x9e, &skylake},         {0xa5, &skylake},         {0xa6, &skylake},
    {0xa7, &ice_lake},        {0xaa, &golden_cove},     {0xac, &golden_cove},     {0xad, &sapphire_rapids},
    {0xae, &sapphire_rapids}, {0xb7, &golden_cove},     {0xba, &golden_cove},     {0xbe, &gracemont},
    {0xbf, &golden_cove},     {0xcf, &sapphire_rapids},
};
constexpr bool in_order() {
  return std::is_sorted(std::begin(intel_models), std::end(intel_models),
                        [](const IntelModel& a, const IntelModel& b) { return a.model < b.model; });
}
static_assert(in_order());

const CounterTable* small_cores(unsigned model) {
  switch (model) {
    case 0x97:  // Alder Lake
    case 0x9a:
    case 0xb7:  // Raptor Lake
    case 0xba:
    case 0xbe:  // Alder Lake-N
    case 0xbf:
      return &gracemont;
    case 0xaa:  // Meteor Lake
    case 0xac:
      return &crestmont;
    default:
      return nullptr;
  }
}

const CounterTable* intel_table(unsigned model, bool small_core) {
  if (small_core) {
    return small_cores(model);
  }
  const auto* const found = std::find_if(std::begin(intel_models), std::end(intel_models),
                                         [model](const IntelModel& known) { return known.model == model; });
  return found != std::end(intel_models) ? found->table : nullptr;
}

/// Models as the kernel has them (arch/x86/kernel/cpu/amd.c).
const CounterTable* amd_table(unsigned family, unsigned model) {
  const bool is_zen1 = model <= 0x2f || (model >= 0x50 && model <= 0x5f);
  const bool is_zen4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0xaf);
  const bool is_zen5 = model <= 0x2f || (model >= 0x40 && model <= 0x4f) || (model >= 0x60 && model <= 0x7f);
  switch (family) {
    case 0x15:
      return &family_15h;
    case 0x17:
      return is_zen1 ? &zen1 : &zen2;
    case 0x18:  // Hygon's
      return &zen1;
    case 0x19:
      return is_zen4 ? &zen4 : &zen3;
    case 0x1a:
      return is_zen5 ? &zen5 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

const CounterTable* counter_table(std::string_view vendor, unsigned family, unsigned model, bool small_core) {
  constexpr unsigned intel_family = 6;
  if (vendor == "GenuineIntel") {
    return family == intel_family ? intel_table(model, small_core) : nullptr;
  }
  return vendor == "AuthenticAMD" || vendor == "HygonGenuine" ? amd_table(family, model) : nullptr;
}

std::span<const CounterTable* const> all_counter_tables() { return all_tables; }

const char* in_words(CounterFamily family) {
  static constexpr std::array<const char*, counter_families> words = {
      "cycles and instructions", "floating-point operations",  "loads, stores and branches",
      "lines by level",          "slots for micro-operations", "cycles that wait for loads"};
  return words.at(static_cast<std::size_t>(family));
}

const char* name_of(CounterFamily family) {
  static constexpr std::array<const char*, counter_families> names = {"base",    "flops", "accesses",
                                                                      "traffic", "slots", "stalls"};
  return names.at(static_cast<std::size_t>(family));
}

}  // namespace crosstalk::collectors
