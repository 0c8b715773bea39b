// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstdint>
#include <vector>

#include "symbolizer/cfg/system_call.h"

namespace crosstalk::symbolizer::system_call_test {
namespace {

using Code = std::vector<std::uint8_t>;

TEST(SystemCall, IsWhatWasMovedToEax) {
  EXPECT_EQ(system_call_number(Code{0xb8, 0xca, 0, 0, 0, 0x0f, 0x05}), 202U) << "mov $202,%eax; syscall";
  EXPECT_EQ(system_call_number(Code{0x31, 0xc0, 0x0f, 0x05}), 0U) << "xor %eax,%eax";
  EXPECT_EQ(system_call_number(Code{0x48, 0xc7, 0xc0, 0x01, 0, 0, 0, 0x0f, 0x05}), 1U) << "mov $1,%rax";
  // mov $202,%eax; mov %rdi,%rdx; syscall
  EXPECT_EQ(system_call_number(Code{0xb8, 0xca, 0, 0, 0, 0x48, 0x89, 0xfa, 0x0f, 0x05}), 202U);
}

TEST(SystemCall, OfAnArgumentIsNotKnown) {
  EXPECT_FALSE(system_call_number(Code{0x48, 0x89, 0xf8, 0x0f, 0x05})) << "mov %rdi,%rax";
  EXPECT_FALSE(system_call_number(Code{0x0f, 0x05}));
  EXPECT_FALSE(system_call_number(Code{0xb8, 0x01, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x0f, 0x05})) << "a call is between";
  EXPECT_FALSE(system_call_number(Code{0xb8, 0x01, 0, 0, 0, 0xc3, 0x0f, 0x05})) << "it is come to from elsewhere";
  EXPECT_FALSE(system_call_number(Code{0xb8, 0x01, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x05})) << "the result of another";
  EXPECT_FALSE(system_call_number(Code{0xb0, 0x01, 0x0f, 0x05})) << "a part of it: mov $1,%al";
}

TEST(SystemCall, HostileBytes) {
  EXPECT_FALSE(system_call_number({}));
  EXPECT_FALSE(system_call_number(Code{0x06, 0x0f, 0x05})) << "no instruction";
  EXPECT_FALSE(system_call_number(Code{0xb8, 0x0f, 0x05})) << "cut off";
  EXPECT_FALSE(system_call_number(Code{0xb8, 0x01, 0, 0, 0, 0x90})) << "no system call at its end";
}

TEST(SystemCall, HasTheKernelsName) {
  EXPECT_EQ(system_call_name(SYS_read), "read");
  EXPECT_EQ(system_call_name(SYS_futex), "futex");
  EXPECT_EQ(system_call_name(SYS_epoll_wait), "epoll_wait");
  EXPECT_EQ(system_call_name(100'000), "");
}

}  // namespace
}  // namespace crosstalk::symbolizer::system_call_test
