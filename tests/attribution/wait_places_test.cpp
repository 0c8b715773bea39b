// SPDX-License-Identifier: Apache-2.0
// Waits that looks from outside have sampled: their places, kinds, objects and intervals.
#include "attribution/busy/wait_places.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attribution/busy/waiting_call.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::wait_places_test {
namespace {

using profile::LookKind;
using profile::WaitKind;

constexpr std::uint64_t app = 0x400000, libc = 0x900000;
constexpr std::uint64_t ms = 1'000'000;

class WaitPlacesTest : public testing::Test {
 protected:
  WaitPlacesTest() {
    place(0, 0x100, frame("take", "/src/app.cpp", 14));
    place(0, 0x200, frame("put", "/src/app.cpp", 20));
    place(0, 0x300, frame("main", "/src/app.cpp", 50));
    place(0, 0x400, frame("pthread_cond_wait"));  // as of a static program
    place(0, 0x500, frame("start_work"));
    place(1, 0x100, frame("__lll_lock_wait"));
    place(1, 0x200, frame("pthread_mutex_lock"));
    place(1, 0x300, frame("pthread_cond_wait"));
    place(1, 0x400, frame("pthread_rwlock_wrlock"));
    place(1, 0x500, frame("sem_wait"));
    place(1, 0x600, frame("pthread_barrier_wait"));
    place(1, 0x700, frame("pthread_join"));
    place(1, 0x800, frame("__futex_abstimed_wait_common"));
    code_.globals.push_back({0, {"queue", 0x2000, 128, {}}});
    code_.fields = {{0, "guard._M_mutex.__data.__lock"}, {8, "__data.__lock"}, {16, "items"}};
  }

  void place(std::uint32_t file, std::uint64_t address, const symbolizer::Frame& of) {
    symbolizer::CodeLocation location;
    location.frames = {of};
    location.function_begin = address;
    code_.locations[{file, address}] = location;
  }
  WaitingCall call(std::vector<std::uint64_t> stack) { return waiting_call(view_, {ProcessId{0}, 100}, stack); }

  profile::SampledWaitRow& looked(std::uint32_t thread, std::uint32_t looks, std::uint64_t of_ms,
                                  LookKind kind = LookKind::all) {
    profile::SampledWaitRow row;
    row.kind = kind;
    row.thread = ThreadId{thread};
    row.time_ns = 100;
    row.looks = looks;
    row.looked_ns = looks * of_ms * ms;
    row.spread_ns = static_cast<std::uint64_t>(std::sqrt(looks) * static_cast<double>(of_ms * ms));
    rows_.push_back(row);
    return rows_.back();
  }
  void asleep(std::uint32_t thread, std::uint32_t looks, std::uint64_t futex, std::vector<std::uint64_t> stack) {
    profile::SampledWaitRow& row = looked(thread, looks, 10, LookKind::waiting);
    row.futex = futex;
    row.stack = stacks_.enter(std::move(stack));
  }
  /// Threads without an end have lived for as long as the looks at them stand for.
  MeasuredWaits waits() {
    for (profile::ThreadRow& thread : threads_) {
      const bool known = thread.end_ns != 0;
      for (const profile::SampledWaitRow& row : rows_) {
        const bool counts = !known && row.thread == thread.id && row.kind == LookKind::all;
        thread.end_ns += counts ? row.looked_ns : 0;
      }
    }
    return measured_waits({timed_, rows_}, view_, stacks_, 1000, loops_);
  }

