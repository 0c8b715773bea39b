// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/libc/real_functions.h"

namespace crosstalk::in_target {

// The section's ends, by the linker.
extern "C" __attribute__((visibility("hidden"))) RealDefinition __start_crosstalk_real[];  // NOLINT: its names
extern "C" __attribute__((visibility("hidden"))) RealDefinition __stop_crosstalk_real[];   // NOLINT

void prepare_real_functions() {
  static_assert(sizeof(RealDefinition) == 16);  // as they are aligned: an array
  for (RealDefinition* real = __start_crosstalk_real; real != __stop_crosstalk_real; ++real) {
    real->prepare();
  }
}

}  // namespace crosstalk::in_target
