// SPDX-License-Identifier: Apache-2.0
#include "attribution/samples/arming.h"

#include <algorithm>

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

}  // namespace crosstalk::attribution
