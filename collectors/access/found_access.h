// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/access/provenance.h"
#include "profile/records.h"

namespace crosstalk::in_target {

/// One explicit memory access. Implicit ones (push, pop, call, ret) are never reported.
struct FoundAccess {
  std::uint64_t instruction = 0;  ///< address of the instruction
  std::uint64_t address = 0;      ///< first byte accessed
  std::uint8_t width = 0;         ///< bytes; 0: more than 64, or not fixed
  AccessKind kind = AccessKind::none;
  profile::AddressFrom from = profile::AddressFrom::none;  ///< retired or next
  bool spill = false;   ///< relative to rsp or rbp, on the thread's own stack: seldom what takes the time
  bool cached = false;  ///< answered without decoding
  RegisterForm form;    ///< how the address follows from the registers, if simply
};

}  // namespace crosstalk::in_target
