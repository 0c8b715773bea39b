// SPDX-License-Identifier: Apache-2.0
// A library to be loaded late: code, data and thread-local storage that are used while it is there. It has no C++
// runtime, which would never be unloaded.
#include <time.h>

namespace {

alignas(64) unsigned long words[8];
__thread unsigned long own_words[64];

}  // namespace

extern "C" int plugin_work(double cpu_seconds) {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const double end = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) + cpu_seconds;
  do {
    for (unsigned long n = 0; n < 10'000; ++n) {
      __atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);
      own_words[n % 64] += n;
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) < end);
  return words[0] > 0 && own_words[63] > 0 ? 77 : 0;
}
