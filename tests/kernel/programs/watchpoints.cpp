// SPDX-License-Identifier: Apache-2.0
// Opens five watchpoints on another thread, one a word, which then loads and stores each word 100 times, and prints how
// many traps of each kind came. On real processors four can be opened, and each access traps.
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

constexpr int wanted = 5;
constexpr int accesses = 100;

struct Word {
  alignas(64) volatile std::uint64_t value;
};
std::array<Word, wanted> words;
std::array<std::atomic<int>, wanted> traps;
std::atomic<bool> addresses_right{true};

void on_trap(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (int i = 0; i < wanted; ++i) {
    if (at == reinterpret_cast<std::uintptr_t>(&words[i])) {
      ++traps[i];
      return;
    }
  }
  addresses_right = false;
}

int open_watchpoint(pid_t thread, const volatile void* word) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.size = sizeof attr;
  attr.bp_type = HW_BREAKPOINT_RW;
  attr.bp_addr = reinterpret_cast<std::uintptr_t>(word);
  attr.bp_len = HW_BREAKPOINT_LEN_8;
  attr.sample_period = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.remove_on_exec = 1;
  attr.sigtrap = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

void print(const char* name, const std::array<int, wanted>& counts, int how_many) {
  std::printf("\"%s\": [", name);
  for (int i = 0; i < how_many; ++i) {
    std::printf("%s%d", i == 0 ? "" : ", ", counts[i]);
  }
  std::printf("], ");
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);

  std::atomic<pid_t> tid{0};
  std::atomic<bool> ready{false};
  std::array<int, wanted> loads{}, stores{};
  std::thread other([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    while (!ready) {
    }
    for (int i = 0; i < wanted; ++i) {
      for (int n = 0; n < accesses; ++n) {
        static_cast<void>(words[i].value);
      }
      loads[i] = traps[i].exchange(0);
      for (int n = 0; n < accesses; ++n) {
        words[i].value = 1;
      }
      stores[i] = traps[i].exchange(0);
    }
  });
  while (tid == 0) {
  }
  std::printf("{\"opened\": [");
  for (int i = 0; i < wanted; ++i) {
    std::printf("%s%s", i == 0 ? "" : ", ", open_watchpoint(tid, &words[i]) >= 0 ? "true" : "false");
  }
  std::printf("], ");
  ready = true;
  other.join();
  print("loads", loads, wanted - 1);
  print("stores", stores, wanted - 1);
  std::printf("\"addresses_right\": %s}\n", addresses_right ? "true" : "false");
}