  std::vector<profile::ProcessRow> processes_{1};
  std::vector<profile::ThreadRow> threads_ = make_threads(3);
  std::vector<profile::ModuleRow> modules_{module_row("/bin/app", app, app + 0x3000, app),
                                           module_row("/usr/lib/libc.so.6", libc, libc + 0x1000, libc)};
  AddressSpaces spaces_{processes_, modules_};
  FakeCode code_;
  ProgramView view_{processes_, threads_, spaces_, code_};
  StackTable stacks_;
  std::vector<profile::ThreadWaitRow> timed_;
  std::vector<profile::SampledWaitRow> rows_;
  std::vector<LoopRow> loops_;
};

TEST_F(WaitPlacesTest, TheCallIsTheProgramsAndTheKindIsOfWhatItCalls) {
  const WaitingCall found = call({libc + 0x110, libc + 0x210, app + 0x110, app + 0x310});
  EXPECT_EQ(found.kind, WaitKind::mutex);
  EXPECT_EQ(found.frame.function, "take");
  EXPECT_EQ(found.frame.source.line, 14U);
  EXPECT_EQ(found.through, "pthread_mutex_lock");
  ASSERT_TRUE(found.place);
  EXPECT_EQ(found.place->address, 0x10fU) << "before the return address";
}

TEST_F(WaitPlacesTest, KindsOfCalls) {
  const std::pair<std::uint64_t, WaitKind> each[] = {{0x210, WaitKind::mutex},   {0x310, WaitKind::condition},
                                                     {0x410, WaitKind::rwlock},  {0x510, WaitKind::semaphore},
                                                     {0x610, WaitKind::barrier}, {0x710, WaitKind::futex}};
  for (const auto& [function, kind] : each) {
    EXPECT_EQ(call({libc + 0x810, libc + function, app + 0x110}).kind, kind) << std::hex << function;
  }
  EXPECT_EQ(call({libc + 0x710, app + 0x110}).through, "pthread_join");
  EXPECT_EQ(call({libc + 0x110, libc + 0x310, app + 0x110}).kind, WaitKind::condition)
      << "which takes its mutex again before it returns";
}

TEST_F(WaitPlacesTest, ALibraryThatJumpsToItsWaitIsNamedByTheCall) {
  place(0, 0x600, frame("GOMP_parallel@plt"));
  place(1, 0x900, {});
  std::vector<std::uint8_t> code(16, 0x90);
  code[0xb] = 0xe8;  // call 0x600, which ends at 0x110
  code[0xc] = 0xf0, code[0xd] = 0x04, code[0xe] = code[0xf] = 0;
  code_.bytes[{0, 0x100}] = code;
  const WaitingCall found = call({libc + 0x910, app + 0x110});
  EXPECT_EQ(found.kind, WaitKind::team);
  EXPECT_EQ(found.through, "GOMP_parallel");
  EXPECT_EQ(found.frame.function, "take");
  EXPECT_EQ(call({libc + 0x210, app + 0x110}).kind, WaitKind::mutex) << "the stack tells";
  code[0xb] = 0x90;
  EXPECT_EQ(call({libc + 0x910, app + 0x110}).kind, WaitKind::futex);
}

TEST_F(WaitPlacesTest, WaitingForAThreadsEndIsNoWaitForACondition) {
  asleep(0, 50, 0x402000, {libc + 0x810, libc + 0x710, app + 0x310});
  looked(0, 100, 10);
  const MeasuredWaits found = waits();
  ASSERT_EQ(found.places.size(), 1U);
  EXPECT_TRUE(found.places[0].for_end);
  EXPECT_NEAR(found.places[0].waited_s, 0.5, 1e-9);
  EXPECT_EQ(found.threads[0]->total(), 0);
}

TEST_F(WaitPlacesTest, ALibraryThatIsLinkedIntoTheProgramIsKnownByItsNames) {
  const WaitingCall found = call({app + 0x410, app + 0x510});
  EXPECT_EQ(found.kind, WaitKind::condition);
  EXPECT_EQ(found.frame.function, "start_work");
  EXPECT_EQ(found.through, "pthread_cond_wait");
}

TEST_F(WaitPlacesTest, WithoutTheProgramsCodeItIsTheInnermostFunction) {
  const WaitingCall found = call({libc + 0x810});
  EXPECT_EQ(found.kind, WaitKind::futex);
  EXPECT_EQ(found.frame.function, "__futex_abstimed_wait_common");
  EXPECT_EQ(found.through, "");
  EXPECT_EQ(call({}).frame.function, "");
  const WaitingCall of_library = call({libc + 0x810, libc + 0x310});  // a thread of a library
  EXPECT_EQ(of_library.kind, WaitKind::condition);
  EXPECT_EQ(of_library.frame.function, "__futex_abstimed_wait_common");
}

TEST_F(WaitPlacesTest, AddUpByPlaceAndThread) {
  asleep(0, 30, 0x402000, {libc + 0x210, app + 0x110});
  asleep(0, 10, 0x402000, {libc + 0x210, app + 0x210});
  looked(0, 100, 10);
  asleep(1, 20, 0x402000, {libc + 0x210, app + 0x110, app + 0x310});
  looked(1, 100, 10);
  const MeasuredWaits found = waits();
  ASSERT_EQ(found.places.size(), 2U);
  const WaitPlace& first = found.places[0];
  EXPECT_TRUE(first.sampled);
  EXPECT_EQ(first.kind, WaitKind::mutex);
  EXPECT_EQ(first.line, 14U);
  EXPECT_EQ(first.through, "pthread_mutex_lock");
  EXPECT_NEAR(first.waited_s, 0.5, 1e-9);
  EXPECT_EQ(first.looks, 50U);
  EXPECT_EQ(first.count, 0U);
  ASSERT_EQ(first.threads.size(), 2U);
  EXPECT_NEAR(first.threads[1].waited_s, 0.2, 1e-9);
  ASSERT_TRUE(found.threads[0] && found.threads[1]);
  EXPECT_NEAR(found.threads[0]->lock_s, 0.4, 1e-9);
  EXPECT_TRUE(found.threads[0]->sampled);
  EXPECT_FALSE(found.threads[2]) << "it was not looked at";
}

TEST_F(WaitPlacesTest, AThreadThatNeverWaitedIsKnownTo) {
  looked(0, 100, 10);
  const MeasuredWaits found = waits();
  EXPECT_TRUE(found.places.empty());
  ASSERT_TRUE(found.threads[0]);
  EXPECT_EQ(found.threads[0]->total(), 0);
}

TEST_F(WaitPlacesTest, TheIntervalIsThatOfDrawingMoments) {
  asleep(0, 50, 0x402000, {libc + 0x210, app + 0x110});
  looked(0, 100, 10);
  const WaitPlace half = waits().places.at(0);
  EXPECT_NEAR(half.waited_ci95.high - half.waited_s, 1.96 * 0.01 * 5, 0.002) << "sqrt(100 / 4) looks";
  EXPECT_NEAR(half.waited_s - half.waited_ci95.low, half.waited_ci95.high - half.waited_s, 1e-9);
}

TEST_F(WaitPlacesTest, ARareOutcomeIsUnsureToo) {
  asleep(0, 1, 0x402000, {libc + 0x210, app + 0x110});
  looked(0, 9, 10);
  const WaitPlace rare = waits().places.at(0);
  const double p = 2. / 11;
  EXPECT_NEAR(rare.waited_ci95.high - rare.waited_s, 1.96 * 0.01 * std::sqrt(9 * p * (1 - p)), 1e-4);
}

TEST_F(WaitPlacesTest, AFewLooksThatAgreeProveLittleAndASleepThatLastsIsExact) {
  asleep(0, 2, 0x402000, {libc + 0x210, app + 0x110});
  looked(0, 2, 10);
  const WaitPlace few = waits().places.at(0);
  EXPECT_LT(few.waited_ci95.low, few.waited_s - 0.005);
  EXPECT_EQ(few.waited_ci95.high, few.waited_s) << "it has not lived for longer";
  for (profile::SampledWaitRow& row : rows_) {
    row.spread_ns = 0;
  }
  const WaitPlace exact = waits().places.at(0);
  EXPECT_EQ(exact.waited_ci95.low, exact.waited_s);
  EXPECT_EQ(exact.waited_ci95.high, exact.waited_s);
}

TEST_F(WaitPlacesTest, TheSchedulerSaysHowLongAThreadSlept) {
  asleep(0, 30, 0x402000, {libc + 0x210, app + 0x110});
  asleep(0, 10, 0x402000, {libc + 0x210, app + 0x210});
  looked(0, 50, 10, LookKind::asleep);  // for some of them, elsewhere
  looked(0, 100, 10).slept_ns = 400 * ms;
  looked(0, 20, 10).slept_ns = -std::int64_t{1000};
  const std::vector<WaitPlace> found = waits().places;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0].waited_s, 0.4 * 30 / 50, 1e-5);
  EXPECT_NEAR(found[1].waited_s, 0.4 * 10 / 50, 1e-5);
  EXPECT_NEAR(found[0].waited_ci95.high - found[0].waited_s, 1.96 * 0.8 * 0.01 * std::sqrt(50 * 0.6 * 0.4), 0.003);
  EXPECT_EQ(found[0].looks, 30U);
  rows_.back().slept_ns.reset();
  EXPECT_NEAR(waits().places.at(0).waited_s, 0.3, 1e-9) << "it is not known of all its time";
}

