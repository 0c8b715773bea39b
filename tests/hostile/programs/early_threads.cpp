// SPDX-License-Identifier: Apache-2.0
// A library that starts threads in its constructor, before other code in the process is ready for them; only in a
// program whose first argument is early_threads.
#include <unistd.h>

#include <cstring>
#include <thread>

namespace {

constexpr int count = 16;

// libc gives constructors what main gets.
[[gnu::constructor]] void start_early(int argc, char** argv, char** /*environment*/) {
  if (argc < 2 || std::strcmp(argv[1], "early_threads") != 0) {
    return;
  }
  for (int n = 0; n < count; ++n) {
    std::thread([] {
      for (;;) {
        pause();
      }
    }).detach();
  }
}

}  // namespace

extern "C" int early_threads_started() { return count; }
