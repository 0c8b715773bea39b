// SPDX-License-Identifier: Apache-2.0
#include "attribution/samples/arming.h"

#include <algorithm>

#include "profile/watch_settings.h"

namespace crosstalk::attribution {

double Arming::chance(std::uint32_t wanted) const {
  if (complete()) {
    return 1;
  }
  double none = 1;  // the probability that none of them was among those drawn
  for (std::uint32_t i = 0; i < armed; ++i) {
    const double left = static_cast<double>(others) - i;
    none *= std::max(left - wanted, 0.0) / left;
  }
  return 1 - none;
}

Arming arming_of(const profile::WatchRow& watch) {
  const std::uint32_t others = watch.threads > 1 ? watch.threads - 1 : 0;
  return {others, watch.suspected ? others : watch.armed};
}

bool ArmingFailures::misses(const profile::WatchRow& watch) {
  const std::uint32_t others = watch.threads > 1 ? watch.threads - 1 : 0;
  return watch.armed < std::min(others, profile::most_armed);
}

ArmingFailures::ArmingFailures(std::span<const profile::WatchRow> watches) {
  constexpr std::ptrdiff_t most = 4;  // failures for each success
  const auto failures = std::count_if(watches.begin(), watches.end(), misses);
  are_few_ = failures <= most * (static_cast<std::ptrdiff_t>(watches.size()) - failures);
}

}  // namespace crosstalk::attribution
