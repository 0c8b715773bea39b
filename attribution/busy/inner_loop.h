// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crosstalk::attribution {

/// A figure of a loop inside another one, and the inner loop's CPU time. The outer one's figure follows from those of
/// its inner loops by their shares of its time.
template <class Figure>
struct InnerLoop {
  double cpu_s = 0;
  const Figure* figure = nullptr;
};

}  // namespace crosstalk::attribution
