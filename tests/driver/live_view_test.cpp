// SPDX-License-Identifier: Apache-2.0
// Rows of the live tables, and what keys do.
#include <gtest/gtest.h>

#include "driver/live/rows.h"
#include "driver/live/view_state.h"
#include "live_snapshot.h"

namespace crosstalk::driver::live::live_view_test {
namespace {

using test::sample_snapshot;

std::vector<std::string> names(const std::vector<Row>& rows) {
  std::vector<std::string> all;
  all.reserve(rows.size());
  for (const Row& row : rows) {
    all.push_back(row.name);
  }
  return all;
}

using Names = std::vector<std::string>;

TEST(LiveRows, CostFavoursThePresent) {
  const Snapshot snapshot = sample_snapshot();
  const auto rows = rows_of(snapshot, Table::objects, {}, "", Sort::cost);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_DOUBLE_EQ(*rows[0].cost.now, 1.6 / 4);
  EXPECT_DOUBLE_EQ(*rows[0].cost.favoured, (7.0 / 20 + 1.6 / 4) / 2);
  EXPECT_DOUBLE_EQ(*rows[0].gain, *rows[0].cost.favoured / 2);
  EXPECT_TRUE(rows[0].present);
  EXPECT_FALSE(rows[1].present);
  EXPECT_TRUE(rows[1].gain_is_limit);
}

TEST(LiveRows, ANewExchangeComesBeforeAnEqualOneThatIsOver) {
  Snapshot snapshot = sample_snapshot();
  snapshot.objects[0].exchange = {8.0, 4.0, std::nullopt, 0.0, 40, 0};  // was all of four refreshes, and is over
  snapshot.objects[1].exchange = {2.0, 1.0, std::nullopt, 2.0, 10, 10};
  const auto rows = rows_of(snapshot, Table::objects, {}, "", Sort::cost);
  EXPECT_EQ(names(rows), (Names{"Queue", "counters[1].hits"}));
}

TEST(LiveRows, AnUnknownCostIsNotZero) {
  Snapshot snapshot = sample_snapshot();
  snapshot.objects[0].exchange = {};
  snapshot.objects[0].exchange.seen = 3;
  const auto rows = rows_of(snapshot, Table::objects, {}, "", Sort::cost);
  EXPECT_EQ(names(rows), (Names{"Queue", "counters[1].hits"}));
  EXPECT_FALSE(rows[1].cost.favoured);
  EXPECT_EQ(rows[1].seen, 3U);
}

TEST(LiveRows, AScopeKeepsItsPart) {
  const Snapshot snapshot = sample_snapshot();
  Scope pair;
  pair.pair = std::pair(1U, 2U);
  const auto of_pair = rows_of(snapshot, Table::objects, pair, "", Sort::cost);
  ASSERT_EQ(names(of_pair), (Names{"counters[1].hits"}));
  const auto all = rows_of(snapshot, Table::objects, {}, "", Sort::cost);
  EXPECT_NEAR(*of_pair[0].cost.favoured, *all[0].cost.favoured * 4 / 7, 1e-9);
  Scope thread;
  thread.thread = 4;
  EXPECT_EQ(names(rows_of(snapshot, Table::objects, thread, "", Sort::cost)), (Names{"Queue"}));
  EXPECT_EQ(names(rows_of(snapshot, Table::threads, thread, "", Sort::cost)), (Names{"4 worker"}));
  EXPECT_TRUE(rows_of(snapshot, Table::loops, thread, "", Sort::cost).empty());
  thread.thread = 1;
  EXPECT_NEAR(*rows_of(snapshot, Table::loops, thread, "", Sort::cost)[0].cost.favoured, 0.6 * 7 / 12, 1e-9);
  Scope object;
  object.object = "Queue";
  EXPECT_EQ(names(rows_of(snapshot, Table::lines, object, "", Sort::cost)), (Names{"Queue::pop()"}));
  EXPECT_TRUE(rows_of(snapshot, Table::findings, object, "", Sort::cost).empty());
}

TEST(LiveRows, OwnTimeOfALoopIsAtMostItsTime) {
  Snapshot snapshot = sample_snapshot();
  snapshot.loops[0].latest_cpu_s = 0;
  const Row idle = rows_of(snapshot, Table::loops, {}, "", Sort::cost)[0];
  EXPECT_NEAR(*idle.cost.favoured, 0.3, 1e-9);
  EXPECT_NEAR(*idle.own, 0.3, 1e-9) << "all of its time is its own";
  snapshot.loops[0].self_s = 3;
  EXPECT_NEAR(*rows_of(snapshot, Table::loops, {}, "", Sort::cost)[0].own, 0.075, 1e-9);
}

TEST(LiveRows, AFilterFindsTextsInAnyCase) {
  const Snapshot snapshot = sample_snapshot();
  EXPECT_EQ(names(rows_of(snapshot, Table::objects, {}, "QUE", Sort::cost)), (Names{"Queue"}));
  EXPECT_EQ(rows_of(snapshot, Table::lines, {}, "queue.h", Sort::cost).size(), 1U);
  EXPECT_TRUE(rows_of(snapshot, Table::objects, {}, "nothing", Sort::cost).empty());
}

TEST(LiveRows, TheyAreSortedByAnyColumn) {
  const Snapshot snapshot = sample_snapshot();
  EXPECT_EQ(names(rows_of(snapshot, Table::objects, {}, "", Sort::name)), (Names{"Queue", "counters[1].hits"}));
  EXPECT_EQ(names(rows_of(snapshot, Table::objects, {}, "", Sort::now)), (Names{"counters[1].hits", "Queue"}));
  EXPECT_EQ(names(rows_of(snapshot, Table::threads, {}, "", Sort::gain)).front(), "4 worker");
}

TEST(LiveRows, TheMatrixBeginsWithBusyThreadsThatTalk) {
  Snapshot snapshot = sample_snapshot();
  std::vector<std::uint32_t> order;
  for (const ThreadRow* thread : matrix_threads(snapshot, {})) {
    order.push_back(thread->index);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 2, 3, 4, 0}));
  snapshot.threads[3].cpu_s = 4.9;  // a little less than its equals
  EXPECT_EQ(matrix_threads(snapshot, {})[2]->index, 3U);
}

