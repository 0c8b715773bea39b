// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/communication.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "attribution/estimate/estimator.h"
#include "attribution/objects/near_callers.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::communication_test {
namespace {

constexpr std::uint64_t bias = 0x400000;
constexpr std::uint64_t ms = 1'000'000;

/// An application with code at [0, 0x1000) and data at [0x2000, 0x3000) of its own addresses, and a C library.
class CommunicationTest : public testing::Test {
 protected:
  CommunicationTest()
      : processes_(1),
        threads_(make_threads(3)),
        modules_({module_row("/bin/app", bias, bias + 0x3000, bias),
                  module_row("/usr/lib/libc.so.6", 0x900000, 0x910000, 0x900000)}) {
    modules_[0].tls_offset = -0x100;
    modules_[0].tls_size = 0x40;
    threads_[1].stack_low = 0x700000;
    threads_[1].stack_high = 0x710000;
    threads_[1].thread_pointer = 0x70f000;
    place(0x100, "producer", 10);
    place(0x200, "consumer", 20);
    place(0x300, "make_queue", 31);
    place(0x400, "main", 50);
    symbolizer::CodeLocation malloc_code;
    malloc_code.frames = {frame("malloc")};
    code_.locations[{1, 0}] = malloc_code;
    code_.globals.push_back({0, {"counters", 0x2000, 128, {}}});
    code_.tls.push_back({0, {"mine", 0x10, 8, {}}});
    code_.fields = {{0, "[0].hits"}, {8, "[1].hits"}};
  }

  void place(std::uint64_t address, const char* function, std::uint32_t at) {
    symbolizer::CodeLocation location;
    location.frames = {frame(function, "/src/app.cpp", at)};
    location.function_begin = address;
    code_.locations[{0, address}] = location;
  }

  /// Thread 0 stores at producer(), thread 1 reads at consumer(), `offset` bytes into data line `address`.
  void communicate(std::uint64_t address, std::uint64_t offset, bool true_sharing, std::uint64_t cpu_ns = ms) {
    profile::WatchRow watch;
    watch.id = WatchId{static_cast<std::uint32_t>(watches_.size() + 1)};
    watch.thread = ThreadId{1};
    watch.line = address;
    watch.sample_address = address + offset;
    watch.sample_cpu_ns = cpu_ns;
    watches_.push_back(watch);
    SeenCommunication seen;
    seen.producer.thread = ThreadId{0};
    seen.producer.instruction = bias + 0x110;
    seen.producer.bytes = LineBytes::range(true_sharing ? static_cast<std::int64_t>(offset) : 56, 8);
    seen.producer.kind = AccessKind::store;
    seen.consumer.thread = ThreadId{1};
    seen.consumer.instruction = bias + 0x210;
    seen.consumer.bytes = LineBytes::range(static_cast<std::int64_t>(offset), 8);
    seen.consumer.kind = AccessKind::load;
    seen.consumer.stack = StackId{7};
    seen.consumer.time_ns = 1000;
    seen.producer.line = seen.consumer.line = watches_.back().line;
    seen.true_sharing = true_sharing;
    OwnershipTimeline timeline;
    timeline.communications = {seen};
    timeline.accesses = {seen.producer, seen.consumer};
    timelines_.push_back(timeline);
  }

  Communication run() {
    spaces_ = std::make_unique<AddressSpaces>(processes_, modules_);
    view_ = std::make_unique<ProgramView>(processes_, threads_, *spaces_, code_);
    blocks_ = std::make_unique<BlockIndex>(block_rows_);
    for (const auto& [id, addresses] : code_.stacks) {
      stacks_.want(id, {ProcessId{0}, 1000});
      add_stack(id);
    }
    for (const auto& [id, frames] : code_.frames) {
      add_stack(id);
    }
    Strata strata(watches_, threads_);
    strata.finish();
    const Estimate estimated = estimate(estimators().front(), WatchEvidence(watches_, timelines_, strata), strata);
    shared_ = std::make_unique<SharedIndex>(shared_rows_);
    objects_ = std::make_unique<DataObjects>(*view_, *blocks_, *shared_, stacks_);
    return communication_of({timelines_, estimated.contributions, estimated.expansion, sampled_, max_rows_}, *view_,
                            stacks_, *objects_);
  }

