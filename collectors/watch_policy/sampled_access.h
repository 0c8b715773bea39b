// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/registers.h"

namespace crosstalk::watch_policy {

/// The policy's input on a sampled access.
struct SampledAccess {
  std::uint32_t offset = 0;  // of its first byte in the line
  std::uint32_t width = 0;   // bytes; 0: unknown
  AccessKind kind = AccessKind::none;
  bool yet_to_come = false;  // the sample came before the access
  bool on_own_stack = false;
};

}  // namespace crosstalk::watch_policy
