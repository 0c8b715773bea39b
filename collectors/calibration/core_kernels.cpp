// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/core_kernels.h"

#include <algorithm>
#include <array>

namespace crosstalk::collectors::calibration {
namespace {

using models::Chain;
using models::Instruction;

// NOLINTBEGIN(bugprone-macro-parentheses): pieces of strings
#define CROSSTALK_SIXTEEN(TEXT) TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT
#define CROSSTALK_LOOP(BODY) ".p2align 5\n1:\n" BODY "dec %[rounds]\njnz 1b\n"
// NOLINTEND(bugprone-macro-parentheses)

// Two registers: newer processors execute chains of `add $1, %reg` when they rename registers, in no time.
std::uint64_t add_chain(std::uint64_t rounds) {
  std::uint64_t value = 0;
  const std::uint64_t one = 1;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("add %[one], %[value]\n"))
               : [rounds] "+r"(rounds), [value] "+r"(value)
               : [one] "r"(one)
               : "cc");
  return value;
}

std::uint64_t load_chain(std::uint64_t rounds) {
  alignas(64) void* self = nullptr;
  void* place = &self;
  self = place;
  const std::uint64_t wanted = rounds;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("mov (%[place]), %[place]\n"))
               : [rounds] "+r"(rounds), [place] "+r"(place)
               :
               : "cc", "memory");
  return place == &self ? (wanted - rounds) * unrolled : 0;
}

// The word is addressed by a register, as a program's counters are: some processors recognise words of the stack by
// their addresses and forward them faster.
std::uint64_t load_add_store_chain(std::uint64_t rounds) {
  alignas(64) std::uint64_t word = 0;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("incq (%[word])\n"))
               : [rounds] "+r"(rounds)
               : [word] "r"(&word)
               : "cc", "memory");
  return word;
}

std::uint64_t locked_add_chain(std::uint64_t rounds) {
  alignas(64) std::uint64_t word = 0;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("lock incq (%[word])\n"))
               : [rounds] "+r"(rounds)
               : [word] "r"(&word)
               : "cc", "memory");
  return word;
}

// Register and word change places and are counted up in turns, so together they are the number of links.
std::uint64_t locked_exchange_chain(std::uint64_t rounds) {
  alignas(64) std::uint64_t word = 0;
  std::uint64_t value = 0;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("inc %[value]\nxchg %[value], (%[word])\n"))
               : [rounds] "+r"(rounds), [value] "+r"(value)
               : [word] "r"(&word)
               : "cc", "memory");
  return word + value;
}

std::uint64_t locked_compare_chain(std::uint64_t rounds) {
  alignas(64) std::uint64_t word = 0;
  std::uint64_t wanted = 0;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN(
      "mov (%[word]), %%rax\nlea 1(%%rax), %[wanted]\nlock cmpxchg %[wanted], (%[word])\n"))
               : [rounds] "+r"(rounds), [wanted] "+r"(wanted)
               : [word] "r"(&word)
               : "cc", "memory", "rax");
  return word;
}

constexpr std::array<ChainKernel, 6> chains = {{
    {Chain::add, add_chain},
    {Chain::load, load_chain},
    {Chain::load_add_store, load_add_store_chain},
    {Chain::locked_add, locked_add_chain},
    {Chain::locked_exchange, locked_exchange_chain},
    {Chain::locked_compare, locked_compare_chain},
}};

std::uint64_t integer_adds(std::uint64_t rounds) {
  std::array<std::uint64_t, 8> v{};
  const std::uint64_t one = 1;
  asm volatile(CROSSTALK_LOOP("add %[one], %[a]\nadd %[one], %[b]\nadd %[one], %[c]\nadd %[one], %[d]\n"
                              "add %[one], %[e]\nadd %[one], %[f]\nadd %[one], %[g]\nadd %[one], %[h]\n"
                              "add %[one], %[a]\nadd %[one], %[b]\nadd %[one], %[c]\nadd %[one], %[d]\n"
                              "add %[one], %[e]\nadd %[one], %[f]\nadd %[one], %[g]\nadd %[one], %[h]\n")
               : [rounds] "+r"(rounds), [a] "+r"(v[0]), [b] "+r"(v[1]), [c] "+r"(v[2]), [d] "+r"(v[3]), [e] "+r"(v[4]),
                 [f] "+r"(v[5]), [g] "+r"(v[6]), [h] "+r"(v[7])
               : [one] "r"(one)
               : "cc");
  return v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
}

