// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <map>
#include <vector>

#include "collectors/access/finder.h"

namespace crosstalk::in_target::access_finder_test {

namespace {

/// Memory that exists only here: pages of bytes at chosen addresses.
class Memory {
 public:
  void put(std::uint64_t address, const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      page(address + i)[(address + i) % page_bytes] = static_cast<const std::uint8_t*>(from)[i];
    }
  }
  void put(std::uint64_t address, std::uint64_t value) { put(address, &value, sizeof(value)); }
  CodeReader reader() { return {this, read, read}; }

 private:
  static constexpr std::uint64_t page_bytes = 4096;
  std::vector<std::uint8_t>& page(std::uint64_t address) {
    auto& page = pages_[address / page_bytes];
    page.resize(page_bytes, 0xcc);
    return page;
  }
  static bool read(void* context, std::uint64_t address, void* out, std::size_t bytes) {
    auto& self = *static_cast<Memory*>(context);
    EXPECT_EQ(address / page_bytes, (address + bytes - 1) / page_bytes);
    const auto found = self.pages_.find(address / page_bytes);
    if (found == self.pages_.end()) {
      return false;
    }
    std::memcpy(out, found->second.data() + address % page_bytes, bytes);
    return true;
  }
  std::map<std::uint64_t, std::vector<std::uint8_t>> pages_;
};

class AccessFinderTest : public testing::Test {
 protected:
  static constexpr std::uint64_t code_at = 0x400800;
  static constexpr std::uint64_t stack_at = 0x7fff00001000;
  static constexpr std::uint64_t flags = 0x202;

  void SetUp() override {
    registers_[Register::rsp] = stack_at;
    registers_[Register::rip] = code_at;
    memory_.put(stack_at - 4096, 0);
    memory_.put(stack_at, 0);
    // The bytes before are nops, which decode alike from every byte.
    for (std::uint64_t i = 1; i <= 256; ++i) {
      const std::uint8_t nop = 0x90;
      memory_.put(code_at - i, &nop, 1);
    }
  }
  void code(std::uint64_t at, std::initializer_list<std::uint8_t> bytes) {
    memory_.put(at, bytes.begin(), bytes.size());
  }
  bool next() { return finder().find_next(registers_, flags, fs_, memory_.reader(), found_); }
  bool retired() { return finder().find_retired(registers_, flags, fs_, memory_.reader(), found_); }
  bool find() { return finder().find(registers_, flags, fs_, memory_.reader(), found_); }
  static AccessFinder& finder() {
    static AccessFinder finder;
    return finder;
  }

  Memory memory_;
  Registers registers_;
  std::uint64_t fs_ = 0x7000;
  FoundAccess found_;
};

TEST_F(AccessFinderTest, NextIsTheInstructionItself) {
  code(code_at, {0x48, 0x8b, 0x44, 0xcf, 0x10});  // mov rax, [rdi + rcx * 8 + 16]
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rcx] = 3;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.instruction, code_at);
  EXPECT_EQ(found_.address, 0x1000U + 24 + 16);
  EXPECT_EQ(found_.width, 8);
  EXPECT_EQ(found_.kind, AccessKind::load);
  EXPECT_EQ(found_.from, profile::AddressFrom::next);
  EXPECT_FALSE(found_.spill);
}

TEST_F(AccessFinderTest, NextGoesAcrossTheBackEdge) {
  code(code_at - 3, {0x48, 0x8b, 0x07,        // mov rax, [rdi]
                     0x48, 0x83, 0xc7, 0x08,  // add rdi, 8        <- interrupted
                     0x48, 0x39, 0xf7,        // cmp rdi, rsi
                     0x75, 0xf4});            // jne to the load
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rsi] = 0x2000;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.instruction, code_at - 3);
  EXPECT_EQ(found_.address, 0x1008U);
  registers_[Register::rdi] = 0x1ff8;  // leaves the loop: int3 behind it
  EXPECT_FALSE(next());
}

