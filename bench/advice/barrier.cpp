// SPDX-License-Identifier: Apache-2.0
// Threads meet after short phases. Padded: they wait as long.
#include "bench/advice/common.h"

struct Parts {
  OWN_LINE pthread_barrier_t meeting;
  OWN_LINE std::uint64_t done[2];
};
static Parts parts;

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 200'000);
  pthread_barrier_init(&parts.meeting, nullptr, 2);
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    for (long i = 0; i < n; ++i) {
      value = work(value, 400);
      parts.done[me] = value;
      pthread_barrier_wait(&parts.meeting);
    }
    keep(value);
  });
  return 0;
}