  void add_stack(StackId id) {
    profile::StackRow row;
    row.id = id;
    stacks_.add(row, *view_);
  }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  std::vector<profile::BlockRow> block_rows_;
  std::vector<profile::SharedMappingRow> shared_rows_;
  std::vector<profile::WatchRow> watches_;
  std::vector<OwnershipTimeline> timelines_;
  std::vector<SampledAccess> sampled_;
  std::size_t max_rows_ = 100;
  FakeCode code_;
  StackTable stacks_;
  std::unique_ptr<AddressSpaces> spaces_;
  std::unique_ptr<ProgramView> view_;
  std::unique_ptr<BlockIndex> blocks_;
  std::unique_ptr<SharedIndex> shared_;
  std::unique_ptr<DataObjects> objects_;
};

TEST_F(CommunicationTest, AGlobalByItsLinesAndField) {
  communicate(bias + 0x2000, 8, true);
  communicate(bias + 0x2000, 8, true);
  communicate(bias + 0x2000, 0, false);
  sampled_ = {{ThreadId{1}, bias + 0x2008, 8, 5, 0, 1000}};
  const Communication c = run();
  ASSERT_EQ(c.cells.size(), 1U);
  EXPECT_NEAR(c.cells[0].cost(), 0.003, 1e-12);
  ASSERT_EQ(c.objects.size(), 1U);
  const ObjectRow& object = c.objects[0];
  EXPECT_EQ(object.name, "counters");
  EXPECT_EQ(object.kind, ObjectKind::global);
  EXPECT_EQ(object.size, 128U);
  EXPECT_EQ(object.field, "[1].hits");
  ASSERT_EQ(object.offsets.size(), 4U);
  EXPECT_EQ(object.offsets[0].offset, 0U);
  EXPECT_EQ(object.offsets[1].thread, 0U);
  EXPECT_EQ(object.offsets[1].stores, 2U);
  EXPECT_EQ(object.offsets[2].thread, 1U);
  EXPECT_EQ(object.offsets[2].loads, 7U);  // five sampled, two trapped
  ASSERT_EQ(c.lines.size(), 2U);
  EXPECT_EQ(c.lines[0].role, Role::consumer);
  EXPECT_EQ(c.lines[0].line, 20U);
  EXPECT_EQ(c.lines[1].function, "producer");
  ASSERT_EQ(c.line_pairs.size(), 1U);
  EXPECT_EQ(c.line_pairs[0].object, "counters");
  EXPECT_EQ(c.line_pairs[0].producer_line, 10U);
}

TEST_F(CommunicationTest, TheWordsOfOneLockAreTheLock) {
  place(0x200, "__pthread_mutex_cond_lock", 20);
  code_.locations[{0, 0x200}].frames = {frame("pthread_mutex_lock", "/usr/include/pthread.h", 20)};
  code_.fields = {{0, "mutex.__data.__lock"}, {8, "mutex.__data.__owner"}, {56, "mutex.__data.__nusers"}};
  communicate(bias + 0x2000, 8, false);
  EXPECT_EQ(run().objects.at(0).sharing.kind, SharingKind::lock);
  code_.fields = {{8, "[0].mutex.__data.__owner"}, {56, "[1].mutex.__data.__lock"}};
  EXPECT_EQ(run().objects.at(0).sharing.kind, SharingKind::false_sharing) << "neighbours";
  code_.fields.clear();
  EXPECT_EQ(run().objects.at(0).sharing.kind, SharingKind::false_sharing) << "not known";
  code_.globals[0].second.bytes = 40;
  communicate(bias + 0x2000, 8, false);
  timelines_.back().communications[0].producer.bytes = LineBytes::range(16, 8);
  timelines_.erase(timelines_.begin());
  watches_.erase(watches_.begin());
  EXPECT_EQ(run().objects.at(0).sharing.kind, SharingKind::lock) << "no more than a lock has room there";
}

TEST_F(CommunicationTest, FunctionsWithoutNamesAreToldByWhereTheyAre) {
  for (const std::uint64_t begin : {0x100ULL, 0x200ULL}) {
    symbolizer::CodeLocation location;
    location.function_begin = begin;
    code_.locations[{0, begin}] = location;
  }
  communicate(bias + 0x2000, 8, true);
  const Communication c = run();
  ASSERT_EQ(c.line_pairs.size(), 1U);
  EXPECT_EQ(c.line_pairs[0].producer_function, "app+0x100");
  EXPECT_EQ(c.line_pairs[0].consumer_function, "app+0x200");
  EXPECT_EQ(c.line_pairs[0].consumer_line, 0U);
  EXPECT_TRUE(is_unknown(frame("app+0x100")));
  EXPECT_TRUE(is_unknown(frame("[app]")));
  EXPECT_FALSE(is_unknown(frame("operator+(0xdeadline)")));
}

TEST_F(CommunicationTest, HeapBlocksAreNamedByTheirAllocationSite) {
  for (const std::uint64_t begin : {0x500000ULL, 0x600000ULL}) {
    profile::BlockRow block;
    block.begin = begin;
    block.bytes = 256;
    block.time_ns = 10;
    block.stack = StackId{3};
    block_rows_.push_back(block);
    communicate(begin + 64, 0, true);
  }
  // Return addresses: in malloc's library first, then just after the call in make_queue(), then in main().
  code_.stacks[StackId{3}] = {0x900010, 0x900020, bias + 0x400, bias + 0x410};
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.objects[0].name, "heap block allocated at app.cpp:31 in make_queue");
  EXPECT_EQ(c.objects[0].allocated_at, "app.cpp:31 make_queue");
  EXPECT_EQ(c.objects[0].kind, ObjectKind::heap);
  EXPECT_EQ(c.objects[0].size, 256U);
  EXPECT_EQ(c.objects[0].blocks, 2U);
  EXPECT_EQ(c.objects[0].site, "") << "it is all of them";
  ASSERT_EQ(c.objects[0].allocation_path.size(), 2U);
  EXPECT_EQ(c.objects[0].allocation_path[1].function, "main");
  EXPECT_EQ(c.objects[0].offsets[0].offset, 64U);
}

