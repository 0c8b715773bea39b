// SPDX-License-Identifier: Apache-2.0
// Cost of finding the access of a sample. A timer interrupts a few kinds of code and keeps registers and flags; then
// the finder is run on each of these, with its cache warm and empty. Prints nanoseconds for one find(), as median and
// 99th percentile over the samples, and the share of samples with an answer.
//
//   direct   the pages of the instruction pointer and of the stack pointer are read in place
//   kernel   everything is read by process_vm_readv
//
// Build: cmake --build <folder> --target in_target_access_bench (Release), or
//   g++ -std=c++20 -O2 -I. bench/in_target_access_bench.cpp collectors/in_target/{access_*,decoded_*}.cpp -lZydis
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "collectors/access/finder.h"

namespace {

using crosstalk::Register;
using crosstalk::Registers;
using crosstalk::in_target::AccessFinder;
using crosstalk::in_target::CodeReader;
using crosstalk::in_target::FoundAccess;

constexpr std::size_t capacity = 4000;
constexpr long period_ns = 100'000;
constexpr int warm_rounds = 16;

struct Sample {
  Registers registers;
  std::uint64_t flags = 0;
};

Sample samples[capacity];
volatile std::size_t taken = 0;
volatile std::uint64_t sink = 0;
AccessFinder finder;

void take(int, siginfo_t*, void* context) {
  if (taken == capacity) {
    return;
  }
  const auto& r = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                       REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  Sample& sample = samples[taken];
  for (std::size_t i = 0; i < crosstalk::register_count; ++i) {
    sample.registers.value[i] = static_cast<std::uint64_t>(r[order[i]]);
  }
  sample.flags = static_cast<std::uint64_t>(r[REG_EFL]);
  taken = taken + 1;
}

// Kinds of code to interrupt; each runs until enough samples are taken.

void array_loop() {
  std::vector<std::uint64_t> values(1U << 20U);
  while (taken < capacity) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += i;
    }
  }
  sink = values[7];
}

void list_walk() {
  struct Node {
    Node* next;
    std::uint64_t value;
  };
  std::vector<Node> nodes(1U << 18U);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = {&nodes[(i * 7919 + 1) % nodes.size()], i};
  }
  std::uint64_t sum = 0;
  const Node* node = nodes.data();
  while (taken < capacity) {
    sum += node->value;
    node = node->next;
  }
  sink = sum;
}

void hash_table() {
  std::unordered_map<std::uint64_t, std::uint64_t> table;
  for (std::uint64_t i = 0; taken < capacity; ++i) {
    table[i * 2654435761U % 65536] += i;
  }
  sink = table.size();
}

void formatting() {
  char line[128];
  for (unsigned i = 0; taken < capacity; ++i) {
    std::snprintf(line, sizeof(line), "%u %s %lx", i, "text", i * 77777UL);
  }
  sink = static_cast<unsigned char>(line[0]);
}

bool read_by_kernel(void* /*context*/, std::uint64_t address, void* out, std::size_t bytes) {
  static const pid_t pid = ::getpid();
  const iovec local{out, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of our own
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

/// `context` is the Sample, with its executed code and its stack.
bool read_direct(void* context, std::uint64_t address, void* out, std::size_t bytes) {
  constexpr std::uint64_t page = ~std::uint64_t{4095};
  const Registers& registers = static_cast<const Sample*>(context)->registers;
  const bool here =
      ((address ^ registers[Register::rip]) & page) == 0 || ((address ^ registers[Register::rsp]) & page) == 0;
  if (!here) {
    return read_by_kernel(context, address, out, bytes);
  }
  std::memcpy(out, reinterpret_cast<const void*>(address), bytes);  // NOLINT: an address of our own
  return true;
}

double now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void print(const char* code, const char* reader, const char* cache, std::vector<double>& times, std::size_t found) {
  std::sort(times.begin(), times.end());
  std::printf("%-12s %-8s %-6s median %7.0f ns  99 %% %7.0f ns  answered %5.1f %%\n", code, reader, cache,
              times[times.size() / 2], times[times.size() * 99 / 100],
              100.0 * static_cast<double>(found) / static_cast<double>(times.size()));
}

using Reader = bool (*)(void*, std::uint64_t, void*, std::size_t);

void measure(const char* code, const char* name, Reader read, bool warm, double clock_ns) {
  std::vector<double> times;
  std::size_t answered = 0;
  for (Sample& sample : samples) {
    const CodeReader reader{&sample, read, read};
    FoundAccess found;
    const auto ask = [&] { return finder.find(sample.registers, sample.flags, 0, reader, found); };
    if (warm) {
      answered += ask() ? 1 : 0;
    } else {
      new (&finder) AccessFinder{};
    }
    const int rounds = warm ? warm_rounds : 1;
    const double begin = now_ns();
    bool any = false;
    for (int i = 0; i < rounds; ++i) {
      any = ask();
    }
    times.push_back((now_ns() - begin - clock_ns) / rounds);
    answered += !warm && any ? 1 : 0;
  }
  print(code, name, warm ? "warm" : "empty", times, answered);
}

void run(const char* name, void (*code)(), double clock_ns) {
  taken = 0;
  struct sigaction action {};
  action.sa_sigaction = take;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
    std::perror("timer_create");
    std::exit(1);
  }
  const itimerspec period{{0, period_ns}, {0, period_ns}};
  ::timer_settime(timer, 0, &period, nullptr);
  code();
  ::timer_delete(timer);
  for (const bool warm : {true, false}) {
    measure(name, "kernel", read_by_kernel, warm, clock_ns);
    measure(name, "direct", read_direct, warm, clock_ns);
  }
}

double clock_cost() {
  double best = 1e9;
  for (int i = 0; i < 1000; ++i) {
    const double begin = now_ns();
    best = std::min(best, now_ns() - begin);
  }
  return best;
}

}  // namespace

int main() {
  const double clock_ns = clock_cost();
  run("array_loop", array_loop, clock_ns);
  run("list_walk", list_walk, clock_ns);
  run("hash_table", hash_table, clock_ns);
  run("formatting", formatting, clock_ns);
  return 0;
}
