// SPDX-License-Identifier: Apache-2.0
// A cached entry must give the same answer as without it: tested at every instruction of real functions, as they enter
// and leave their loops, and on rewritten code. The answer is exact if only the code decides; if execution may also
// come by a jump from afar, an audit finds wrong answers.
#include "collectors/access/inline_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/in_target/access_fixtures.h"
#include "tests/in_target/access_trace.h"

namespace crosstalk::test::inline_cache_test {

namespace {

using in_target::AccessFinder;
using in_target::CodeReader;
using in_target::FoundAccess;
using in_target::Guard;
using in_target::RegisterForm;
using in_target::Route;
using in_target::Turn;

// In static storage, which is zero.
AccessFinder learning;
AccessFinder plain;
AccessFinder rewritten;

/// Returns the result of find() without a cache.
std::optional<FoundAccess> without_cached(const TraceStep& step, const CodeReader& reader) {
  FoundAccess last;
  const bool has_last = plain.find_retired(step.registers, step.flags, step.fs_base, reader, last);
  if (has_last && !last.spill) {
    return last;
  }
  FoundAccess next;
  if (plain.find_next(step.registers, step.flags, step.fs_base, reader, next)) {
    return next;
  }
  return has_last ? std::optional(last) : std::nullopt;
}

bool same(const std::optional<FoundAccess>& a, const std::optional<FoundAccess>& b) {
  if (!a || !b) {
    return a.has_value() == b.has_value();
  }
  return a->instruction == b->instruction && a->address == b->address && a->width == b->width && a->kind == b->kind &&
         a->from == b->from && a->spill == b->spill;
}

struct Place {
  std::size_t asked = 0, different = 0;
};

struct Tally {
  std::size_t asked = 0, by_cached = 0;
  std::map<std::uint64_t, Place> places;  // by instruction

  [[nodiscard]] std::size_t different_places() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(places, [](const auto& place) { return place.second.different != 0; }));
  }
  /// Most wrong answers at one place.
  [[nodiscard]] std::size_t most_different() const {
    std::size_t most = 0;
    for (const auto& [instruction, place] : places) {
      most = std::max(most, place.different);
    }
    return most;
  }
};

Tally ask(const Fixture* fixtures, int count) {
  Tally tally;
  for (int i = 0; i < count; ++i) {
    pid_t child = 0;
    const CodeReader reader = process_reader(&child);
    trace(fixtures[i].run, 15000, [&](const TraceStep& step, pid_t pid) {
      child = pid;
      std::optional<FoundAccess> found = FoundAccess{};
      if (!learning.find(step.registers, step.flags, step.fs_base, reader, *found)) {
        found.reset();
      }
      const std::optional<FoundAccess> want = without_cached(step, reader);
      ++tally.asked;
      tally.by_cached += found && found->cached ? 1 : 0;
      Place& place = tally.places[step.registers[Register::rip]];
      ++place.asked;
      place.different += same(found, want) ? 0 : 1;
    });
  }
  std::printf("asked %zu, answered by the cache %.1f %%, differently at %zu of %zu instructions, up to %zu times\n",
              tally.asked, 100.0 * static_cast<double>(tally.by_cached) / static_cast<double>(tally.asked),
              tally.different_places(), tally.places.size(), tally.most_different());
  return tally;
}

/// Jumps from afar lead to few instructions only. Chance, one in 16, decides when a wrong answer is found, so the total
/// of wrong answers varies much: of 100,000 places, one or two have 180 in a row.
void expect_as_without(const Tally& tally) {
  EXPECT_LT(tally.different_places(), tally.places.size() / 200);
  EXPECT_LT(tally.most_different(), 180U);
}

TEST(InlineCacheEntry, OptimizedFunctionsAreAnsweredAsWithoutTheCache) {
  const Tally tally = ask(optimized::fixtures, optimized::fixture_count);
  expect_as_without(tally);
  EXPECT_GT(tally.by_cached, tally.asked * 9 / 20);  // where several paths lead to, memory decides each time
}

TEST(InlineCacheEntry, UnoptimizedFunctionsAreAnsweredAsWithoutTheCache) {
  const Tally tally = ask(unoptimized::fixtures, unoptimized::fixture_count);
  expect_as_without(tally);
  EXPECT_GT(tally.by_cached, tally.asked / 5);
}