TEST_F(CommunicationTest, BlocksThatCostWhatOthersDoNotAreTold) {
  for (std::uint32_t i = 0; i < 5; ++i) {
    profile::BlockRow block;
    block.begin = 0x500000 + i * 0x1000ULL;
    block.bytes = 256;
    block.site = bias + 0x310;
    block_rows_.push_back(block);
    for (int watch = 0; watch < 6; ++watch) {
      communicate(block.begin, 0, true, i == 2 ? 100 * ms : ms);
    }
  }
  sampled_ = {{ThreadId{1}, 0x502000, 8, 5, 0, 1000}, {ThreadId{1}, 0x503000, 8, 3, 0, 1000}};
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 2U);
  EXPECT_EQ(c.objects[0].name, "heap block #3 of 5 allocated at app.cpp:31 in make_queue");
  EXPECT_EQ(c.objects[0].place, "#3 of 5 allocated at app.cpp:31 in make_queue");
  EXPECT_EQ(c.objects[0].site, "heap block allocated at app.cpp:31 in make_queue");
  EXPECT_EQ(c.objects[0].blocks, 1U);
  EXPECT_EQ(c.objects[0].size, 256U);
  EXPECT_NEAR(c.objects[0].cost_s, 0.6, 1e-9);
  EXPECT_EQ(c.objects[1].name, "heap block #1-2, #4-5 of 5 allocated at app.cpp:31 in make_queue");
  EXPECT_EQ(c.objects[1].blocks, 4U);
  std::uint64_t loads = 0;
  for (const OffsetRow& row : c.objects[0].offsets) {
    loads += row.loads;
  }
  EXPECT_EQ(loads, 5U + 6U) << "samples are filed with the block that they are of";
  EXPECT_EQ(c.line_pairs[0].object, c.objects[0].name);
}