TEST_F(AccessFinderTest, NextGoesRoundALoopOnce) {
  code(code_at, {0x48, 0xff, 0xc1,    // inc rcx         <- interrupted
                 0x48, 0x39, 0xd1,    // cmp rcx, rdx
                 0x75, 0xf8,          // jne to the inc
                 0x48, 0x8b, 0x07});  // mov rax, [rdi]
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rcx] = 10;
  registers_[Register::rdx] = 12;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x1000U);
  registers_[Register::rdx] = 13;  // it may as well be a thousand rounds away
  EXPECT_FALSE(next());
}

TEST_F(AccessFinderTest, NextFollowsASpilledPointer) {
  code(code_at, {0x48, 0x89, 0x7c, 0x24, 0x08,  // mov [rsp + 8], rdi
                 0x48, 0x8b, 0x44, 0x24, 0x10,  // mov rax, [rsp + 16]
                 0x48, 0x8b, 0x54, 0x24, 0x08,  // mov rdx, [rsp + 8]
                 0x48, 0x89, 0x04, 0x02});      // mov [rdx + rax], rax
  registers_[Register::rdi] = 0x5000;
  memory_.put(stack_at + 16, 0x30);
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x5030U);
  EXPECT_EQ(found_.kind, AccessKind::store);
  EXPECT_FALSE(found_.spill);
}

TEST_F(AccessFinderTest, NextFallsBackOnASpill) {
  code(code_at, {0x48, 0x89, 0x7c, 0x24, 0x08, 0x0f, 0x05});  // mov [rsp + 8], rdi; syscall
  ASSERT_TRUE(next());
  EXPECT_TRUE(found_.spill);
  EXPECT_EQ(found_.address, stack_at + 8);
}

TEST_F(AccessFinderTest, NextFollowsCallAndReturn) {
  code(code_at, {0xe8, 0x1b, 0x00, 0x00, 0x00,  // call +32
                 0x88, 0x03});                  // mov [rbx], al
  code(code_at + 32, {0xc3});
  registers_[Register::rbx] = 0x9000;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.instruction, code_at + 5);
  EXPECT_EQ(found_.address, 0x9000U);
}

TEST_F(AccessFinderTest, NextGivesUpOnWhatWasLoaded) {
  code(code_at, {0xf3, 0x0f, 0x7e, 0xc0,        // movq xmm0, xmm0
                 0x66, 0x48, 0x0f, 0x7e, 0xc0,  // movq rax, xmm0
                 0x48, 0x8b, 0x00});            // mov rax, [rax]
  EXPECT_FALSE(next());
}

TEST_F(AccessFinderTest, ThreadLocalAccessAddsTheBase) {
  code(code_at, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0x00, 0x00, 0x00});  // mov rax, fs:0x10
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x7010U);
}

TEST_F(AccessFinderTest, RepeatedStringIsTheElementAtHand) {
  code(code_at, {0xf3, 0x48, 0xab});  // rep stosq
  registers_[Register::rdi] = 0x3000;
  registers_[Register::rcx] = 5;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x3000U);
  EXPECT_EQ(found_.width, 8);
  registers_[Register::rcx] = 0;
  EXPECT_FALSE(next());
}

TEST_F(AccessFinderTest, RetiredUndoesWhatCameAfter) {
  code(code_at - 11, {0x48, 0x89, 0x17,          // mov [rdi], rdx
                      0x48, 0x83, 0xc7, 0x08,    // add rdi, 8
                      0x48, 0x8d, 0x7f, 0x10});  // lea rdi, [rdi + 16]
  code(code_at, {0xcc});
  registers_[Register::rdi] = 0x1018;
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.instruction, code_at - 11);
  EXPECT_EQ(found_.address, 0x1000U);
  EXPECT_EQ(found_.kind, AccessKind::store);
  EXPECT_EQ(found_.from, profile::AddressFrom::retired);
}

