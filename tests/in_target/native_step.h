// SPDX-License-Identifier: Apache-2.0
// Executes one instruction on the processor, from a given state of all its registers: the truth for the vector unit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/registers.h"
#include "collectors/access/vector_registers.h"

namespace crosstalk::test {

class NativeStep {
 public:
  static constexpr std::size_t area_bytes = 4096;
  static constexpr std::size_t memory_bytes = 32768;

  NativeStep();
  NativeStep(const NativeStep&) = delete;
  NativeStep& operator=(const NativeStep&) = delete;
  ~NativeStep();

  /// Vector registers before: an XSAVE area in the standard format, with all components of the processor.
  std::uint8_t* before();
  [[nodiscard]] in_target::VectorFrame frame_before() const;
  [[nodiscard]] in_target::VectorFrame frame_after() const;
  /// Memory that instructions may access: its middle, aligned to a page, must be in r15.
  std::uint8_t* memory();
  [[nodiscard]] std::uint64_t middle() const;

  /// Executes `code`, which must leave rsp alone; rip and rsp of `registers` do not count. Returns the signal that it
  /// raised, 0 for none; then registers and flags are those after it.
  /// rsp of the last run's code.
  [[nodiscard]] std::uint64_t stack() const;
  int run(std::span<const std::uint8_t> code, Registers& registers, std::uint64_t& flags);

 private:
  struct Page;
  Page* page_;
  std::uint64_t features_;
};

}  // namespace crosstalk::test