TEST_F(WaitPlacesTest, OneReasonToSleepHasAllOfTheSleep) {
  asleep(0, 50, 0x402000, {libc + 0x210, app + 0x110});
  looked(0, 50, 10, LookKind::asleep);
  looked(0, 100, 10).slept_ns = 400 * ms;
  const WaitPlace found = waits().places.at(0);
  EXPECT_NEAR(found.waited_s, 0.4, 1e-9);
  EXPECT_LT(found.waited_ci95.high, 0.42);
  EXPECT_GT(found.waited_ci95.high, 0.405) << "it may have others, which no look has met";
}

TEST_F(WaitPlacesTest, TimeThatNoLookStandsForIsLikeTheRestButUnsure) {
  asleep(0, 50, 0x402000, {libc + 0x210, app + 0x110});
  looked(0, 100, 10);
  asleep(1, 2, 0x402000, {libc + 0x210, app + 0x210});
  looked(1, 2, 10);
  for (profile::SampledWaitRow& row : rows_) {
    row.spread_ns = 0;
  }
  threads_[0].end_ns = 1100 * ms;
  threads_[1].end_ns = 1000 * ms;
  const MeasuredWaits found = waits();
  const WaitPlace& brief = found.places.at(0);
  EXPECT_NEAR(brief.waited_s, 1, 1e-9);
  EXPECT_NEAR(brief.waited_ci95.low, 1 - 1.96 * 0.98 * std::sqrt(0.75 * 0.25), 1e-3);
  EXPECT_EQ(brief.waited_ci95.high, 1);
  const WaitPlace& half = found.places.at(1);
  EXPECT_NEAR(half.waited_s, 0.55, 1e-9);
  EXPECT_NEAR(half.waited_ci95.high - half.waited_s, 1.96 * 0.1 * 0.5, 1e-3);
  EXPECT_NEAR(found.threads[0]->lock_s, 0.55, 1e-9);
}