TEST_F(AccessFinderTest, RetiredNeedsTheAddressToBeIntact) {
  code(code_at - 3, {0x48, 0x8b, 0x00});  // mov rax, [rax]
  code(code_at, {0xcc});
  registers_[Register::rax] = 0x1000;
  EXPECT_FALSE(retired());
}

TEST_F(AccessFinderTest, RetiredStopsAtACall) {
  code(code_at - 8, {0x48, 0x89, 0x17, 0xe8, 0x00, 0x01, 0x00, 0x00});  // mov [rdi], rdx; call
  code(code_at, {0xcc});
  registers_[Register::rdi] = 0x1000;
  EXPECT_FALSE(retired());
}

TEST_F(AccessFinderTest, RetiredIsBelievedOnlyWhereTheFlagsAgree) {
  code(code_at - 5, {0x48, 0x89, 0x17,  // mov [rdi], rdx
                     0x74, 0x20});      // je: not taken, if we are behind it
  code(code_at, {0xcc});
  registers_[Register::rdi] = 0x1000;
  EXPECT_TRUE(retired());
  FoundAccess found;
  EXPECT_FALSE(finder().find_retired(registers_, flags | 0x40, fs_, memory_.reader(), found));
}

TEST_F(AccessFinderTest, RetiredAtALoopsHeadIsAtItsEnd) {
  code(code_at - 3, {0x48, 0x31, 0xc0,        // xor rax, rax
                     0x48, 0xff, 0xc0,        // inc rax         <- interrupted
                     0x48, 0x89, 0x04, 0xc7,  // mov [rdi + rax * 8], rax
                     0x48, 0x39, 0xf0,        // cmp rax, rsi
                     0x75, 0xf4});            // jne to the inc
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rax] = 5;
  registers_[Register::rsi] = 4;
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.address, 0x1028U);
  registers_[Register::rax] = 0;  // the first time round
  EXPECT_FALSE(retired());
}

TEST_F(AccessFinderTest, RetiredWhereTheJumpIntoALoopIsRuledOut) {
  code(code_at - 9, {0x4d, 0x31, 0xff,        // xor r15, r15
                     0xeb, 0x04,              // jmp to the test
                     0x49, 0x8b, 0x04, 0xd4,  // mov rax, [r12 + rdx * 8]
                     0x4d, 0x85, 0xff});      // test r15, r15   <- interrupted
  registers_[Register::r12] = 0x1000;
  registers_[Register::rdx] = 3;
  registers_[Register::r15] = 5;
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.address, 0x1018U);
  registers_[Register::r15] = 0;  // either way, with the flags of a zero
  EXPECT_FALSE(finder().find_retired(registers_, flags | flag_zero | flag_parity, fs_, memory_.reader(), found_));
}

TEST_F(AccessFinderTest, WhatLiesAboveALoopsHeadSaysNothingOfLaterRounds) {
  code(code_at - 15, {0x31, 0xc9,        // xor ecx, ecx
                      0x8b, 0x04, 0x8f,  // mov eax, [rdi + rcx * 4]   <- back to here
                      0x85, 0xc0,        // test eax, eax
                      0x74, 0x06,        // je over the next two
                      0x48, 0x8b, 0x16,  // mov rdx, [rsi]
                      0x83, 0x02, 0x01,  // add dword [rdx], 1
                      0x48, 0xff, 0xc1,  // inc rcx                    <- interrupted
                      0x48, 0x39, 0xd9,  // cmp rcx, rbx
                      0x72, 0xeb});      // jb to the load
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rsi] = 0x2000;
  registers_[Register::rdx] = 0x5000;
  registers_[Register::rcx] = 7;
  registers_[Register::rbx] = 9;
  EXPECT_FALSE(finder().find_retired(registers_, flags | flag_zero | flag_parity, fs_, memory_.reader(), found_));
}