/// Reads code that lies in this process.
bool read_here(void* /*context*/, std::uint64_t address, void* out, std::size_t bytes) {
  std::memcpy(out, reinterpret_cast<const void*>(address), bytes);  // NOLINT: an address of our own
  return true;
}
bool read_nothing(void* /*context*/, std::uint64_t /*address*/, void* /*out*/, std::size_t /*bytes*/) { return false; }

struct Page {
  alignas(4096) std::uint8_t code[4096];
};

TEST(InlineCacheEntry, CodeThatWasWrittenOverIsDecodedAgain) {
  const auto page = std::make_unique<Page>();
  std::memset(page->code, 0x90, sizeof page->code);
  const std::uint8_t load_rsi[] = {0x48, 0x8b, 0x46, 0x10};  // mov 0x10(%rsi), %rax
  std::memcpy(page->code + 256, load_rsi, sizeof load_rsi);
  const CodeReader reader{nullptr, read_here, read_nothing};
  Registers registers;
  registers[Register::rip] = reinterpret_cast<std::uint64_t>(page->code + 256);  // NOLINT
  registers[Register::rsi] = 0x1000;
  registers[Register::rdi] = 0x2000;
  FoundAccess found;
  ASSERT_TRUE(rewritten.find(registers, 0, 0, reader, found));
  EXPECT_FALSE(found.cached);
  registers[Register::rsi] = 0x3000;
  ASSERT_TRUE(rewritten.find(registers, 0, 0, reader, found));
  EXPECT_TRUE(found.cached);
  EXPECT_EQ(found.address, 0x3010U);
  page->code[258] = 0x47;  // mov 0x10(%rdi), %rax
  ASSERT_TRUE(rewritten.find(registers, 0, 0, reader, found));
  EXPECT_FALSE(found.cached);
  EXPECT_EQ(found.address, 0x2010U);
}

constexpr std::uint8_t rax = 0;
constexpr std::uint8_t rdx = 1;

TEST(InlineCacheEntry, TwoGuardsAreOneTooMany) {
  Route route(4096);
  EXPECT_TRUE(route.fixed());
  const Guard first{{rax, 0}, {RegisterForm::constant, 5}};
  route.depends_on(first);
  route.depends_on(first);
  EXPECT_TRUE(route.fixed());
  route.depends_on(Guard{{rdx, 0}, {RegisterForm::constant, 5}});
  EXPECT_FALSE(route.fixed());
}

TEST(InlineCacheEntry, AGuardHoldsWhereItsTermsDiffer) {
  Registers registers;
  registers[Register::rax] = 12;
  registers[Register::rdx] = 7;
  EXPECT_FALSE((Guard{{rax, 0}, {rdx, 5}}.holds(registers)));
  EXPECT_TRUE((Guard{{rax, 0}, {rdx, 6}}.holds(registers)));
  EXPECT_TRUE(Guard{}.holds(registers));
}

TEST(InlineCacheEntry, ATurnGoesByTheFlagsOfItsTerms) {
  constexpr std::uint8_t below = 2;
  constexpr std::uint8_t equal = 4;
  constexpr std::uint8_t less = 12;
  Registers registers;
  registers[Register::rax] = ~std::uint64_t{0};
  registers[Register::rdx] = 7;
  const auto turn = [&](Turn::Of of, std::uint8_t size, std::uint8_t condition) {
    return Turn{of, size, condition, true, {rax, 0}, {rdx, 0}}.holds(registers);
  };
  EXPECT_TRUE(turn(Turn::Of::difference, 8, less));    // -1 < 7
  EXPECT_FALSE(turn(Turn::Of::difference, 8, below));  // 2^64 - 1 is not
  EXPECT_FALSE(turn(Turn::Of::conjunction, 8, equal));
  registers[Register::rdx] = std::uint64_t{1} << 32U;
  EXPECT_TRUE(turn(Turn::Of::conjunction, 4, equal));  // of the lower half
  EXPECT_FALSE(turn(Turn::Of::conjunction, 8, equal));
  registers[Register::rax] = 0x80;
  registers[Register::rdx] = 1;
  EXPECT_TRUE(turn(Turn::Of::difference, 1, less));  // -128 - 1 overflows
  EXPECT_FALSE(turn(Turn::Of::difference, 2, less));
}

}  // namespace

}  // namespace crosstalk::test::inline_cache_test
