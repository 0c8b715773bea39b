// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/stored_back.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "symbolizer/loops/waiting.h"

namespace crosstalk::symbolizer::stored_back_test {
namespace {

using Code = std::vector<std::uint8_t>;

TEST(StoredBack, ACounterThatIsLoadedAddedToAndStored) {
  // mov (%rax),%rdx; add $1,%rdx; mov %rdx,(%rax)
  EXPECT_TRUE(is_stored_back(Code{0x48, 0x8b, 0x10, 0x48, 0x83, 0xc2, 0x01, 0x48, 0x89, 0x10}));
  // mov 0x10(%rip),%eax; inc %eax; mov %eax,0x8(%rip): the same place, though the displacements differ
  EXPECT_TRUE(is_stored_back(Code{0x8b, 0x05, 0x10, 0, 0, 0, 0xff, 0xc0, 0x89, 0x05, 0x08, 0, 0, 0}));
  EXPECT_TRUE(is_stored_back(Code{0xff, 0x00})) << "inc (%rax)";
  EXPECT_TRUE(is_stored_back(Code{0xf0, 0x48, 0xff, 0x00})) << "lock inc (%rax)";
}

TEST(StoredBack, NotToAnotherPlace) {
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b, 0x10, 0x48, 0x89, 0x50, 0x08})) << "mov %rdx,8(%rax)";
  EXPECT_FALSE(is_stored_back(Code{0x8b, 0x05, 0x10, 0, 0, 0, 0x89, 0x05, 0x10, 0, 0, 0}));
  // mov (%rax),%rdx; add $8,%rax; mov %rdx,(%rax)
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b, 0x10, 0x48, 0x83, 0xc0, 0x08, 0x48, 0x89, 0x10}));
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b, 0x10, 0xc3, 0x48, 0x89, 0x10})) << "the function returns";
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b, 0x00, 0x48, 0x89, 0x10})) << "the load itself changes the base";
}

TEST(StoredBack, HostileBytes) {
  EXPECT_FALSE(is_stored_back({}));
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b}));
  EXPECT_FALSE(is_stored_back(Code{0x90, 0x48, 0x89, 0x10})) << "nop";
  EXPECT_FALSE(is_stored_back(Code{0x48, 0x8b, 0x10, 0x06})) << "no instruction";
}

TEST(LoadedRegister, HoldsWhatWasLoadedLastWhereNothingElseWritesIt) {
  const Code load{0x8b, 0x03};     // mov (%rbx),%eax
  const Code compare{0x39, 0xc5};  // cmp %eax,%ebp
  const Code pause{0xf3, 0x90};
  const Code jump{0x75, 0xf6};
  const std::vector<std::span<const std::uint8_t>> way{load, compare, pause, jump};
  const auto loaded = loaded_register(way, 0);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->reg, Register::rax);
  EXPECT_EQ(loaded->bytes, 4);
  EXPECT_FALSE(loaded_register(way, 1)) << "no load";
  EXPECT_FALSE(loaded_register(way, 9));
  const Code adds{0x83, 0xc0, 0x01};  // add $1,%eax
  const std::vector<std::span<const std::uint8_t>> changed{load, adds, jump};
  EXPECT_FALSE(loaded_register(changed, 0));
  const Code compares_memory{0x3b, 0x03};  // cmp (%rbx),%eax
  const std::vector<std::span<const std::uint8_t>> unknown{compares_memory, jump};
  EXPECT_FALSE(loaded_register(unknown, 0));
  const Code extends{0x0f, 0xb6, 0x03};  // movzbl (%rbx),%eax
  const std::vector<std::span<const std::uint8_t>> byte{extends, jump};
  ASSERT_TRUE(loaded_register(byte, 0));
  EXPECT_EQ(loaded_register(byte, 0)->bytes, 1);
}

}  // namespace
}  // namespace crosstalk::symbolizer::stored_back_test