TEST_F(CommunicationTest, BlocksOfDifferentSizesHaveNoSize) {
  for (const std::uint64_t bytes : {128ULL, 256ULL}) {
    profile::BlockRow block;
    block.begin = 0x500000 + bytes * 0x1000;
    block.bytes = bytes;
    block.site = bias + 0x310;
    block_rows_.push_back(block);
    communicate(block.begin, 0, true);
  }
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_FALSE(c.objects[0].size);
}

TEST_F(CommunicationTest, MemoryIsReused) {
  profile::BlockRow old;
  old.begin = 0x500000;
  old.bytes = 64;
  old.time_ns = 10;
  old.site = bias + 0x310;
  profile::BlockRow young = old;
  young.time_ns = 500;
  young.site = bias + 0x410;
  profile::BlockRow future = old;
  future.time_ns = 5000;
  block_rows_ = {old, young, future};
  communicate(0x500000, 0, true);
  EXPECT_EQ(run().objects[0].name, "heap block allocated at app.cpp:50 in main");
}

/// Threads 0 and 1 in processes of their own, which have `inode` mapped at different addresses.
class BetweenProcesses : public CommunicationTest {
 protected:
  static constexpr std::uint64_t in_producer = 0x7000'0000, in_consumer = 0x7f00'0000;
  BetweenProcesses() {
    processes_.resize(2);
    processes_[1].id = ProcessId{1};
    processes_[1].modules_of = ProcessId{0};
    threads_[1].process = ProcessId{1};
    threads_[1].stack_low = threads_[1].stack_high = threads_[1].thread_pointer = 0;
  }
  void map(std::uint32_t process, std::uint64_t begin, std::uint64_t file_offset, std::uint64_t inode,
           const char* name) {
    shared_rows_.push_back({ProcessId{process}, 10, begin, 0x2000, file_offset, 1, inode, name});
  }
  void exchange(std::uint64_t producer_line, std::uint64_t consumer_line) {
    communicate(consumer_line, 0, true);
    timelines_.back().communications[0].producer.line = timelines_.back().accesses[0].line = producer_line;
  }
};

TEST_F(BetweenProcesses, OneObjectAtTwoAddresses) {
  map(0, in_producer, 0, 77, "/memfd:table (deleted)");
  map(1, in_consumer, 0x1000, 77, "/memfd:table (deleted)");  // another part of it
  exchange(in_producer + 0x1040, in_consumer + 0x40);
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.objects[0].name, "memfd table");
  EXPECT_EQ(c.objects[0].kind, ObjectKind::shared);
  ASSERT_EQ(c.objects[0].offsets.size(), 2U);
  EXPECT_EQ(c.objects[0].offsets[0].offset, 0x1040U);
  EXPECT_EQ(c.objects[0].offsets[1].offset, 0x1040U) << "the same byte for both";
  EXPECT_NE(c.objects[0].offsets[0].thread, c.objects[0].offsets[1].thread);
}

TEST_F(BetweenProcesses, NamedAsAUserKnowsThem) {
  const std::pair<const char*, const char*> names[] = {{"/dev/zero (deleted)", "anonymous shared memory"},
                                                       {"/SYSV0000002a (deleted)", "System V segment 0x0000002a"},
                                                       {"/dev/shm/queue", "/dev/shm/queue"}};
  std::uint64_t begin = in_consumer;
  for (const auto& [name, known_as] : names) {
    shared_rows_ = {{ProcessId{1}, 10, begin, 0x2000, 0, 1, begin, name}};
    timelines_.clear();
    watches_.clear();
    exchange(begin, begin);
    EXPECT_EQ(run().objects.at(0).name, known_as);
    begin += 0x10000;
  }
}

