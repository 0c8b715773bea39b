// SPDX-License-Identifier: Apache-2.0
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "collectors/access/code.h"
#include "collectors/access/instruction_decoder.h"
#include "collectors/access/predecessors.h"

namespace crosstalk::in_target::access_code_test {

namespace {

TEST(Outline, LengthsAreThoseOfADecoder) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  std::mt19937 random(7);
  std::size_t compared = 0;
  std::size_t missed = 0;
  for (int i = 0; i < 400000; ++i) {
    std::array<std::uint8_t, 16> code{};
    for (auto& byte : code) {
      byte = static_cast<std::uint8_t>(random());
    }
    static constexpr std::uint8_t starts[] = {0x0f, 0x48, 0x66, 0xc5, 0xc4, 0x62, 0xf2, 0xf3};
    if (i % 2 == 0) {
      code[0] = starts[random() % sizeof(starts)];
    }
    ZydisDecodedInstruction instruction;
    const bool valid = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data(), 15, &instruction));
    if (valid && std::strncmp(ZydisMnemonicGetString(instruction.mnemonic), "jk", 2) == 0) {
      continue;  // Knights Corner's
    }
    const Outline outline = outline_instruction(code.data(), 15);
    if (valid && outline.length != 0) {
      ++compared;
      ASSERT_EQ(outline.length, instruction.length)
          << std::hex << unsigned{code[0]} << ' ' << unsigned{code[1]} << ' ' << unsigned{code[2]} << ' '
          << unsigned{code[3]} << ' ' << ZydisMnemonicGetString(instruction.mnemonic);
    }
    missed += valid && outline.length == 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 150000U);
  EXPECT_LT(missed, compared / 2);
}

TEST(Outline, CutShortIsNone) {
  const std::uint8_t code[] = {0x48, 0x81, 0x84, 0xc8, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  for (std::size_t bytes = 0; bytes < sizeof(code); ++bytes) {
    EXPECT_EQ(outline_instruction(code, bytes).length, 0) << bytes;
  }
  EXPECT_EQ(outline_instruction(code, sizeof(code)).length, sizeof(code));
}

TEST(Outline, JumpsSayWhereTo) {
  const std::uint8_t back[] = {0x75, 0xf0};
  EXPECT_TRUE(outline_instruction(back, 2).branches);
  EXPECT_EQ(outline_instruction(back, 2).offset, -16);
  const std::uint8_t far[] = {0xe9, 0x00, 0x01, 0x00, 0x00};
  EXPECT_EQ(outline_instruction(far, 5).offset, 256);
}

TEST(DecodedInstruction, ExplicitAccesses) {
  struct Case {
    std::vector<std::uint8_t> code;
    AccessKind kind;
    std::uint8_t width;
  };
  const Case cases[] = {
      {{0x48, 0x8b, 0x07}, AccessKind::load, 8},                      // mov rax, [rdi]
      {{0x88, 0x07}, AccessKind::store, 1},                           // mov [rdi], al
      {{0xf0, 0x0f, 0xb1, 0x0f}, AccessKind::load_store, 4},          // lock cmpxchg [rdi], ecx
      {{0x48, 0x8d, 0x07}, AccessKind::none, 0},                      // lea rax, [rdi]
      {{0x0f, 0x1f, 0x40, 0x00}, AccessKind::none, 0},                // nop [rax]
      {{0x0f, 0x18, 0x0f}, AccessKind::none, 0},                      // prefetcht0 [rdi]
      {{0x0f, 0x18, 0x07}, AccessKind::none, 0},                      // prefetchnta [rdi]
      {{0x0f, 0x0d, 0x0f}, AccessKind::none, 0},                      // prefetchw [rdi]
      {{0x0f, 0xae, 0x3f}, AccessKind::none, 0},                      // clflush [rdi]
      {{0xc5, 0xfe, 0x6f, 0x07}, AccessKind::load, 32},               // vmovdqu ymm0, [rdi]
      {{0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x07}, AccessKind::store, 64},  // vmovdqu64 [rdi], zmm0
      {{0x0f, 0xae, 0x07}, AccessKind::store, 0},                     // fxsave [rdi]
      {{0xf3, 0xa4}, AccessKind::store, 1},                           // rep movsb
      {{0x50}, AccessKind::none, 0},                                  // push rax
      {{0xff, 0x30}, AccessKind::load, 8},                            // push [rax]
      {{0x48, 0x39, 0x07}, AccessKind::load, 8},                      // cmp [rdi], rax
  };
  for (const Case& c : cases) {
    DecodedInstruction instruction;
    ASSERT_TRUE(decode_instruction(c.code.data(), c.code.size(), instruction));
    EXPECT_EQ(instruction.length, c.code.size());
    EXPECT_EQ(instruction.has(trait_explicit_access), c.kind != AccessKind::none) << int{c.code[0]};
    EXPECT_EQ(instruction.kind(), c.kind) << int{c.code[0]};
    EXPECT_EQ(instruction.width, c.width) << int{c.code[0]};
  }
}

TEST(DecodedInstruction, WhatCanNotBeFollowedStops) {
  const std::vector<std::uint8_t> cases[] = {
      {0x0f, 0x05},        // syscall
      {0xcc},              // int3
      {0xf4},              // hlt
      {0x0f, 0xab, 0x07},  // bts [rdi], eax
      {0x8f, 0x04, 0x24},  // pop [rsp]
      {0x8e, 0xd8},        // mov ds, eax
      {0xd7},              // xlat
      {0xe2, 0x10},        // loop
  };
  for (const auto& code : cases) {
    DecodedInstruction instruction;
    ASSERT_TRUE(decode_instruction(code.data(), code.size(), instruction));
    EXPECT_EQ(instruction.operation, Operation::stop) << int{code[0]};
    EXPECT_FALSE(instruction.has(trait_explicit_access));
  }
}

TEST(DecodedInstruction, GatherHasNoAddress) {
  const std::uint8_t gather[] = {0xc4, 0xe2, 0x75, 0x90, 0x04, 0x97};  // vpgatherdd ymm0, [rdi+ymm2*4], ymm1
  DecodedInstruction instruction;
  ASSERT_TRUE(decode_instruction(gather, sizeof(gather), instruction));
  EXPECT_TRUE(instruction.has(trait_explicit_access));
  EXPECT_TRUE(instruction.has(trait_address_unknown));
}

TEST(AccessCache, WritersAtOnceNeverMixEntries) {
  static AccessCache cache;
  // Two addresses of the same slot, each with payloads that name it.
  constexpr std::uint64_t first = 0x1000;
  std::uint64_t second = first + 1;
  const auto slot_is_shared = [&](std::uint64_t candidate) {
    cache.put(first, 1, 11, {{1, 1, 1}});
    cache.put(candidate, 1, 22, {{2, 2, 2}});
    return cache.at(first, 1).holds(22);
  };
  while (!slot_is_shared(second)) {
    ++second;
  }
  static std::atomic<bool> stop{false};
  const auto write = [](std::uint64_t address, std::uint64_t key) {
    for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      cache.put(address, 1, key, {{key, i, key + i}});
    }
  };
  std::thread a(write, first, 11);
  std::thread b(write, second, 22);
  std::size_t seen = 0;
  for (int i = 0; i < 2000000 || seen == 0; ++i) {
    for (const std::uint64_t key : {std::uint64_t{11}, std::uint64_t{22}}) {
      const AccessCache::Candidate found = cache.at(first, 1);
      if (found.holds(key) && found.payload.word[0] != 1 && found.payload.word[0] != 2) {
        ++seen;
        EXPECT_EQ(found.payload.word[0], key);
        EXPECT_EQ(found.payload.word[2], key + found.payload.word[1]);
      }
    }
  }
  stop = true;
  a.join();
  b.join();
  EXPECT_GT(seen, 0U);
}

