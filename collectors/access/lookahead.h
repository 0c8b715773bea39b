// SPDX-License-Identifier: Apache-2.0
// Interprets what a thread will execute next, for some iterations of its loop. Starts from the interrupted registers,
// like the search for the next access, and keeps stores in a copy. Changes nothing in the thread.
//
// The processor could single-step instead (the trap flag). But a step is an exception and a signal, 14 us in the
// virtual machine where it was measured, and an interpreted instruction takes 0.1 to 0.5 us, so interpreting sees far
// more iterations in the same time. Also, a trap flag that escapes (a pushf, a jump out of a handler) would kill the
// target. The price: the lookahead ends at a jump that depends on what is not interpreted (x87, gathers, rare vector
// instructions).
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/emulator.h"
#include "collectors/access/finder.h"
#include "collectors/access/lookahead_memory.h"
#include "collectors/access/vector_registers.h"
#include "profile/records.h"

namespace crosstalk::in_target {

/// The working memory of a lookahead, beside the general registers. Large: needs static storage and serves one
/// lookahead at a time. All-zero at first.
struct LookaheadState {
  LookaheadMemory memory;
  VectorRegisters vectors;      ///< the thread's, when a lookahead begins
  ProcessorFeatures processor;  ///< found once, outside of handlers
};

/// The end of a lookahead. The loop is that of the first jump back, and its head is that jump's target. The lookahead
/// ends at the head: after so many passages of it, or at the first one past so many instructions. A fixed length would
/// cut off long iterations more often than short ones, and find too little in one; ended at a passage, the iterations
/// are all whole and the mean is right (Wald's identity). `most_instructions` cuts, all the same.
struct LookaheadLimits {
  std::uint32_t passages = 33;
  std::uint32_t instructions = 768;
  std::uint32_t most_instructions = 2048;
  std::uint32_t most_reads = 400;           // of memory, each up to a microsecond
  std::uint64_t farthest_back = 64 * 1024;  // bytes of a jump that can be a loop's
};

/// The result of a lookahead.
struct Lookahead {
  std::uint64_t head = 0;          ///< 0: none was found
  std::uint32_t instructions = 0;  ///< followed
  std::uint32_t passages = 0;      ///< of the head
  profile::LookaheadEnd end = profile::LookaheadEnd::code;
  bool alike = false;           ///< all iterations went the same way
  std::size_t trace_bytes = 0;  ///< packed (profile/branch_trace.h)
};

}  // namespace crosstalk::in_target
