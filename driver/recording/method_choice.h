// SPDX-License-Identifier: Apache-2.0
// Chooses how a recording sees communication: by watchpoints or by line probes.
#pragma once

#include <string>

#include "base/result.h"
#include "collectors/facilities/probe.h"
#include "driver/options/record_options.h"
#include "profile/watch_settings.h"

namespace crosstalk::driver {

struct MethodChoice {
  profile::Method method = profile::Method::none;
  std::string why;     // in words that follow "as"
  bool asked = false;  // the user has named it
};

/// Returns the method for `wish`; fails if the named method does not work here. `from_outside`: no collector is in the
/// targets. `registers`: debug registers that may be used.
[[nodiscard]] Result<MethodChoice> choose_method(MethodWish wish, const collectors::Probe& probe, bool from_outside,
                                                 std::uint32_t registers);

}  // namespace crosstalk::driver