TEST_F(BetweenProcesses, OtherMemoryOfTheSameNameIsAnotherObject) {
  map(1, in_consumer, 0, 77, "/dev/zero (deleted)");
  map(1, in_consumer + 0x10000, 0, 78, "/dev/zero (deleted)");
  exchange(in_consumer, in_consumer);
  exchange(in_consumer + 0x10000, in_consumer + 0x10000);
  EXPECT_EQ(run().objects.size(), 2U);
}

TEST_F(BetweenProcesses, APlaceThatIsPrivateLaterIsNoSharedMemory) {
  map(1, in_consumer, 0, 77, "/memfd:table (deleted)");
  profile::BlockRow block;
  block.process = ProcessId{1};
  block.begin = in_consumer;
  block.bytes = 0x2000;
  block.time_ns = 10;  // the mapping's own, seen at the same time
  block_rows_ = {block};
  exchange(in_consumer, in_consumer);
  EXPECT_EQ(run().objects.at(0).kind, ObjectKind::shared);
  block.time_ns = 500;
  block_rows_.push_back(block);
  EXPECT_EQ(run().objects.at(0).kind, ObjectKind::heap);
}

TEST_F(CommunicationTest, StacksThreadLocalsAndUnknownMemory) {
  communicate(0x708000, 0, true, 4 * ms);
  communicate(0x70f000 - 0x100, 0x10, true, 3 * ms);
  communicate(0xa00000, 0, true, 2 * ms);
  communicate(bias + 0x2800, 0, true, 1 * ms);
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 4U);
  EXPECT_EQ(c.objects[0].name, "stack of thread 1");
  EXPECT_EQ(c.objects[1].name, "mine");
  EXPECT_EQ(c.objects[1].kind, ObjectKind::tls);
  EXPECT_EQ(c.objects[2].name, "memory at 0xa00000");
  EXPECT_EQ(c.objects[2].kind, ObjectKind::unknown);
  EXPECT_FALSE(c.objects[2].size);
  EXPECT_EQ(c.objects[3].name, "data of app");
}

TEST_F(CommunicationTest, AVariableInAFrameOfAThreadsStack) {
  const std::uint64_t frame_end = 0x708000;
  communicate(frame_end - 64, 8, true);
  communicate(frame_end - 128, 0, true);  // of the same frame, in no variable
  communicate(0x706000, 0, true);         // below the stack pointer: of a call that was not under way
  code_.frames[StackId{9}] = {{bias + 0x214, frame_end - 512, frame_end - 256},
                              {bias + 0x401, frame_end - 256, frame_end},
                              {bias + 0x301, frame_end, 0}};
  symbolizer::StackVariable variable;
  variable.name = "tallies";
  variable.begin = static_cast<std::uint64_t>(-64);
  variable.type = {0, "Tally[4]", 64};
  variable.declared = {"/src/app.cpp", 48};
  code_.stack_variables[0x400] = variable;
  stacks_.want(StackId{9}, ThreadId{1}, {ProcessId{0}, 500});
  const Communication c = run();
  std::map<std::string, const ObjectRow*> objects;
  for (const ObjectRow& object : c.objects) {
    objects[object.name] = &object;
  }
  ASSERT_EQ(objects.size(), 2U);
  ASSERT_TRUE(objects.contains("tallies"));
  EXPECT_EQ(objects["tallies"]->kind, ObjectKind::stack);
  EXPECT_EQ(objects["tallies"]->size, 64U);
  EXPECT_EQ(objects["tallies"]->allocated_at, "app.cpp:48 main, on the stack of thread 1");
  ASSERT_FALSE(objects["tallies"]->offsets.empty());
  EXPECT_EQ(objects["tallies"]->offsets[0].offset, 8U);
  EXPECT_TRUE(objects.contains("stack of thread 1"));
}

