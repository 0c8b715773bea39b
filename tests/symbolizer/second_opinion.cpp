// SPDX-License-Identifier: Apache-2.0
// Our unwinder against libunwind, from the same registers and stack: through the C library's qsort(), the standard
// library's sort and plain recursion.
#define UNW_LOCAL_ONLY
#include <gtest/gtest.h>
#include <libunwind.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "fixture.h"

namespace crosstalk::symbolizer::second_opinion_test {
namespace {

struct Opinions {
  std::vector<std::uint64_t> theirs, ours;
};
Opinions opinions;

std::vector<Mapping> mappings_of_this_process(Symbolizer& symbols) {
  struct Visit {
    Symbolizer& symbols;
    std::vector<Mapping> mappings;
  } visit{symbols, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& self = *static_cast<Visit*>(data);
        std::string path = info->dlpi_name;
        path = path.empty() ? std::filesystem::read_symlink("/proc/self/exe").string() : path;
        const ModuleId id = self.symbols.add_module({path, "", false});
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type == PT_LOAD) {
            const std::uint64_t begin = info->dlpi_addr + header.p_vaddr;
            self.mappings.push_back({begin, begin + header.p_memsz, info->dlpi_addr, id});
          }
        }
        return 0;
      },
      &visit);
  return visit.mappings;
}

__attribute__((noinline)) void ask_both() {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  // The common start: libunwind's first frame.
  constexpr std::array<std::pair<Register, unw_regnum_t>, 9> kept = {{{Register::rip, UNW_X86_64_RIP},
                                                                      {Register::rsp, UNW_X86_64_RSP},
                                                                      {Register::rbp, UNW_X86_64_RBP},
                                                                      {Register::rbx, UNW_X86_64_RBX},
                                                                      {Register::r12, UNW_X86_64_R12},
                                                                      {Register::r13, UNW_X86_64_R13},
                                                                      {Register::r14, UNW_X86_64_R14},
                                                                      {Register::r15, UNW_X86_64_R15},
                                                                      {Register::rdi, UNW_X86_64_RDI}}};
  Registers registers;
  for (const auto& [ours, theirs] : kept) {
    unw_word_t value = 0;
    unw_get_reg(&cursor, theirs, &value);
    registers[ours] = value;
  }
  opinions = {};
  do {
    unw_word_t ip = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (ip != 0) {
      opinions.theirs.push_back(ip);
    }
  } while (unw_step(&cursor) > 0);

  constexpr std::size_t slice = 6000;  // within main()'s callers: the environment lies above them
  std::vector<std::uint8_t> stack(slice);
  std::memcpy(stack.data(), reinterpret_cast<const void*>(registers[Register::rsp]), slice);  // NOLINT: an address
  Symbolizer symbols(offline());
  opinions.ours = symbols.unwind(registers, stack, mappings_of_this_process(symbols));
}

int compare_and_ask(const void* a, const void* b) {
  if (opinions.theirs.empty()) {
    ask_both();
  }
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

__attribute__((noinline)) int recurse(int depth) {
  if (depth == 0) {
    ask_both();
    return 0;
  }
  return recurse(depth - 1) + 1;
}

/// Ours may end earlier, where the slice of the stack does.
void expect_agreement(std::size_t least_frames) {
  ASSERT_GE(opinions.ours.size(), least_frames);
  ASSERT_LE(opinions.ours.size(), opinions.theirs.size() + 1);
  const std::size_t common = std::min(opinions.ours.size(), opinions.theirs.size());
  for (std::size_t i = 0; i < common; ++i) {
    EXPECT_EQ(opinions.ours[i], opinions.theirs[i]) << "frame " << i;
  }
}

TEST(SecondOpinion, ThroughTheCLibrary) {
  opinions = {};
  std::array<int, 8> values = {5, 3, 8, 1, 9, 2, 7, 4};
  std::qsort(values.data(), values.size(), sizeof(int), compare_and_ask);
  expect_agreement(4);
}

TEST(SecondOpinion, ThroughRecursion) {
  EXPECT_EQ(recurse(12), 12);
  expect_agreement(12);
}

TEST(SecondOpinion, ThroughTheStandardLibrary) {
  opinions = {};
  std::vector<int> values = {5, 3, 8, 1, 9, 2, 7, 4};
  std::stable_sort(values.begin(), values.end(), [](int a, int b) { return compare_and_ask(&a, &b) < 0; });
  expect_agreement(4);
}

}  // namespace
}  // namespace crosstalk::symbolizer::second_opinion_test
