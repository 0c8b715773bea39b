// SPDX-License-Identifier: Apache-2.0
// A context of /dev/crosstalk_ibs, and the common checks of the module. Checks print their failures; a program's exit
// status tells if any check failed.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kmod/crosstalk_ibs.h"

namespace kmod_test {

inline std::atomic<int> failures{0};

inline bool check_at(bool holds, const char* text, const char* file, int line, const std::string& found = "") {
  if (!holds) {
    ++failures;
    std::printf("FAILED %s:%d: %s %s\n", file, line, text, found.c_str());
    std::fflush(stdout);
  }
  return holds;
}
#define CHECK(condition) ::kmod_test::check_at((condition), #condition, __FILE__, __LINE__)
#define CHECK_FOUND(condition, found) ::kmod_test::check_at((condition), #condition, __FILE__, __LINE__, (found))

template <typename Left, typename Right>
inline bool check_equal_at(const Left& left, const Right& right, const char* text, const char* file, int line) {
  return check_at(left == right, text, file, line, "(" + std::to_string(left) + ", " + std::to_string(right) + ")");
}
#define CHECK_EQUAL(left, right) ::kmod_test::check_equal_at((left), (right), #left " == " #right, __FILE__, __LINE__)

constexpr const char* kDevice = "/dev/crosstalk_ibs";

inline crosstalk_ibs_setup usual_setup() {
  crosstalk_ibs_setup setup{};
  setup.size = sizeof(setup);
  setup.flavour = CROSSTALK_IBS_OP;
  setup.period = 500'000;
  setup.random = 100'000;
  setup.records = 4096;
  return setup;
}

/// errno of a call that failed, 0 of one that did not.
inline int error_of(long result) { return result < 0 ? errno : 0; }

class Context {
 public:
  explicit Context(int flags = O_RDWR | O_CLOEXEC) : fd_(open(kDevice, flags)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { reset(); }

  void reset() {
    if (ring_ != nullptr) {
      munmap(ring_, bytes_);
      ring_ = nullptr;
    }
    if (fd_ >= 0) {
      close(fd_);
      fd_ = -1;
    }
  }

  int fd() const { return fd_; }
  int call(unsigned long command, const void* argument = nullptr) const {
    return error_of(ioctl(fd_, command, argument));
  }
  int setup(const crosstalk_ibs_setup& setup) const { return call(CROSSTALK_IBS_IOC_SETUP, &setup); }
  int enable() const { return call(CROSSTALK_IBS_IOC_ENABLE); }
  int disable() const { return call(CROSSTALK_IBS_IOC_DISABLE); }

  crosstalk_ibs_status status() const {
    crosstalk_ibs_status status{};
    CHECK_EQUAL(call(CROSSTALK_IBS_IOC_STATUS, &status), 0);
    return status;
  }

  crosstalk_ibs_ring* map() {
    bytes_ = status().ring_bytes;
    void* place = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    ring_ = place == MAP_FAILED ? nullptr : static_cast<crosstalk_ibs_ring*>(place);
    return ring_;
  }
  crosstalk_ibs_ring* ring() const { return ring_; }

  std::vector<crosstalk_ibs_sample> drain() const {
    std::vector<crosstalk_ibs_sample> samples;
    const auto* records =
        reinterpret_cast<const crosstalk_ibs_sample*>(reinterpret_cast<const char*>(ring_) + ring_->data_offset);
    const std::uint64_t head = __atomic_load_n(&ring_->head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = ring_->tail;
    for (; tail != head; ++tail) {
      samples.push_back(records[tail & (ring_->records - 1)]);
    }
    __atomic_store_n(&ring_->tail, tail, __ATOMIC_RELEASE);
    return samples;
  }

 private:
  int fd_;
  crosstalk_ibs_ring* ring_ = nullptr;
  std::size_t bytes_ = 0;
};

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// An emulator takes interrupts at the first instruction of a block of code, so samples of this loop are at the store
/// at its head.
[[gnu::noinline]] inline void store_often(volatile std::uint64_t* word, std::uint64_t times) {
  asm volatile(
      "1: movq %%rax, (%0)\n\t"
      "dec %1\n\t"
      "jnz 1b"
      : "+r"(word), "+r"(times)
      :
      : "memory", "cc");
}

/// The same without a memory access.
[[gnu::noinline]] inline void count_often(std::uint64_t times) {
  asm volatile(
      "1: dec %0\n\t"
      "jnz 1b"
      : "+r"(times)
      :
      : "cc");
}

/// Works until a condition holds; false if it does not within a minute. The checks wait for counts of samples: the time
/// of that depends more on the host, whose emulator may stand still for long, than on the module.
template <typename Condition>
bool store_until(volatile std::uint64_t* word, Condition condition) {
  const double end = seconds_of(CLOCK_MONOTONIC) + 60;
  while (!condition()) {
    if (seconds_of(CLOCK_MONOTONIC) > end) {
      return false;
    }
    store_often(word, 5'000);
  }
  return true;
}

inline bool store_until_sampled(volatile std::uint64_t* word, const Context& context, std::uint64_t samples) {
  return CHECK(store_until(word, [&] { return context.status().samples >= samples; }));
}

using Checks = std::map<std::string, std::function<void()>>;

/// Runs the checks that are named, all where none is.
inline int run_checks(const Checks& checks, int argc, char** argv) {
  for (const auto& [name, function] : checks) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) {
      wanted = wanted || name == argv[i];
    }
    if (wanted) {
      const double began = seconds_of(CLOCK_MONOTONIC);
      function();
      std::printf("%s: %.1f s\n", name.c_str(), seconds_of(CLOCK_MONOTONIC) - began);
      std::fflush(stdout);
    }
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace kmod_test