TEST_F(CommunicationTest, CallPathsAreSharesOfTheRow) {
  communicate(bias + 0x2000, 0, true, 3 * ms);
  communicate(bias + 0x2000, 0, true, 1 * ms);
  timelines_[1].communications[0].consumer.stack = StackId{8};
  code_.stacks[StackId{7}] = {bias + 0x214, bias + 0x410};
  code_.stacks[StackId{8}] = {bias + 0x214, bias + 0x310};
  const Communication c = run();
  ASSERT_EQ(c.lines[0].call_paths.size(), 2U);
  EXPECT_NEAR(c.lines[0].call_paths[0].weight, 0.75, 1e-12);
  ASSERT_EQ(c.lines[0].call_paths[0].frames.size(), 2U);
  EXPECT_EQ(c.lines[0].call_paths[0].frames[0].function, "consumer");
  EXPECT_EQ(c.lines[0].call_paths[0].frames[1].function, "main");
  EXPECT_TRUE(c.lines[1].call_paths.empty());
}

TEST_F(CommunicationTest, ALibrarysAccessWithoutAStackTakesTheCallersOfThoseWithOne) {
  symbolizer::CodeLocation unlock;
  unlock.frames = {frame("pthread_mutex_unlock", "pthread_mutex_unlock.c", 62)};
  code_.locations[{1, 0x100}] = code_.locations[{1, 0x180}] = unlock;
  code_.stacks[StackId{7}] = {0x900104, bias + 0x214};
  code_.stacks[StackId{8}] = {0x900104, bias + 0x110};
  const auto from_library = [&](std::uint64_t line, StackId stack, std::uint64_t instruction = 0x900100) {
    communicate(line, 0, true);
    timelines_.back().communications[0].consumer.instruction = instruction;
    timelines_.back().communications[0].consumer.stack = stack;
  };
  from_library(bias + 0x2000, StackId{});  // before those that it is named after
  from_library(bias + 0x2000, StackId{7});
  from_library(bias + 0x2000, StackId{});
  from_library(bias + 0x2000, StackId{});
  from_library(bias + 0x2000, StackId{8});
  from_library(bias + 0x2000, StackId{7});
  from_library(bias + 0x2040, StackId{});  // another line of data: nobody was seen there
  for (int i = 0; i < 3; ++i) {
    from_library(bias + 0x2000, StackId{}, 0x900180);  // another instruction of the function
  }
  const Communication c = run();
  std::map<std::string, double> costs;  // by function
  for (const LineRow& row : c.lines) {
    if (row.role == Role::consumer) {
      costs[row.function] += row.cost_s * 1e3;
    }
  }
  EXPECT_NEAR(costs["consumer"], 6, 1e-9);  // 2, and 2 of 3 twice
  EXPECT_NEAR(costs["producer"], 3, 1e-9);  // 1, and 1 of 3 twice
  EXPECT_NEAR(costs["pthread_mutex_unlock"], 1, 1e-9);
}

TEST_F(CommunicationTest, ElementsThatAreUsedAlikeAreOneField) {
  code_.globals = {{0, {"items", 0x2000, 0x1000, {}}}};
  code_.fields.clear();
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::string element = "[" + std::to_string(i / 4) + "].lines[" + std::to_string(i % 4) + "]";
    code_.fields[i * 64] = element + ".value";
    code_.fields[i * 64 + 8] = element + ".next";
    communicate(bias + 0x2000 + i * 64, 0, true, ms);
  }
  communicate(bias + 0x2000, 8, true, 3 * ms);
  EXPECT_EQ(run().objects.at(0).field, "[*].lines[*].value") << "no element stands out";
  communicate(bias + 0x2000 + 6 * 64, 0, true, 10 * ms);
  communicate(bias + 0x2000 + 5 * 64, 0, true, 10 * ms);
  communicate(bias + 0x2000 + 4 * 64, 0, true, 10 * ms);
  communicate(bias + 0x2000 + 7 * 64, 0, true, 10 * ms);
  EXPECT_EQ(run().objects.at(0).field, "[1].lines[*].value") << "most is in one of the outer array";
  communicate(bias + 0x2000 + 6 * 64, 0, true, 40 * ms);
  EXPECT_EQ(run().objects.at(0).field, "[1].lines[2].value");
}

