// SPDX-License-Identifier: Apache-2.0
#include "attribution/filter.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::filter_test {
namespace {

Amount seen(double cost_s) {
  Amount amount;
  amount.cost_s = cost_s;
  amount.seen = 10;
  return amount;
}
Cell cell(std::uint32_t producer, std::uint32_t consumer, double cost_s) {
  return {producer, consumer, seen(cost_s), {}};
}

LinePair pair(std::uint32_t producer_line, std::uint32_t consumer_line, const std::string& object, Matrix cells) {
  LinePair p{"/src/a.cpp", producer_line, "put()", "/src/a.cpp", consumer_line, "get()", object, std::move(cells)};
  for (const Cell& c : p.cells) {
    p.cost_s += c.cost();
  }
  p.producer_module = "/usr/bin/program";
  p.consumer_module = object == "queue" ? "/usr/lib/libqueue.so.1" : "/usr/bin/program";
  return p;
}

LineRow line(std::uint32_t number, Role role, Matrix cells) {
  LineRow row{"/src/a.cpp", number, role == Role::producer ? "put()" : "get()", role, std::move(cells), 0, {}};
  for (const Cell& c : row.cells) {
    row.cost_s += c.cost();
  }
  return row;
}

ObjectRow object(const std::string& name, Matrix cells) {
  ObjectRow row;
  row.name = name;
  row.cells = std::move(cells);
  for (const Cell& c : row.cells) {
    row.cost_s += c.cost();
  }
  return row;
}

/// Threads 0 main, 1 and 2 workers. `counter` (1.0 s from 1 to 2, 0.5 s back) at line 10, `queue` (0.2 s from 0 to 1)
/// stored at line 20 and read at line 30.
Analysis program() {
  Analysis a;
  a.cpu_s = 10;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ThreadSummary thread;
    thread.index = i;
    thread.name = i == 0 ? "main" : "worker-" + std::to_string(i);
    thread.communication_s = i == 0 ? 0.0 : i == 1 ? 0.7 : 1.0;
    a.threads.push_back(thread);
  }
  Communication& c = a.communication;
  c.cells = {cell(0, 1, 0.2), cell(1, 2, 1.0), cell(2, 1, 0.5)};
  c.cores = {cell(0, 1, 1.7)};
  c.line_pairs = {pair(10, 10, "counter", {cell(1, 2, 1.0), cell(2, 1, 0.5)}),
                  pair(20, 30, "queue", {cell(0, 1, 0.2)})};
  c.lines = {line(10, Role::producer, {cell(1, 2, 1.0), cell(2, 1, 0.5)}),
             line(10, Role::consumer, {cell(1, 2, 1.0), cell(2, 1, 0.5)}), line(20, Role::producer, {cell(0, 1, 0.2)}),
             line(30, Role::consumer, {cell(0, 1, 0.2)})};
  c.objects = {object("counter", {cell(1, 2, 1.0), cell(2, 1, 0.5)}), object("queue", {cell(0, 1, 0.2)})};
  LoopRow counting;
  counting.id = 1;
  counting.file = "/src/a.cpp";
  counting.line_begin = 8;
  counting.line_end = 12;
  counting.module = "/usr/bin/program";
  counting.cpu_s = 8;
  counting.share = 0.8;
  counting.share_ci95 = {0.7, 0.9};
  counting.kernel_s = 1.5;
  counting.threads = {{1, 6, 6, 0, 1.5}, {2, 2, 2}};
  LoopRow reading = counting;
  reading.id = 2;
  reading.line_begin = 28;
  reading.line_end = 31;
  reading.module = "/usr/lib/libqueue.so.1";
  reading.cpu_s = 1;
  reading.share = 0.1;
  reading.threads = {{1, 1, 1}};
  a.loops = {counting, reading};
  a.functions = {{"get()", "/src/a.cpp", "/usr/bin/program", 9, 8, 0.8}};
  a.kernel = {{"read", true, 1.5, 0.15}};
  c.sampled_uses = {{"queue", {0, 1}, 0.5, 8}, {"table", {1, 2}, 0.7, 9}};
  a.findings = {{"Counter.", 1.5, "shared_counter"}, {"Queue.", 0.2, "queue"}, {"The hottest loop.", 0, "loop"}};
  a.findings[0].object = "counter";
  a.findings[1].object = "queue";
  return a;
}

Analysis kept(const Filter& filter) {
  auto result = filtered(program(), filter, 100);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(*result) : Analysis{};
}