// Register moves whose codes differ in the same bits as their addresses.
TEST(AccessCache, OtherCodeAtAnotherAddressIsNotTakenForIt) {
  static constexpr std::uint8_t between_registers = 0xc0;
  const CodeReader reader{nullptr,
                          [](void*, std::uint64_t address, void* out, std::size_t bytes) {
                            const auto operands = static_cast<std::uint8_t>(between_registers | (address >> 16U & 63U));
                            const std::array<std::uint8_t, 4> move = {0x48, 0x89, operands, 0x90};
                            for (std::size_t i = 0; i < bytes; ++i) {
                              static_cast<std::uint8_t*>(out)[i] = move[(address + i) % move.size()];
                            }
                            return true;
                          },
                          nullptr};
  const auto cache = std::make_unique<AccessCache>();
  constexpr std::uint64_t begin = 0x557fd4000000;
  for (std::uint64_t offset = 0; offset < 0x10000; offset += 64) {
    for (std::uint64_t operands = 0; operands < 64; ++operands) {  // some share a place in the cache
      const std::uint64_t at = begin + (operands << 16U) + offset;
      CodeWindow window(reader, *cache);
      DecodedInstruction instruction;
      ASSERT_TRUE(window.decode(at, instruction));
      DecodedInstruction fresh;
      const std::array<std::uint8_t, 15> code = {0x48, 0x89, static_cast<std::uint8_t>(between_registers | operands)};
      ASSERT_TRUE(decode_instruction(code.data(), code.size(), fresh));
      ASSERT_EQ(instruction.source, fresh.source) << std::hex << at;
      ASSERT_EQ(instruction.destination, fresh.destination) << std::hex << at;
    }
  }
}

}  // namespace

}  // namespace crosstalk::in_target::access_code_test