/// Accesses of the C library by thread 1 or another one.
class InLibrary : public CommunicationTest {
 protected:
  InLibrary() {
    symbolizer::CodeLocation lock;
    lock.frames = {frame("pthread_mutex_lock", "pthread_mutex_lock.c", 80)};
    code_.locations[{1, 0x100}] = lock;
    code_.stacks[StackId{7}] = {0x900104, bias + 0x214};
    code_.stacks[StackId{8}] = {0x900104, bias + 0x110};
  }
  void access(std::uint64_t line, StackId stack, std::uint32_t thread = 1) {
    communicate(line, 0, true);
    AccessPoint& consumer = timelines_.back().communications[0].consumer;
    consumer.instruction = 0x900100;
    consumer.stack = stack;
    consumer.thread = ThreadId{thread};
  }
  std::map<std::string, double> costs() {  // of consumers, by function
    std::map<std::string, double> costs;
    for (const LineRow& row : run().lines) {
      if (row.role == Role::consumer) {
        costs[row.function] += row.cost_s * 1e3;
        EXPECT_EQ(row.caller_known, row.function != "pthread_mutex_lock");
      }
    }
    return costs;
  }
};

TEST_F(InLibrary, ACallerThatAllStacksAgreeOnIsTheCallerOnOtherLinesToo) {
  access(bias + 0x2000, StackId{7});
  access(bias + 0x2040, StackId{});  // no stack was seen with that line of data
  access(bias + 0x2080, StackId{}, 2);
  EXPECT_EQ(costs(), (std::map<std::string, double>{{"consumer", 3}}));
}

TEST_F(InLibrary, AThreadsOwnStacksCountBeforeOthers) {
  access(bias + 0x2000, StackId{7});
  access(bias + 0x2000, StackId{8}, 2);
  access(bias + 0x2040, StackId{});
  access(bias + 0x2040, StackId{}, 2);
  EXPECT_EQ(costs(), (std::map<std::string, double>{{"consumer", 2}, {"producer", 2}}));
}

TEST_F(InLibrary, WhereStacksDisagreeNoCallerIsNamed) {
  access(bias + 0x2000, StackId{7});
  access(bias + 0x2000, StackId{8});
  access(bias + 0x2040, StackId{});
  EXPECT_EQ(costs(), (std::map<std::string, double>{{"consumer", 1}, {"producer", 1}, {"pthread_mutex_lock", 1}}));
  const Communication c = run();
  const auto of_library = std::find_if(c.line_pairs.begin(), c.line_pairs.end(),
                                       [](const LinePair& p) { return p.consumer_function == "pthread_mutex_lock"; });
  ASSERT_NE(of_library, c.line_pairs.end());
  EXPECT_FALSE(of_library->consumer_caller_known);
  EXPECT_TRUE(of_library->producer_caller_known);
}

