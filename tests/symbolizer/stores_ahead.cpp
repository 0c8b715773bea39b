// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/stores_ahead.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace crosstalk::symbolizer::stores_ahead_test {
namespace {

constexpr std::uint64_t begin = 0x401000;

std::vector<StoreAhead> ahead(const std::vector<std::uint8_t>& code, std::uint64_t from = begin) {
  return stores_ahead(from, [&](std::uint64_t address) {
    const std::span<const std::uint8_t> all(code);
    return address >= begin && address < begin + code.size() ? all.subspan(address - begin)
                                                             : std::span<const std::uint8_t>();
  });
}

Registers registers() {
  Registers registers;
  registers[Register::rdi] = 0x5000;
  registers[Register::rsi] = 3;
  return registers;
}

TEST(StoresAhead, BehindALoopThatWaits) {
  // 1: mov (%rax),%rdx; cmp %rdx,%rcx; jne 1b; lea 8(%rdi,%rsi,8),%r8; mov %rcx,(%r8)
  const auto found =
      ahead({0x48, 0x8b, 0x10, 0x48, 0x39, 0xd1, 0x75, 0xf8, 0x4c, 0x8d, 0x44, 0xf7, 0x08, 0x49, 0x89, 0x08});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].instruction, begin + 13);
  EXPECT_EQ(found[0].at(registers()), 0x5000U + 8 + 24);
  EXPECT_EQ(found[0].width, 8);
  EXPECT_EQ(found[0].kind, AccessKind::store);
}

TEST(StoresAhead, OnBothSidesOfABranchAndInWhatIsCalled) {
  // test %eax,%eax; je 1f; movl $0,(%rdi); ret; 1: call 2f; ret; 2: lock incl 4(%rdi); ret
  const auto found = ahead({0x85, 0xc0, 0x74, 0x07, 0xc7, 0x07, 0,    0,    0,    0,    0xc3,  //
                            0xe8, 0x01, 0,    0,    0,    0xc3, 0xf0, 0xff, 0x47, 0x04, 0xc3});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at(registers()), 0x5000U);
  EXPECT_EQ(found[1].at(registers()), 0x5004U);
  EXPECT_EQ(found[1].kind, AccessKind::load_store);
}

TEST(StoresAhead, VariablesAreWhereTheCodeSays) {
  // mov %eax,0x10(%rip); lea 0x20(%rip),%rdx; mov %eax,(%rdx)
  const auto found = ahead({0x89, 0x05, 0x10, 0, 0, 0, 0x48, 0x8d, 0x15, 0x20, 0, 0, 0, 0x89, 0x02});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at(registers()), begin + 6 + 0x10);
  EXPECT_EQ(found[1].at(registers()), begin + 13 + 0x20);
}

TEST(StoresAhead, AddressesThatAreLoadedFirstAreNotKnown) {
  EXPECT_TRUE(ahead({0x48, 0x8b, 0x07, 0x89, 0x08}).empty()) << "mov (%rdi),%rax; mov %ecx,(%rax)";
  EXPECT_TRUE(ahead({0x89, 0x44, 0x24, 0x08}).empty()) << "mov %eax,8(%rsp): its own stack";
  EXPECT_TRUE(ahead({0x53, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0x08}).empty()) << "push; call; mov %rcx,(%rax)";
  EXPECT_TRUE(ahead({0xc3, 0x89, 0x07}).empty()) << "the function returns";
}

TEST(StoresAhead, HostileBytes) {
  EXPECT_TRUE(ahead({}).empty());
  EXPECT_TRUE(ahead({0x06, 0x89, 0x07}).empty()) << "no instruction";
  EXPECT_TRUE(ahead({0xeb, 0xfe}).empty()) << "jumps to itself";
  EXPECT_EQ(ahead(std::vector<std::uint8_t>(4096, 0xaa)).size(), 1U) << "stosb: where it stores next is not linear";
}

}  // namespace
}  // namespace crosstalk::symbolizer::stores_ahead_test
