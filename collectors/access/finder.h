// SPDX-License-Identifier: Apache-2.0
// From the registers of an interrupted thread to a memory access and its exact address, with no hardware that
// samples addresses: the code around the instruction pointer is decoded and interpreted on the saved registers.
//
// Two answers. *retired*: the access that executed last before the instruction pointer; a timer's interrupt
// lands behind the instruction that took the time, so this is the one to blame. *next*: the access that the
// thread will make first when it goes on, found by interpreting ahead, across branches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/registers.h"
#include "collectors/access/code_cache.h"
#include "collectors/access/code_reader.h"
#include "collectors/access/found_access.h"
#include "collectors/access/inline_cache.h"

namespace crosstalk::in_target {

class CodeWindow;
struct LookaheadState;
struct Lookahead;
struct LookaheadLimits;

/// Finds accesses. One for a process, in zero-initialised static storage (it holds caches of decoded code, and no
/// state of any thread), shared by the handlers of all threads without a lock. Signal-safe: allocates nothing,
/// calls nothing but the reader, memcpy and the decoder, uses bounded time and about 2.5 KiB of stack. Code that is
/// rewritten (a JIT compiler's) is noticed: cached entries are checked against the bytes in memory.
///
/// All registers are those at the interrupted instruction, `flags` is its rflags; a wrong or hostile set gives a
/// useless answer, never a fault. Each function returns false, and leaves `out` alone, when there is no answer.
class AccessFinder {
 public:
  /// Finds the retired access if it is certain enough and no spill, else the next one, else a retired spill. Remembers
  /// a result that depends only on the code, the flags and a few comparisons of registers in the inline cache
  /// (inline_cache.h), which usually saves finding it again.
  bool find(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
            FoundAccess& out);

  /// Finds the access that executed last, among at most four instructions; skips spills if it finds something better.
  /// Paths that contradict the registers or flags are ruled out. If several are left, the result is a guess: the path
  /// by which the next round of the loop comes, if there is a loop.
  bool find_retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
                    FoundAccess& out);

  /// Finds the first access to come within 64 instructions; skips spills and loads of jump targets if it finds
  /// something better. Exact unless another thread changes the memory that a skipped load read.
  bool find_next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
                 FoundAccess& out);

  /// Interprets ahead what the thread will execute next, for some iterations of its loop (lookahead.h). Puts the branch
  /// trace, packed, into the `trace_capacity` bytes at `trace`; at least 30. One call at a time for one `state`.
  Lookahead look_ahead(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
                       const LookaheadLimits& limits, LookaheadState& state, std::uint8_t* trace,
                       std::size_t trace_capacity);

 private:
  bool retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
               const CodeReader& reader, FoundAccess& out, Route& route);
  bool next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
            const CodeReader& reader, FoundAccess& out, Route& route);
  bool decide(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
              FoundAccess& out, Route& route, Route& back);
  struct Answer;
  bool find_anew(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
                 const Answer& answer, FoundAccess& out);

  AccessCache cache_;
  InlineCache inline_cache_;
  std::atomic<std::uint32_t> followed_;  // answers of the inline cache
};

}  // namespace crosstalk::in_target