TEST_F(InLibrary, FieldsThatThreadsWaitAtAreToldApart) {
  symbolizer::CodeLocation wait;
  wait.frames = {frame("pthread_cond_wait", "pthread_cond_wait.c", 400)};
  code_.locations[{1, 0x200}] = wait;
  code_.fields = {{0, "mutex"}, {8, "mutex"}, {40, "ready"}, {56, "head"}};
  code_.stacks[StackId{9}] = {0x900204, bias + 0x214};
  const auto at = [&](std::uint64_t offset, std::uint64_t instruction, StackId stack, std::uint64_t cpu_ns) {
    communicate(bias + 0x2000, offset, true, cpu_ns);
    timelines_.back().communications[0].consumer.instruction = instruction;
    timelines_.back().communications[0].consumer.stack = stack;
  };
  at(0, 0x900100, StackId{7}, 3 * ms);
  at(8, 0x900100, StackId{7}, 1 * ms);
  at(40, 0x900200, StackId{9}, 2 * ms);
  at(56, bias + 0x210, StackId{}, 5 * ms);  // data
  const Communication c = run();
  ASSERT_EQ(c.objects.size(), 1U);
  const std::vector<SyncField>& fields = c.objects[0].sync_fields;
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].field, "mutex");
  EXPECT_EQ(fields[0].kind, SharingKind::lock);
  EXPECT_NEAR(fields[0].cost_s, 0.004, 1e-9);
  EXPECT_EQ(fields[1].field, "ready");
  EXPECT_EQ(fields[1].kind, SharingKind::condition);
}

TEST_F(InLibrary, TheLowestWordsOfAStackTellTheCaller) {
  const AddressSpaces spaces(processes_, modules_);
  const ProgramView view(processes_, threads_, spaces, code_);
  NearCallers near(view, stacks_);
  profile::TrapRow trap;
  trap.thread = ThreadId{1};
  trap.time_ns = 1000;
  trap.ip = 0x900104;
  EXPECT_EQ(near.of(trap).value, 0U) << "it came without words";
  trap.frame.emplace();
  code_.stacks[StackId{}] = {0x900104};
  EXPECT_EQ(near.of(trap).value, 0U) << "they do not reach out of the library";
  code_.stacks[StackId{}] = {0x900104, 0x900180, bias + 0x310, bias + 0x410};
  const StackId caller = near.of(trap);
  EXPECT_TRUE(StackTable::is_beginning(caller));
  EXPECT_EQ(stacks_.addresses(caller).size(), 3U) << "the first of the program's own is the last";
  EXPECT_EQ(near.of(trap), caller) << "the same way is entered once";
  trap.stack = StackId{7};
  EXPECT_EQ(near.of(trap).value, 0U) << "the whole stack was copied";
  trap.stack = {};
  trap.ip = bias + 0x214;
  EXPECT_EQ(near.of(trap).value, 0U) << "it is the program's own";
  code_.stacks.erase(StackId{});

  access(bias + 0x2000, caller);
  const Communication c = run();
  ASSERT_EQ(c.lines.size(), 2U);
  const LineRow& row = c.lines[0].role == Role::consumer ? c.lines[0] : c.lines[1];
  EXPECT_EQ(row.function, "make_queue");
  EXPECT_EQ(row.through, "pthread_mutex_lock");
  EXPECT_TRUE(row.call_paths.empty()) << "it is no whole path";
}

TEST_F(CommunicationTest, MostCostFirstAndCut) {
  communicate(0xa00000, 0, true, 1 * ms);
  communicate(0xb00000, 0, true, 5 * ms);
  communicate(0xc00000, 0, true, 1 * ms);
  Communication c = run();
  ASSERT_EQ(c.objects.size(), 3U);
  EXPECT_EQ(c.objects[0].name, "memory at 0xb00000");
  EXPECT_EQ(c.objects[1].name, "memory at 0xa00000");
  max_rows_ = 1;
  c = run();
  EXPECT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.lines.size(), 1U);
}

TEST_F(CommunicationTest, NothingSeenNothingListed) {
  const Communication c = run();
  EXPECT_TRUE(c.cells.empty());
  EXPECT_TRUE(c.objects.empty());
  EXPECT_TRUE(c.lines.empty());
}

}  // namespace
}  // namespace crosstalk::attribution::test::communication_test
