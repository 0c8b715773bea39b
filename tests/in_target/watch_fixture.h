// SPDX-License-Identifier: Apache-2.0
// A watch unit with threads and a watched line, driven step by step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::test {

class WatchFixture : public testing::Test {
 protected:
  static constexpr std::uint64_t horizon_ns = 20'000'000;

  /// Address of a word of the line.
  static std::uint64_t word(std::uint32_t number) {
    alignas(64) static constinit std::uint64_t line[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    return reinterpret_cast<std::uint64_t>(&line[number]);
  }

  void start(std::uint32_t threads, std::uint32_t registers = 4) {
    kernel_.watch.start(registers, horizon_ns);
    for (std::uint32_t i = 0; i < threads; ++i) {
      thread_.push_back(&kernel_.add_thread());
    }
    for (ThreadState* thread : thread_) {
      kernel_.watch.attend(*thread);
    }
  }
  /// Thread `number` was sampled at word 2 of the line, which is suspected because of thread 1.
  bool open(std::uint32_t number, bool suspected = true, AccessKind kind = AccessKind::load) {
    sample_ = {};
    sample_.time_ns = 1000;
    sample_.address = word(2);
    sample_.width = 8;
    sample_.access = kind;
    sample_.from = profile::AddressFrom::retired;
    WatchRequest request{thread_[number], &sample_, {16, 8, kind, false, false}, {}, suspicion_, suspected};
    return kernel_.watch.open(*thread_[number], request, sample_.time_ns);
  }
  WatchMode mode(std::uint32_t number, std::uint32_t event = 0) { return kernel_.place(*thread_[number], event).mode; }
  std::uint32_t access(std::uint32_t number, bool store, std::uint64_t now_ns = 2000) {
    return kernel_.access(*thread_[number], word(2), store, now_ns);
  }
  bool any_armed() {
    return std::any_of(kernel_.events.begin(), kernel_.events.end(),
                       [](const FakeEvent& event) { return event.open && event.place.mode != WatchMode::off; });
  }

  FakeKernel kernel_;
  std::vector<ThreadState*> thread_;
  watch_policy::Suspicion suspicion_;
  profile::Sample sample_;
};

}  // namespace crosstalk::in_target::test
