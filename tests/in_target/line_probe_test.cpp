// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/probe/line_probe.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "collectors/in_target/session/runtime.h"

namespace crosstalk::in_target::line_probe_test {
namespace {

constexpr std::uint32_t gap_ns = 20'000;

class LineProbeTest : public testing::Test {
 protected:
  void SetUp() override { runtime().pid = getpid(); }
  void TearDown() override { runtime().pid = 0; }

  struct alignas(64) Line {
    std::atomic<std::uint64_t> word[8];
  };
  static std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place); }  // NOLINT

  Line line_{};
};

TEST_F(LineProbeTest, SeesWhichBytesAnotherThreadStoresTo) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint8_t i = 1; !stop.load(); ++i) {
      line_.word[3].store(i);
    }
  });
  std::uint64_t changed = 0;
  for (int i = 0; i < 100'000 && changed == 0; ++i) {  // until both have had a processor at once
    const HandlerStay stay;
    const auto looks = look_twice(address_of(&line_), gap_ns);
    changed = looks ? looks->changed : 0;
  }
  stop = true;
  other.join();
  EXPECT_EQ(changed, std::uint64_t{1} << 24U);
}

TEST_F(LineProbeTest, WhatNobodyStoresToStays) {
  line_.word[1] = 77;
  const HandlerStay stay;
  const auto looks = look_twice(address_of(&line_), 300);
  ASSERT_TRUE(looks);
  EXPECT_EQ(looks->changed, 0U);
  EXPECT_EQ(looks->first[1], 77U);
  EXPECT_GE(looks->gap_ns, 300U);
}

TEST_F(LineProbeTest, WhileOthersAreInHandlersNothingIsSaid) {
  const HandlerStay stay;
  {
    const HandlerStay another;
    EXPECT_FALSE(look_twice(address_of(&line_), 300));
  }
  EXPECT_TRUE(look_twice(address_of(&line_), 300));
}

TEST_F(LineProbeTest, AForkedChildHasNoOthersInHandlers) {
  const HandlerStay of_another_thread;
  const pid_t child = ::fork();
  if (child == 0) {
    runtime().pid = getpid();
    forget_handler_stays();
    const HandlerStay stay;
    ::_exit(look_twice(address_of(&line_), 300) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(LineProbeTest, LinesThatComeAndGoDoNoHarm) {
  std::atomic<bool> stop{false};
  constexpr std::size_t bytes = 64 * 4096;
  auto* const place =
      static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(place, MAP_FAILED);
  std::thread other([&] {
    for (int i = 0; !stop.load(); ++i) {
      ::mprotect(place, bytes, i % 3 == 0 ? PROT_NONE : PROT_READ);
      ::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
  });
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const HandlerStay stay;
    const std::uint64_t anywhere = i % 2 == 0 ? address_of(place) + random() % bytes : random();
    (void)look_twice(anywhere & ~std::uint64_t{63}, 300);
  }
  stop = true;
  other.join();
  ::munmap(place, bytes);
}

}  // namespace
}  // namespace crosstalk::in_target::line_probe_test