/// A loop with two ways to its head, of which a word in memory chooses one.
class LoopWithTwoWays : public AccessFinderTest {
 protected:
  static constexpr std::uint64_t word_at = 0x9000;
  void SetUp() override {
    AccessFinderTest::SetUp();
    code(code_at - 12, {0x48, 0x8b, 0x14, 0xc1,  // mov rdx, [rcx + rax * 8]
                        0x48, 0x83, 0xc2, 0x01,  // add rdx, 1
                        0x48, 0x89, 0x14, 0xc1,  // mov [rcx + rax * 8], rdx
                        0x8b, 0x17,              // mov edx, [rdi]           <- interrupted
                        0x85, 0xd2,              // test edx, edx
                        0x75, 0xee,              // jne to the first
                        0x48, 0x8b, 0x14, 0xc6,  // mov rdx, [rsi + rax * 8]
                        0x48, 0x83, 0xc2, 0x01,  // add rdx, 1
                        0x48, 0x89, 0x14, 0xc6,  // mov [rsi + rax * 8], rdx
                        0xeb, 0xec});            // jmp to the interrupted
    registers_[Register::rdi] = word_at;
    registers_[Register::rcx] = 0x1000;
    registers_[Register::rsi] = 0x2000;
    registers_[Register::rax] = 2;
    registers_[Register::rdx] = 76;  // with the flags of the addition: of odd parity
    for (std::uint64_t i = 0; i < 8; ++i) {
      memory_.put(0x1000 + 8 * i, 0);
      memory_.put(0x2000 + 8 * i, 0);
    }
  }
};

TEST_F(LoopWithTwoWays, RetiredIsOnTheWayOfTheNextRound) {
  for (const std::uint64_t chosen : {1, 0, 1}) {
    memory_.put(word_at, chosen);
    ASSERT_TRUE(find());
    EXPECT_EQ(found_.from, profile::AddressFrom::retired);
    EXPECT_EQ(found_.address, chosen != 0 ? 0x1010U : 0x2010U);
    EXPECT_EQ(found_.kind, AccessKind::store);
  }
}

TEST_F(LoopWithTwoWays, AWayThatIsNotKnownIsNotGuessed) {
  registers_[Register::rdi] = 0x123000;  // not readable
  EXPECT_FALSE(retired());
  registers_[Register::rdi] = word_at;
  memory_.put(word_at, 1);
  registers_[Register::rcx] = 0x123000;  // the loop's load cannot be followed, but it decides nothing
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.address, 0x123010U);
}

TEST_F(LoopWithTwoWays, OnlyAGuessReadsMemoryAsItIsNow) {
  memory_.put(word_at, 1);
  CodeReader reader = memory_.reader();
  reader.read_now = reader.read_data;
  reader.read_data = [](void*, std::uint64_t, void*, std::size_t) { return false; };
  ASSERT_TRUE(finder().find_retired(registers_, flags, fs_, reader, found_));
  EXPECT_EQ(found_.address, 0x1010U);
  reader.read_now = nullptr;
  EXPECT_FALSE(finder().find_retired(registers_, flags, fs_, reader, found_));
}

TEST_F(AccessFinderTest, RetiredAfterAReturnIsTheFunctionsLast) {
  constexpr std::uint64_t function_at = code_at + 0x20;
  code(code_at - 5, {0xe8, 0x20, 0x00, 0x00, 0x00,                    // call function
                     0x8b, 0x17,                                      // mov edx, [rdi]      <- interrupted
                     0xeb, 0xf7});                                    // jmp to the call
  code(function_at, {0x48, 0xc7, 0x04, 0xc1, 0x05, 0x00, 0x00, 0x00,  // mov qword [rcx + rax * 8], 5
                     0xc3});                                          // ret
  registers_[Register::rdi] = 0x9000;
  registers_[Register::rcx] = 0x1000;
  registers_[Register::rax] = 2;
  memory_.put(0x9000, 1);
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.instruction, function_at);
  EXPECT_EQ(found_.address, 0x1010U);
  // And at the function's first instruction, the load before the call.
  registers_[Register::rip] = function_at;
  registers_[Register::rsp] = stack_at - 8;
  memory_.put(stack_at - 8, code_at);
  ASSERT_TRUE(retired());
  EXPECT_EQ(found_.instruction, code_at);
  EXPECT_EQ(found_.address, 0x9000U);
}

