// SPDX-License-Identifier: Apache-2.0
// The machine code of a function in a test, with its loops from the symbolizer.
#pragma once

#include <cstdint>
#include <span>

#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution::test {

/// `code` must outlive it.
class Function {
 public:
  Function(std::uint64_t begin, std::span<const std::uint8_t> code)
      : read_([begin, code](std::uint64_t at) { return code.subspan(at - begin); }),
        flow_(symbolizer::control_flow({begin, begin + code.size()}, code, read_, [](std::uint64_t) { return false; })),
        anatomy(flow_, read_) {}

 private:
  symbolizer::ReadBytes read_;
  symbolizer::ControlFlow flow_;

 public:
  symbolizer::LoopAnatomy anatomy;
};

}  // namespace crosstalk::attribution::test