TEST_F(WaitPlacesTest, ThreadsThatNoLookStandsForAreUnknown) {
  processes_[0].observation = profile::Observation::outside;
  looked(0, 100, 10);
  looked(1, 1, 0);
  asleep(1, 1, 0x402000, {libc + 0x210, app + 0x110});
  rows_.back().looked_ns = 0;
  threads_[1].end_ns = 5 * ms;
  const MeasuredWaits found = waits();
  EXPECT_FALSE(found.threads[1]);
  EXPECT_TRUE(found.places.empty()) << "not 0 s";
  profile::Session session;
  session.end_ns = 1000;
  session.config.measure_waits = 1;
  const auto said = [&] { return not_looked_at_in_words(found, view_, processes_, session); };
  EXPECT_FALSE(said()) << "it is too little to matter";
  threads_[1].end_ns = 500 * ms;
  ASSERT_TRUE(said());
  EXPECT_NE(said()->find("2 threads were not looked at"), std::string::npos) << *said();
  EXPECT_NE(said()->find("500 ms at most"), std::string::npos) << *said();
  processes_[0].observation = profile::Observation::preloaded;
  EXPECT_FALSE(said());
}

TEST_F(WaitPlacesTest, ObjectsAreNamedByTheirFutexes) {
  asleep(0, 10, app + 0x2000, {libc + 0x210, app + 0x110});
  asleep(0, 30, app + 0x2008, {libc + 0x210, app + 0x110});
  asleep(0, 1, 0, {libc + 0x210, app + 0x110});
  looked(0, 100, 10);
  MeasuredWaits found = waits();
  const BlockIndex blocks({});
  const SharedIndex shared({});
  DataObjects objects(view_, blocks, shared, stacks_);
  name_awaited(found, objects);
  const std::vector<WaitPlace::Object>& named = found.places.at(0).objects;
  ASSERT_EQ(named.size(), 2U) << "an unknown address has no object";
  EXPECT_EQ(named[0].name, "queue");
  EXPECT_EQ(named[0].field, "") << "the object is a lock itself";
  EXPECT_NEAR(named[0].waited_s, 0.3, 1e-9);
  EXPECT_EQ(named[1].field, "guard") << "without the library's fields";
}

TEST_F(WaitPlacesTest, AFutexInNoObjectHasItsAddress) {
  asleep(0, 10, 0x7f0000001238, {libc + 0x210, app + 0x110});
  looked(0, 100, 10);
  MeasuredWaits found = waits();
  const BlockIndex blocks({});
  const SharedIndex shared({});
  DataObjects objects(view_, blocks, shared, stacks_);
  name_awaited(found, objects);
  ASSERT_EQ(found.places.at(0).objects.size(), 1U);
  EXPECT_EQ(found.places[0].objects[0].name, "memory at 0x7f0000001238") << "a page has many locks";
}

TEST_F(WaitPlacesTest, TimedWaitsAreAsTheyWere) {
  timed_.push_back({ThreadId{1}, WaitKind::all, 0, 500 * ms, 3});
  timed_.push_back({ThreadId{1}, WaitKind::mutex, app + 0x110, 500 * ms, 3});
  const MeasuredWaits found = waits();
  ASSERT_EQ(found.places.size(), 1U);
  EXPECT_FALSE(found.places[0].sampled);
  EXPECT_EQ(found.places[0].count, 3U);
  EXPECT_EQ(found.places[0].line, 14U);
  EXPECT_EQ(found.places[0].waited_ci95.low, found.places[0].waited_s);
  EXPECT_FALSE(found.threads[1]->sampled);
}

}  // namespace
}  // namespace crosstalk::attribution::test::wait_places_test
