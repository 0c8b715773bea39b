// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child, one instruction at a time, and reports the accesses of each: the truth for the access
// finder. It decodes and computes addresses with Zydis, not with our code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collectors/access/finder.h"
#include "collectors/access/vector_registers.h"

namespace crosstalk::test {

struct TrueAccess {
  std::uint64_t instruction = 0;
  std::uint64_t address = 0;
  std::uint8_t width = 0;
  AccessKind kind = AccessKind::none;
  bool known = true;        // false: has several addresses, or none that can be told
  bool spill = false;       // based on rsp, or on rbp with an address near rsp
  bool fixed_jump = false;  // a jump or call through a rip-relative slot
};

/// The state before an instruction, and the instruction's access.
struct TraceStep {
  Registers registers;
  std::uint64_t flags = 0;
  std::uint64_t fs_base = 0;
  in_target::VectorFrame vectors;  ///< lasts for the visit
  std::optional<TrueAccess> access;
  bool system_call = false;
  std::uint8_t length = 0;
};

/// Steps through `function` in a forked child, at most `limit` instructions of it. `visit` is called before each
/// instruction executes, with the child's pid. Returns false when the child could not be traced.
bool trace(const std::function<void()>& function, std::size_t limit,
           const std::function<void(const TraceStep&, pid_t)>& visit);

/// Returns a sufficient number of instructions of a function: 3000, or CROSSTALK_TEST_STEPS (`./dev verify` uses more).
std::size_t usual_steps();

/// A reader of the memory of process `*pid`.
in_target::CodeReader process_reader(pid_t* pid);

}  // namespace crosstalk::test
