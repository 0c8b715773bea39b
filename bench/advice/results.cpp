// SPDX-License-Identifier: Apache-2.0
// Each thread sums into its place of an array of results. Advised: a line each.
#include "bench/advice/common.h"

struct OWN_LINE Result {
  std::uint64_t sum = 0;
};
static Result results[2];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 60'000'000);
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    for (long i = 0; i < n; ++i) {
      value = work(value, 4);
      results[me].sum += value;
      keep(results[me].sum);
    }
  });
  return 0;
}
