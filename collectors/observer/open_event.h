// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace crosstalk::observer {

/// An event of the kernel's that is open.
struct OpenEvent {
  UniqueFd fd;
  std::uint64_t id = 0;  // by which its samples are known
};

}  // namespace crosstalk::observer
