// SPDX-License-Identifier: Apache-2.0
// Compares the finder with the truth at every instruction of real functions: the thread's last access, and its next
// one.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "collectors/access/finder.h"
#include "tests/in_target/access_fixtures.h"
#include "tests/in_target/access_trace.h"

namespace crosstalk::test::access_finder_trace_test {

namespace {

using in_target::AccessFinder;
using in_target::FoundAccess;

AccessFinder finder;

struct Record {
  TraceStep step;
  std::optional<FoundAccess> retired, next;
};

struct Score {
  std::size_t asked = 0, answerable = 0, right = 0, wrong = 0;
  void count(const Score& s) {
    asked += s.asked;
    answerable += s.answerable;
    right += s.right;
    wrong += s.wrong;
  }
  [[nodiscard]] double wrong_share() const {
    return right + wrong == 0 ? 0 : static_cast<double>(wrong) / static_cast<double>(right + wrong);
  }
};

constexpr std::size_t horizon = 64;

std::vector<Record> record(const Fixture& fixture, std::size_t limit) {
  std::vector<Record> records;
  pid_t child = 0;
  const in_target::CodeReader reader = process_reader(&child);
  trace(fixture.run, limit, [&](const TraceStep& step, pid_t pid) {
    child = pid;
    Record r{step, {}, {}};
    FoundAccess found;
    if (finder.find_retired(step.registers, step.flags, step.fs_base, reader, found)) {
      r.retired = found;
    }
    if (finder.find_next(step.registers, step.flags, step.fs_base, reader, found)) {
      r.next = found;
    }
    records.push_back(r);
  });
  return records;
}

bool same(const FoundAccess& found, const TrueAccess& truth) {
  return truth.known && found.instruction == truth.instruction && found.address == truth.address &&
         found.width == truth.width && found.kind == truth.kind;
}

const TrueAccess* first_from(const std::vector<Record>& records, std::size_t from, bool spill) {
  for (std::size_t i = from; i < records.size() && i < from + horizon; ++i) {
    const auto& access = records[i].step.access;
    if (access && access->spill == spill && !access->fixed_jump) {
      return &*access;
    }
    if (records[i].step.system_call) {
      break;
    }
  }
  return nullptr;
}

/// The last access of its kind before an instruction, within `steps` of it.
const TrueAccess* last_before(const std::vector<Record>& records, std::size_t before, bool spill, std::size_t steps) {
  for (std::size_t i = before; i > 0 && before - i < steps; --i) {
    const auto& access = records[i - 1].step.access;
    if (access && access->spill == spill) {
      return &*access;
    }
  }
  return nullptr;
}

void explain(const char* what, const Record& record, const FoundAccess& found, const TrueAccess* truth) {
  if (std::getenv("ACCESS_FINDER_EXPLAIN") == nullptr) {
    return;
  }
  std::printf("wrong %s at %llx: instruction %llx address %llx width %u kind %u spill %d, true: ", what,
              static_cast<unsigned long long>(record.step.registers[Register::rip]),
              static_cast<unsigned long long>(found.instruction), static_cast<unsigned long long>(found.address),
              found.width, static_cast<unsigned>(found.kind), static_cast<int>(found.spill));
  if (truth == nullptr) {
    std::printf("none\n");
    return;
  }
  std::printf("instruction %llx address %llx width %u kind %u\n", static_cast<unsigned long long>(truth->instruction),
              static_cast<unsigned long long>(truth->address), truth->width, static_cast<unsigned>(truth->kind));
}

Score score_next(const std::vector<Record>& records) {
  Score score;
  for (std::size_t i = 0; i + horizon < records.size(); ++i) {
    ++score.asked;
    const TrueAccess* better = first_from(records, i, false);
    score.answerable += better != nullptr ? 1 : 0;
    if (!records[i].next) {
      continue;
    }
    const FoundAccess& found = *records[i].next;
    const TrueAccess* truth = found.spill ? first_from(records, i, true) : better;
    if (truth != nullptr && same(found, *truth)) {
      score.right += found.spill ? 0 : 1;
    } else {
      ++score.wrong;
      explain("next", records[i], found, truth);
    }
  }
  return score;
}

constexpr std::size_t steps_back = 4;  // of the finder

/// True if the last executed instructions also precede instruction `i` in memory.
bool is_straight(const std::vector<Record>& records, std::size_t i) {
  for (std::size_t back = 0; back < steps_back; ++back) {
    const TraceStep& previous = records[i - back - 1].step;
    if (previous.registers[Register::rip] + previous.length != records[i - back].step.registers[Register::rip]) {
      return false;
    }
  }
  return true;
}

Score score_retired(const std::vector<Record>& records, bool only_straight) {
  Score score;
  for (std::size_t i = 8; i < records.size(); ++i) {
    if (only_straight && !is_straight(records, i)) {
      continue;
    }
    ++score.asked;
    score.answerable += last_before(records, i, false, steps_back) != nullptr ? 1 : 0;
    if (!records[i].retired) {
      continue;
    }
    const FoundAccess& found = *records[i].retired;
    const TrueAccess* truth = last_before(records, i, found.spill, 1000);
    if (truth != nullptr && same(found, *truth)) {
      score.right += found.spill ? 0 : 1;
    } else {
      ++score.wrong;
      explain(only_straight ? "retired, straight," : "retired", records[i], found, truth);
    }
  }
  return score;
}

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const char* name, const char* what, const Score& score) {
  std::printf("%-34s %-18s asked %6zu  there %5.1f %%  found %5.1f %%  wrong %6.3f %%\n", name, what, score.asked,
              percent(score.answerable, score.asked), percent(score.right, score.answerable),
              100 * score.wrong_share());
}

struct Totals {
  Score next, straight, all;
};

void run(const Fixture* fixtures, int count, const char* how, Totals& totals) {
  for (int i = 0; i < count; ++i) {
    const std::vector<Record> records = record(fixtures[i], usual_steps());
    ASSERT_GT(records.size(), 100U) << fixtures[i].name;
    const Score next = score_next(records);
    const Score straight = score_retired(records, true);
    const Score all = score_retired(records, false);
    const std::string name = std::string(fixtures[i].name) + " " + how;
    print(name.c_str(), "next", next);
    print(name.c_str(), "retired, straight", straight);
    print(name.c_str(), "retired, all", all);
    EXPECT_EQ(next.wrong, 0U) << name;
    totals.next.count(next);
    totals.straight.count(straight);
    totals.all.count(all);
  }
}

/// Unoptimized code loads a pointer and overwrites it by its target: the address of that access is gone.
void check(const Totals& totals, const char* how, double retired_percent) {
  print(how, "next", totals.next);
  print(how, "retired, straight", totals.straight);
  print(how, "retired, all", totals.all);
  EXPECT_EQ(totals.next.wrong, 0U);
  EXPECT_GT(percent(totals.next.right, totals.next.answerable), 90);
  EXPECT_LT(totals.straight.wrong_share(), 0.02);
  EXPECT_GT(percent(totals.straight.right, totals.straight.answerable), retired_percent);
  EXPECT_LT(totals.all.wrong_share(), 0.05);
}

TEST(AccessFinderTrace, OptimizedFunctions) {
  Totals totals;
  run(optimized::fixtures, optimized::fixture_count, "-O2", totals);
  check(totals, "all -O2", 75);
}

TEST(AccessFinderTrace, UnoptimizedFunctions) {
  Totals totals;
  run(unoptimized::fixtures, unoptimized::fixture_count, "-O0", totals);
  check(totals, "all -O0", 40);
}

}  // namespace

}  // namespace crosstalk::test::access_finder_trace_test