std::string refusal(const Filter& filter) {
  const auto result = filtered(program(), filter, 100);
  EXPECT_FALSE(result);
  if (result) {
    return {};
  }
  EXPECT_NE(result.error().code, ErrorCode::invalid_argument);  // a report that could not be made, no bad option
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

TEST(Filter, AThreadIsFoundByIndexNameOrPattern) {
  for (const char* thread : {"0", "main", "ma*"}) {
    const Analysis a = kept({thread, "", "", {}});
    ASSERT_EQ(a.communication.cells.size(), 1U) << thread;
    EXPECT_EQ(a.communication.cells[0].producer, 0U);
    ASSERT_EQ(a.communication.objects.size(), 1U);
    EXPECT_EQ(a.communication.objects[0].name, "queue");
    EXPECT_EQ(a.communication.lines.size(), 2U);
    ASSERT_EQ(a.findings.size(), 1U);
    EXPECT_EQ(a.findings[0].sentence, "Queue.");
    EXPECT_TRUE(a.threads[0].listed);
    EXPECT_FALSE(a.threads[1].listed);
    EXPECT_EQ(a.threads.size(), 3U);  // partners keep their names
  }
}

TEST(Filter, SharesStayThoseOfTheWholeProgram) {
  const Analysis a = kept({"2", "", "", {}});
  ASSERT_EQ(a.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(a.loops[0].cpu_s, 2);
  EXPECT_DOUBLE_EQ(a.loops[0].share, 0.2);
  EXPECT_DOUBLE_EQ(a.loops[0].kernel_s, 0);
  EXPECT_DOUBLE_EQ(kept({"1", "", "", {}}).loops[0].kernel_s, 1.5);
  EXPECT_TRUE(a.kernel.empty()) << "nobody knows how much of it was this thread's";
  ASSERT_EQ(a.communication.sampled_uses.size(), 1U);
  EXPECT_EQ(a.communication.sampled_uses[0].object, "table");
  EXPECT_DOUBLE_EQ(a.cpu_s, 10);
  EXPECT_EQ(a.communication.cells.size(), 2U);
  EXPECT_DOUBLE_EQ(a.communication.objects[0].cost_s, 1.5);
}

TEST(Filter, AnObjectsRowsAreThoseOfItsPairsOfLines) {
  const Analysis a = kept({"", "queue", "", {}});
  ASSERT_EQ(a.communication.cells.size(), 1U);
  EXPECT_DOUBLE_EQ(a.communication.cells[0].cost(), 0.2);
  EXPECT_EQ(a.communication.line_pairs.size(), 1U);
  EXPECT_EQ(a.communication.lines.size(), 2U);
  ASSERT_EQ(a.loops.size(), 1U);
  EXPECT_EQ(a.loops[0].id, 2U);
  EXPECT_FALSE(a.threads[2].listed);
  ASSERT_EQ(a.communication.sampled_uses.size(), 1U);
  EXPECT_EQ(a.communication.sampled_uses[0].object, "queue");
  EXPECT_TRUE(a.kernel.empty());
}

TEST(Filter, AModuleIsFoundByItsName) {
  for (const char* module : {"libqueue.so.1", "/usr/lib/libqueue.so.1", "libqueue*"}) {
    const Analysis a = kept({"", "", module, {}});
    EXPECT_EQ(a.communication.objects.size(), 1U) << module;
    ASSERT_EQ(a.loops.size(), 1U);
    EXPECT_EQ(a.loops[0].id, 2U);
    EXPECT_TRUE(a.functions.empty());
  }
}

TEST(Filter, SmallCostsAreLeftOut) {
  for (const MinCost& least : {MinCost{0.6, false, "0.6s"}, MinCost{0.06, true, "6%"}}) {
    const Analysis a = kept({"", "", "", least});
    ASSERT_EQ(a.communication.cells.size(), 1U);
    EXPECT_DOUBLE_EQ(a.communication.cells[0].cost(), 1.0);
    EXPECT_EQ(a.communication.objects.size(), 1U);
    EXPECT_EQ(a.loops.size(), 2U);
    EXPECT_EQ(a.findings.size(), 1U);
    EXPECT_EQ(a.filter, "--min-cost " + least.text);
  }
}

TEST(Filter, FiltersAreAllToFit) {
  const Analysis a = kept({"2", "counter", "program", MinCost{0.9, false, "0.9"}});
  ASSERT_EQ(a.communication.cells.size(), 1U);
  EXPECT_EQ(a.communication.cells[0].consumer, 2U);
  EXPECT_FALSE(refusal({"0", "counter", "", {}}).empty());
}

TEST(Filter, WhatFitsNothingSaysWhatThereIs) {
  EXPECT_NE(refusal({"9", "", "", {}}).find("0 main, 1 worker-1, 2 worker-2"), std::string::npos);
  EXPECT_NE(refusal({"", "stack", "", {}}).find("counter, queue"), std::string::npos);
  EXPECT_NE(refusal({"", "", "libm*", {}}).find("program, libqueue.so.1"), std::string::npos);
  EXPECT_NE(refusal({"", "", "", MinCost{100, false, "100"}}).find("8 s"), std::string::npos);
}

TEST(Filter, AnObjectIsFoundByTheNameThatIsShown) {
  Analysis a = program();
  a.communication.objects[0].name = a.communication.line_pairs[0].object = "(anonymous namespace)::counter";
  a.communication.objects[0].field = "hits";
  for (const char* name : {"counter", "counter.hits", "(anonymous namespace)::counter"}) {
    const auto kept_rows = filtered(a, {"", name, "", {}}, 100);
    ASSERT_TRUE(kept_rows) << kept_rows.error().message;
    EXPECT_EQ(kept_rows->communication.objects.size(), 1U);
    EXPECT_EQ(kept_rows->communication.line_pairs.size(), 1U);
  }
}

TEST(Filter, AnObjectWithBracketsIsFoundByItsName) {
  Analysis a = program();
  a.communication.objects[0].name = a.communication.line_pairs[0].object = "Line[64] allocated in main";
  EXPECT_TRUE(filtered(a, {"", "Line[64] allocated in main", "", {}}, 100));
}

}  // namespace
}  // namespace crosstalk::attribution::filter_test