TEST(LiveRows, ThreadsAreFoundByNumberIdAndName) {
  const Snapshot snapshot = sample_snapshot();
  EXPECT_EQ(thread_named(snapshot, "3"), 3U);
  EXPECT_EQ(thread_named(snapshot, "4244"), 2U);
  EXPECT_EQ(thread_named(snapshot, "Work"), 1U);
  EXPECT_FALSE(thread_named(snapshot, "9"));
  EXPECT_FALSE(thread_named(snapshot, ""));
}

/// A view with a picture, whose sources all have three lines.
ViewState view() {
  ViewState state([](const std::string& file) {
    return file.ends_with("queue.h") ? std::nullopt : std::optional(std::vector<std::string>(60, "text"));
  });
  state.take(sample_snapshot());
  return state;
}

void type(ViewState& state, const std::string& keys) {
  for (const char key : keys) {
    state.press({Key::character, static_cast<char32_t>(key)});
  }
}

TEST(LiveView, KeysShowTables) {
  ViewState state = view();
  EXPECT_EQ(state.page().table, Table::objects);
  type(state, "4");
  EXPECT_EQ(state.page().table, Table::threads);
  state.press({Key::tab});
  EXPECT_EQ(state.page().table, Table::findings);
  state.press({Key::tab});
  EXPECT_EQ(state.page().table, Table::objects);
  state.press({Key::back_tab});
  EXPECT_EQ(state.page().table, Table::findings);
  state.press({Key::right});
  EXPECT_EQ(state.page().table, Table::objects);
}

TEST(LiveView, TheChosenRowStaysWithItsObject) {
  ViewState state = view();
  state.press({Key::down});
  EXPECT_EQ(state.rows()[state.chosen(state.rows())].key, "Queue");
  Snapshot changed = sample_snapshot();
  changed.objects[1].exchange = {19.0, 1.0, std::nullopt, 3.9, 90, 90};
  state.take(changed);
  ASSERT_EQ(state.rows()[0].key, "Queue");
  EXPECT_EQ(state.chosen(state.rows()), 0U);
  state.press({Key::end});
  EXPECT_EQ(state.chosen(state.rows()), 1U);
  state.press({Key::page_up});
  EXPECT_EQ(state.chosen(state.rows()), 0U);
}

TEST(LiveView, AnObjectOpensItsLinesAndALineItsSource) {
  ViewState state = view();
  state.press({Key::enter});
  EXPECT_EQ(state.page().scope.object, "counters");
  EXPECT_EQ(state.page().table, Table::lines);
  state.press({Key::enter});
  EXPECT_EQ(state.page().kind, PageKind::source);
  EXPECT_EQ(state.page().place.line, 41U);
  EXPECT_TRUE(state.source());
  EXPECT_EQ(state.depth(), 3U);
  state.press({Key::escape});
  state.press({Key::escape});
  EXPECT_EQ(state.depth(), 1U);
  EXPECT_TRUE(state.page().scope.all());
}

TEST(LiveView, ASourceIsScrolledLineByLine) {
  ViewState state = view();
  type(state, "3");
  state.press({Key::enter});
  ASSERT_EQ(state.page().kind, PageKind::source);
  EXPECT_EQ(state.page().first, 40U);
  state.set_lines(60);
  state.press({Key::down});
  EXPECT_EQ(state.page().first, 41U);
  state.press({Key::end});
  EXPECT_EQ(state.page().first, 60U);
  state.press({Key::home});
  EXPECT_EQ(state.page().first, 1U);
}

