// SPDX-License-Identifier: Apache-2.0
// How communication is seen in a recording: by watchpoints or by probes of lines.
#pragma once

#include <string>

#include "base/result.h"
#include "collectors/probe.h"
#include "driver/record_options.h"
#include "profile/watch_settings.h"

namespace crosstalk::driver {

struct MethodChoice {
  profile::Method method = profile::Method::none;
  std::string why;     // in words that "as" can come before
  bool asked = false;  // the user has named it
};

/// What `wish` comes to here; fails where the method that it names does not work. `from_outside`: no collector is in
/// the targets. `registers`: debug registers that may be used.
[[nodiscard]] Result<MethodChoice> choose_method(MethodWish wish, const collectors::Probe& probe, bool from_outside,
                                                 std::uint32_t registers);

}  // namespace crosstalk::driver
