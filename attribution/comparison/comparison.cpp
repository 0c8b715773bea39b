// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::less:
      return "less";
    case Verdict::more:
      return "more";
    case Verdict::same:
      return "same";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

const Figure& judged_change(const Row& row, Unit unit) {
  return unit == Unit::seconds ? row.change.cost : row.share_change;
}

const Figure& judged_change(const LoopChange& loop, Unit unit) {
  if (loop.change.iteration_s.ci95) {
    return loop.change.iteration_s;
  }
  return unit == Unit::seconds ? loop.change.cpu_s : loop.change.share;
}

}  // namespace crosstalk::attribution::comparison
