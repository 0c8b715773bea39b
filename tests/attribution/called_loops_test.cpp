// SPDX-License-Identifier: Apache-2.0
// Loops with brief visits whose function a loop calls: rates by the caller's counter, or none.
#include "attribution/loops/called_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "tests/attribution/loop_function.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::called_loops_test {
namespace {

constexpr std::uint64_t base = 0x400000;
constexpr std::uint64_t fill = 0x200, loop = 0x202, caller = 0x300, behind_call = 0x308, other = 0x400;

// fill() counts rax up to rsi. caller() calls it for a number in r12, and counts rbx down; other() with rbx for rsi.
constexpr std::array<std::uint8_t, 0xc> fill_code = {0x31, 0xc0,                      // 200: xor eax, eax
                                                     0x48, 0x83, 0xc0, 0x01,          // 202: add rax, 1
                                                     0x48, 0x39, 0xf0,                // 206: cmp rax, rsi
                                                     0x75, 0xf7,                      // 209: jne 202
                                                     0xc3};                           // 20b: ret
constexpr std::array<std::uint8_t, 0xf> caller_code = {0x4c, 0x89, 0xe6,              // 300: mov rsi, r12
                                                       0xe8, 0xf8, 0xfe, 0xff, 0xff,  // 303: call 200
                                                       0x48, 0x83, 0xeb, 0x01,        // 308: sub rbx, 1
                                                       0x75, 0xf2,                    // 30c: jne 300
                                                       0xc3};                         // 30e: ret
constexpr std::array<std::uint8_t, 0xf> other_code = {0x48, 0x89, 0xde,               // 400: mov rsi, rbx
                                                      0xe8, 0xf8, 0xfd, 0xff, 0xff,   // 403: call 200
                                                      0x48, 0x83, 0xeb, 0x01,         // 408: sub rbx, 1
                                                      0x75, 0xf2,                     // 40c: jne 400
                                                      0xc3};                          // 40e: ret
constexpr double call_s = 1e-6;
constexpr double trips = 1000;

class CalledLoopsTest : public testing::Test {
 protected:
  CalledLoopsTest() {
    code_.anatomies[{0, fill}] = &fill_.anatomy;
    code_.anatomies[{0, caller}] = &caller_.anatomy;
    code_.anatomies[{0, other}] = &other_.anatomy;
  }

  void sample(std::uint64_t rax, std::uint64_t rbx, std::uint64_t rsi, std::uint64_t cpu_ns, std::uint64_t behind) {
    profile::SampleRow row;
    row.time_ns = time_ns_ += cpu_ns;
    row.cpu_ns = cpu_ns;
    row.ip = base + loop;
    Registers registers;
    registers[Register::rax] = rax;
    registers[Register::rbx] = rbx;
    registers[Register::rsi] = rsi;
    registers[Register::r12] = rsi;
    registers[Register::rsp] = 0x7000;
    row.registers = registers;
    row.stack = stacks_.enter({base + loop, base + behind});
    called_.add(row, stacks_);
  }

  /// Samples every 4 ms or so of a thread that does nothing but call fill(), each call for a microsecond.
  void sample_calls(std::uint64_t behind = behind_call) {
    std::mt19937 random(1);  // NOLINT: the same each time
    std::normal_distribution<double> normal;
    double at_s = 0;
    for (int i = 0; i < 200; ++i) {
      const double interval_s = 4e-3 + 10e-6 * normal(random);
      at_s += interval_s;
      const double call = std::floor(at_s / call_s);
      sample(static_cast<std::uint64_t>((at_s / call_s - call) * trips), 10'000'000 - static_cast<std::uint64_t>(call),
             static_cast<std::uint64_t>(trips), static_cast<std::uint64_t>(interval_s * 1e9), behind);
    }
  }

  std::vector<profile::ProcessRow> processes_{1};
  std::vector<profile::ThreadRow> threads_ = make_threads(1);
  std::vector<profile::ModuleRow> modules_{module_row("/bin/app", base, base + 0x1000, base)};
  AddressSpaces spaces_{processes_, modules_};
  Function fill_{fill, fill_code}, caller_{caller, caller_code}, other_{other, other_code};
  FakeCode code_;
  ProgramView view_{processes_, threads_, spaces_, code_};
  StackTable stacks_;
  CalledLoops called_{view_};
  std::uint64_t time_ns_ = 0;
};

TEST_F(CalledLoopsTest, visits_of_a_microsecond_are_counted_by_the_loop_that_calls) {
  sample_calls();
  const auto speeds = called_.speeds(stacks_);
  ASSERT_TRUE(speeds.contains({0, loop}));
  const CalledSpeed& found = speeds.at({0, loop});
  EXPECT_NEAR(found.speed.per_s, trips / call_s, 1e-3 * trips / call_s);
  EXPECT_DOUBLE_EQ(found.part, 1);
}

TEST_F(CalledLoopsTest, time_elsewhere_is_no_part_of_the_loops) {
  sample_calls();
  const auto before = called_.speeds(stacks_).at({0, loop});
  profile::SampleRow row;  // the caller itself, which takes as long as all of the calls
  row.cpu_ns = time_ns_;
  row.ip = base + behind_call;
  row.registers = Registers{};
  called_.add(row, stacks_);
  sample(10, 10'000'000 - static_cast<std::uint64_t>(static_cast<double>(2 * time_ns_) * 1e-9 / call_s), 1000,
         4'000'000, behind_call);
  const auto after = called_.speeds(stacks_).at({0, loop});
  EXPECT_NEAR(after.part, 0.5, 0.01);
  EXPECT_NEAR(after.speed.per_s, before.speed.per_s, 0.02 * before.speed.per_s);
}

TEST_F(CalledLoopsTest, a_function_with_several_callers_is_left_alone) {
  sample_calls();
  sample(10, 3, 1000, 4'000'000, 0x30e);
  EXPECT_TRUE(called_.speeds(stacks_).empty());
}

TEST_F(CalledLoopsTest, calls_with_changing_arguments_are_left_alone) {
  sample_calls(0x408);
  EXPECT_TRUE(called_.speeds(stacks_).empty());
}

TEST_F(CalledLoopsTest, visits_of_several_lengths_are_left_alone) {
  sample_calls();
  sample(10, 3, 2000, 4'000'000, behind_call);
  EXPECT_TRUE(called_.speeds(stacks_).empty());
}

TEST_F(CalledLoopsTest, without_stacks_the_caller_is_not_known) {
  StackTable none;
  sample_calls();
  EXPECT_TRUE(called_.speeds(none).empty());
}

TEST(FunctionCalls, a_function_that_calls_others_keeps_nothing_for_sure) {
  Function function(caller, caller_code);
  EXPECT_FALSE(function.anatomy.calls().kept());
}

TEST(FunctionCalls, what_is_written_is_not_kept) {
  Function function(fill, fill_code);
  const auto kept = function.anatomy.calls().kept();
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept >> static_cast<unsigned>(Register::rax) & 1U, 0U);
  EXPECT_EQ(*kept >> static_cast<unsigned>(Register::rcx) & 1U, 1U);
  EXPECT_EQ(*kept >> static_cast<unsigned>(Register::rbx) & 1U, 1U);
}

}  // namespace
}  // namespace crosstalk::attribution::test::called_loops_test