std::uint64_t integer_multiplies(std::uint64_t rounds) {
  std::array<std::uint64_t, multiplying_registers> v{};
  v.fill(1);
  const std::uint64_t three = 3;
  asm volatile(CROSSTALK_LOOP("imul %[three], %[a]\nimul %[three], %[b]\nimul %[three], %[c]\nimul %[three], %[d]\n"
                              "imul %[three], %[e]\nimul %[three], %[f]\nimul %[three], %[g]\nimul %[three], %[h]\n"
                              "imul %[three], %[a]\nimul %[three], %[b]\nimul %[three], %[c]\nimul %[three], %[d]\n"
                              "imul %[three], %[e]\nimul %[three], %[f]\nimul %[three], %[g]\nimul %[three], %[h]\n")
               : [rounds] "+r"(rounds), [a] "+r"(v[0]), [b] "+r"(v[1]), [c] "+r"(v[2]), [d] "+r"(v[3]), [e] "+r"(v[4]),
                 [f] "+r"(v[5]), [g] "+r"(v[6]), [h] "+r"(v[7])
               : [three] "r"(three)
               : "cc");
  for (const std::uint64_t each : v) {
    if (each != v[0]) {
      return 0;
    }
  }
  return v[0];
}

// Every branch has an addition that is only executed when it went the right way. The additions take four registers in
// turn, so that they can keep up.
// NOLINTNEXTLINE(bugprone-macro-parentheses): pieces of strings
#define CROSSTALK_FOUR_TIMES(BEFORE, AFTER)                                                                    \
  BEFORE "add %[one], %[a]\n" AFTER BEFORE "add %[one], %[b]\n" AFTER BEFORE "add %[one], %[c]\n" AFTER BEFORE \
         "add %[one], %[d]\n" AFTER

std::uint64_t branches_not_taken(std::uint64_t rounds) {
  std::array<std::uint64_t, 4> count{};
  const std::uint64_t one = 1;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_FOUR_TIMES("test %[one], %[one]\njz 2f\n", "")   //
                              CROSSTALK_FOUR_TIMES("test %[one], %[one]\njz 2f\n", "")   //
                              CROSSTALK_FOUR_TIMES("test %[one], %[one]\njz 2f\n", "")   //
                              CROSSTALK_FOUR_TIMES("test %[one], %[one]\njz 2f\n", ""))  //
               "2:\n"
               : [rounds] "+r"(rounds), [a] "+r"(count[0]), [b] "+r"(count[1]), [c] "+r"(count[2]), [d] "+r"(count[3])
               : [one] "r"(one)
               : "cc");
  return count[0] + count[1] + count[2] + count[3];
}

// Spread out, since a processor remembers the targets of only a few branches in a piece of code. Code under a jump
// would spoil the count.
std::uint64_t branches_taken(std::uint64_t rounds) {
  std::array<std::uint64_t, 4> count{};
  const std::uint64_t one = 1;
  asm volatile(CROSSTALK_LOOP(CROSSTALK_FOUR_TIMES("", "jmp 2f\nxor %[a], %[a]\n.p2align 5\n2:\n")   //
                              CROSSTALK_FOUR_TIMES("", "jmp 2f\nxor %[b], %[b]\n.p2align 5\n2:\n")   //
                              CROSSTALK_FOUR_TIMES("", "jmp 2f\nxor %[c], %[c]\n.p2align 5\n2:\n")   //
                              CROSSTALK_FOUR_TIMES("", "jmp 2f\nxor %[d], %[d]\n.p2align 5\n2:\n"))  //
               : [rounds] "+r"(rounds), [a] "+r"(count[0]), [b] "+r"(count[1]), [c] "+r"(count[2]), [d] "+r"(count[3])
               : [one] "r"(one)
               : "cc");
  return count[0] + count[1] + count[2] + count[3];
}

constexpr std::array<InstructionKernel, 4> instructions = {{
    {Instruction::integer_add, integer_adds},
    {Instruction::integer_multiply, integer_multiplies},
    {Instruction::branch_not_taken, branches_not_taken},
    {Instruction::branch_taken, branches_taken},
}};

}  // namespace

std::span<const ChainKernel> chain_kernels() { return chains; }

const ChainKernel& chain_of(Chain chain) {
  return *std::find_if(chains.begin(), chains.end(), [&](const ChainKernel& kernel) { return kernel.chain == chain; });
}

std::span<const InstructionKernel> instruction_kernels() { return instructions; }

void* follow(void* first, std::uint64_t rounds) {
  asm volatile(CROSSTALK_LOOP(CROSSTALK_SIXTEEN("mov (%[place]), %[place]\n"))
               : [rounds] "+r"(rounds), [place] "+r"(first)
               :
               : "cc", "memory");
  return first;
}

std::uint64_t count_by_branches(std::span<const unsigned char> bytes) {
  std::uint64_t count = 0;
  if (bytes.empty()) {
    return count;
  }
  const unsigned char* place = bytes.data();
  const unsigned char* const end = place + bytes.size();
  asm volatile(
      ".p2align 5\n1:\ncmpb $0, (%[place])\nje 2f\ninc %[count]\n2:\ninc %[place]\ncmp %[end], %[place]\njne 1b\n"
      : [place] "+r"(place), [count] "+r"(count)
      : [end] "r"(end)
      : "cc", "memory");
  return count;
}

}  // namespace crosstalk::collectors::calibration