TEST_F(AccessFinderTest, TheStacksTopIsPassedByAnyRegister) {
  code(code_at - 3, {0x48, 0x63, 0x0e});  // movsxd rcx, [rsi]
  code(code_at, {0x48, 0x8b, 0x04, 0xca,  // mov rax, [rdx + rcx * 8]   <- interrupted
                 0xcc});
  registers_[Register::rdx] = 0x1000;
  registers_[Register::rcx] = 2;
  for (const std::uint64_t offset : {0x10, 0x38, 0x10}) {
    registers_[Register::rsi] = stack_at + offset;
    ASSERT_TRUE(find());
    EXPECT_EQ(found_.address, 0x1010U);
  }
  registers_[Register::rsi] = stack_at + 0x40;  // further up it may be a variable that threads share
  ASSERT_TRUE(find());
  EXPECT_EQ(found_.address, stack_at + 0x40);
  registers_[Register::rsi] = stack_at + 0x10;
  ASSERT_TRUE(find());
  EXPECT_EQ(found_.address, 0x1010U);
}

TEST_F(AccessFinderTest, FindPrefersTheRetiredOne) {
  code(code_at - 3, {0x48, 0x89, 0x17,    // mov [rdi], rdx
                     0x48, 0x8b, 0x06});  // mov rax, [rsi]   <- interrupted
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rsi] = 0x2000;
  ASSERT_TRUE(find());
  EXPECT_EQ(found_.from, profile::AddressFrom::retired);
  EXPECT_EQ(found_.address, 0x1000U);
}

TEST_F(AccessFinderTest, FindPrefersTheNextOneToARetiredSpill) {
  code(code_at - 4, {0x48, 0x89, 0x14, 0x24,  // mov [rsp], rdx
                     0x48, 0x8b, 0x06});      // mov rax, [rsi]   <- interrupted
  registers_[Register::rsi] = 0x2000;
  ASSERT_TRUE(find());
  EXPECT_EQ(found_.from, profile::AddressFrom::next);
  code(code_at, {0xcc});
  ASSERT_TRUE(find());
  EXPECT_EQ(found_.from, profile::AddressFrom::retired);
  EXPECT_TRUE(found_.spill);
}

TEST_F(AccessFinderTest, RewrittenCodeIsNoticed) {
  registers_[Register::rdi] = 0x1000;
  registers_[Register::rsi] = 0x2000;
  code(code_at, {0x48, 0x8b, 0x07});  // mov rax, [rdi]
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x1000U);
  code(code_at, {0x48, 0x8b, 0x06});  // mov rax, [rsi]
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x2000U);
}

TEST_F(AccessFinderTest, CodeAtTheEndOfWhatIsMapped) {
  constexpr std::uint64_t edge = 0x501000;
  code(edge - 3, {0x48, 0x8b, 0x07});
  registers_[Register::rip] = edge - 3;
  registers_[Register::rdi] = 0x1000;
  ASSERT_TRUE(next());
  EXPECT_EQ(found_.address, 0x1000U);
  code(edge - 2, {0x48, 0x8b});  // cut short
  registers_[Register::rip] = edge - 2;
  EXPECT_FALSE(find());
  registers_[Register::rip] = edge;  // not mapped
  EXPECT_FALSE(find());
}

TEST_F(AccessFinderTest, HostileRegistersGiveNothing) {
  for (const std::uint64_t rip : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0xfffffffffffff000}}) {
    registers_[Register::rip] = rip;
    EXPECT_FALSE(find());
  }
}

}  // namespace

}  // namespace crosstalk::in_target::access_finder_test
