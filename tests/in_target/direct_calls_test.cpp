// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/direct_calls.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::in_target::direct_calls_test {
namespace {

using Code = std::vector<std::uint8_t>;
const Code call_seccomp = {0xb8, 0x3d, 0x01, 0x00, 0x00};
const Code call_prctl = {0xb8, 0x9d, 0x00, 0x00, 0x00};
const Code set_seccomp = {0xbf, 0x16, 0x00, 0x00, 0x00};
const Code set_name = {0xbf, 0x0f, 0x00, 0x00, 0x00};
const Code system_call_instruction = {0x0f, 0x05};

Code operator+(Code a, const Code& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Code nops(std::size_t count) { return Code(count, 0x90); }
const Code set_dispatch = {0xbf, 0x3b, 0x00, 0x00, 0x00};
const Code call_sigaction = {0xb8, 0x0d, 0x00, 0x00, 0x00};
const Code call_sigprocmask = {0xb8, 0x0e, 0x00, 0x00, 0x00};
bool found(const Code& code) { return direct_calls_in(code.data(), code.size()).confines; }
bool found_signals(const Code& code) { return direct_calls_in(code.data(), code.size()).signals; }

TEST(DirectCalls, FindsBothCallsWhereverTheyLie) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (const std::size_t after : {0, 1, 7, 40}) {
      EXPECT_TRUE(found(nops(before) + call_seccomp + nops(3) + system_call_instruction + nops(after)));
      EXPECT_TRUE(found(nops(before) + call_prctl + set_seccomp + system_call_instruction + nops(after)));
      EXPECT_TRUE(found(nops(before) + set_seccomp + nops(6) + call_prctl + system_call_instruction + nops(after)));
    }
  }
}

TEST(DirectCalls, FindsTheSecondOfTwoSystemCalls) {
  EXPECT_TRUE(found(system_call_instruction + nops(200) + call_seccomp + system_call_instruction));
}

TEST(DirectCalls, LeavesOthersAlone) {
  EXPECT_FALSE(found({}));
  EXPECT_FALSE(found(system_call_instruction));
  EXPECT_FALSE(found(nops(64) + system_call_instruction));
  EXPECT_FALSE(found(call_prctl + set_name + system_call_instruction));
  EXPECT_FALSE(found(call_prctl + system_call_instruction));
  EXPECT_FALSE(found(call_seccomp));
  EXPECT_FALSE(found(system_call_instruction + call_seccomp));
  EXPECT_FALSE(found(call_seccomp + nops(direct_call_bytes) + system_call_instruction));
}

TEST(DirectCalls, FindsUserDispatch) {
  EXPECT_TRUE(found(call_prctl + set_dispatch + system_call_instruction));
  EXPECT_FALSE(found_signals(call_prctl + set_dispatch + system_call_instruction));
}

TEST(DirectCalls, FindsCallsForSignals) {
  for (std::size_t before = 0; before < 40; ++before) {
    EXPECT_TRUE(found_signals(nops(before) + call_sigaction + nops(3) + system_call_instruction));
    EXPECT_TRUE(found_signals(nops(before) + call_sigprocmask + system_call_instruction + nops(9)));
  }
  EXPECT_FALSE(found(call_sigaction + system_call_instruction));
}

TEST(DirectCalls, TheLastNumberCounts) {
  EXPECT_FALSE(found_signals(call_sigaction + call_prctl + nops(3) + system_call_instruction));
  EXPECT_TRUE(found_signals(call_prctl + call_sigaction + nops(3) + system_call_instruction));
  EXPECT_FALSE(found_signals(call_sigaction + nops(direct_call_bytes) + system_call_instruction));
  EXPECT_FALSE(found_signals({0x0f, 0x05}));
}

TEST(DirectCalls, ThisProgramMakesNone) {
  EXPECT_FALSE(find_direct_calls().confines);
  EXPECT_FALSE(find_direct_calls().signals);
}

}  // namespace
}  // namespace crosstalk::in_target::direct_calls_test
