// SPDX-License-Identifier: Apache-2.0
// To be preloaded: clock_gettime returns a time a century ahead. It is slow and must not be called recursively, as in
// libraries that take a lock there.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace {

std::atomic<int> reentered{0};
std::atomic<int> strangers{0};
__thread int inside [[gnu::tls_model("initial-exec")]] = 0;

bool is_of_the_program(void* caller) {
  Dl_info found{};
  return dladdr(caller, &found) != 0 &&
         (std::strstr(found.dli_fname, ".so") == nullptr || std::strstr(found.dli_fname, "libstdc++") != nullptr);
}

}  // namespace

extern "C" int fake_clock_reentered() { return reentered; }
extern "C" int fake_clock_strangers() { return strangers; }

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  if (inside != 0) {
    ++reentered;
  }
  ++inside;
  strangers += is_of_the_program(__builtin_return_address(0)) ? 0 : 1;
  for (int n = 0; n < 20'000; ++n) {
    asm volatile("");
  }
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) {
    time->tv_sec += 100L * 365 * 86400;
  }
  --inside;
  return static_cast<int>(result);
}