TEST(LiveView, ACellOpensWhatItsThreadsExchange) {
  ViewState state = view();
  type(state, "m");
  EXPECT_EQ(state.page().focus, Focus::matrix);
  state.press({Key::enter});
  EXPECT_EQ(state.depth(), 1U);  // a thread and itself
  EXPECT_FALSE(state.remark().empty());
  state.press({Key::right});
  EXPECT_EQ(state.cell(), std::pair(1U, 2U));
  state.press({Key::enter});
  EXPECT_EQ(state.page().scope.pair, std::pair(1U, 2U));
  EXPECT_EQ(state.page().focus, Focus::table);
  ASSERT_EQ(state.rows().size(), 1U);
  type(state, "2");
  EXPECT_EQ(state.rows().size(), 2U);
  state.press({Key::backspace});
  EXPECT_TRUE(state.page().scope.all());
}

TEST(LiveView, TheCellStaysWithItsThreads) {
  ViewState state = view();
  type(state, "m");
  state.press({Key::down});
  EXPECT_EQ(state.cell(), std::pair(2U, 1U));
  Snapshot changed = sample_snapshot();
  changed.threads.erase(changed.threads.begin() + 2);
  std::erase_if(changed.cells, [](const CellRow& cell) { return cell.producer == 2 || cell.consumer == 2; });
  state.take(changed);
  ASSERT_TRUE(state.cell());
  EXPECT_NE(state.cell()->first, 2U);
}

TEST(LiveView, AThreadIsKeptByItsKeyOrItsName) {
  ViewState state = view();
  type(state, "4t");
  EXPECT_EQ(state.page().scope.thread, 1U);
  type(state, "t");
  EXPECT_FALSE(state.page().scope.thread);
  type(state, "1t3");
  EXPECT_EQ(state.prompt(), Prompt::thread);
  EXPECT_EQ(state.typed(), "3");
  state.press({Key::enter});
  EXPECT_EQ(state.page().scope.thread, 3U);
  EXPECT_EQ(state.rows().size(), 1U);
  state.press({Key::escape});
  EXPECT_FALSE(state.page().scope.thread);
  type(state, "tnobody");
  state.press({Key::enter});
  EXPECT_NE(state.remark().find("nobody"), std::string::npos);
}

TEST(LiveView, AFilterIsTyped) {
  ViewState state = view();
  type(state, "/quq");
  state.press({Key::backspace});
  EXPECT_EQ(state.filter(), "");
  state.press({Key::enter});
  EXPECT_EQ(state.filter(), "qu");
  EXPECT_FALSE(state.over());
  EXPECT_EQ(state.rows().size(), 1U);
  type(state, "/x");
  state.press({Key::escape});
  EXPECT_EQ(state.filter(), "qu");
  state.press({Key::escape});
  EXPECT_EQ(state.filter(), "");
}

TEST(LiveView, SortGoesThroughTheColumnsOfTheTable) {
  ViewState state = view();
  for (const Sort sort : {Sort::now, Sort::gain, Sort::name, Sort::cost}) {
    type(state, "s");
    EXPECT_EQ(state.sort(), sort);
  }
  type(state, "3ss");
  EXPECT_EQ(state.sort(), Sort::name);  // loops have no gain
}

TEST(LiveView, APauseKeepsThePicture) {
  ViewState state = view();
  type(state, " ");
  Snapshot next = sample_snapshot();
  next.sequence = 8;
  state.take(next);
  EXPECT_EQ(state.snapshot()->sequence, 7U);
  type(state, "p");
  EXPECT_EQ(state.snapshot()->sequence, 8U);
}

TEST(LiveView, AFindingIsFollowed) {
  ViewState state = view();
  type(state, "5");
  state.press({Key::enter});
  ASSERT_EQ(state.page().kind, PageKind::finding);
  Snapshot next = sample_snapshot();
  next.findings[0].sentence = "now otherwise";
  state.take(next);
  EXPECT_EQ(state.page().finding.sentence, "now otherwise");
}

TEST(LiveView, HelpAndWarningsOpenOnceAndClose) {
  ViewState state = view();
  type(state, "hh?");
  EXPECT_EQ(state.page().kind, PageKind::help);
  EXPECT_EQ(state.depth(), 2U);
  type(state, "w");
  EXPECT_EQ(state.page().kind, PageKind::warnings);
  type(state, "2");
  EXPECT_EQ(state.depth(), 1U);
  EXPECT_EQ(state.page().table, Table::lines);
}

TEST(LiveView, QuitEnds) {
  ViewState state = view();
  type(state, "q");
  EXPECT_TRUE(state.over());
}

TEST(LiveView, AnyKeysBeforeAnyPictureDoNoHarm) {
  ViewState state({});
  type(state, "12345mstw/x");
  for (const Key key : {Key::enter, Key::up, Key::left, Key::page_down, Key::escape, Key::escape, Key::escape}) {
    state.press({key});
  }
  EXPECT_FALSE(state.over());
  EXPECT_EQ(state.depth(), 1U);
}

}  // namespace
}  // namespace crosstalk::driver::live::live_view_test
