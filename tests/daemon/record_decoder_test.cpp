// SPDX-License-Identifier: Apache-2.0
// Records in, rows out, without a kernel: identities, relations, impossible records.
#include "daemon/record_decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "profile/ring.h"
#include "tests/daemon/collected_rows.h"

namespace crosstalk::daemon::record_decoder_test {
namespace {

using namespace profile;

/// Bytes of one record as they would lie in a ring.
template <class Record>
std::vector<std::byte> bytes_of(Record record, RecordType type, const std::string& tail = {}) {
  std::vector<std::byte> bytes(record_bytes(sizeof record, tail.size()));
  record.header = {type, static_cast<std::uint16_t>(bytes.size()), static_cast<std::uint32_t>(tail.size())};
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, tail.data(), tail.size());
  return bytes;
}

class Interpreter : public ::testing::Test {
 protected:
  using Pass = std::vector<std::pair<std::uint32_t, std::vector<std::byte>>>;

  /// One pass over the rings: slots with their records.
  void pass(const Pass& records) {
    for (const auto& [slot, bytes] : records) {
      const std::uint32_t of = slot;
      parse_records(bytes, [&](const RecordView& record) { decoder_.announce(of, record); });
    }
    for (const auto& [slot, bytes] : records) {
      const std::uint32_t of = slot;
      const ParseOutcome outcome = parse_records(bytes, [&](const RecordView& record) { decoder_.decode(of, record); });
      EXPECT_FALSE(outcome.corrupt);
    }
  }

  static std::vector<std::byte> process_start(std::int32_t pid, std::uint64_t time, std::int32_t parent = 0) {
    ProcessStart start;
    start.pid = pid;
    start.time_ns = time;
    start.parent_pid = parent;
    start.after_fork = parent != 0 ? 1 : 0;
    return bytes_of(start, RecordType::process_start, std::string("/bin/a b\0a\0b c\0it's", 19));
  }
  static std::vector<std::byte> thread_start(std::int32_t pid, std::int32_t tid, std::uint64_t time) {
    ThreadStart start;
    start.pid = pid;
    start.tid = tid;
    start.time_ns = time;
    std::memcpy(start.name, "sixteen bytes xx", 16);  // no NUL
    return bytes_of(start, RecordType::thread_start);
  }
  static std::vector<std::byte> sample(std::uint64_t time, std::uint32_t watch = 0) {
    Sample s;
    s.time_ns = time;
    s.ip = 0x1234;
    s.watch = watch;
    s.registers[Register::rbx] = time + 1;
    return bytes_of(s, RecordType::sample);
  }
  static WatchOpen an_opening(std::uint32_t watch) {
    WatchOpen open;
    open.watch = watch;
    open.time_ns = 1000;
    open.line = 0x4000;
    open.words = 2;
    open.word[0] = {0, 8, 0, 0.5F};
    open.word[1] = {8, 8, 0, 0.25F};
    return open;
  }
  static std::vector<std::byte> closing(std::uint32_t watch) {
    WatchClose close;
    close.watch = watch;
    close.time_ns = 2000;
    close.reason = CloseReason::full;
    return bytes_of(close, RecordType::watch_close);
  }

  /// Slot 0 becomes thread 11 of process 10.
  void begin() {
    decoder_.open_slot(0, 10, 11, 100);
    pass({{0, thread_start(10, 11, 100)}, {0, process_start(10, 101)}});
  }

  CollectedRows sink_;
  std::vector<std::pair<std::int32_t, std::string>> identified_;
  RecordDecoder decoder_{sink_, [this](std::int32_t pid, profile::ModuleRow& row) {
                           identified_.emplace_back(pid, row.path);
                           row.content_hash = row.build_id.empty() ? 4711U : 0;
                         }};
};

TEST_F(Interpreter, HowProcessesWereObserved) {
  std::vector<std::byte> bytes = process_start(10, 101);
  ProcessStart start;
  std::memcpy(&start, bytes.data(), sizeof start);
  start.observation = Observation::injected;
  std::memcpy(bytes.data(), &start, sizeof start);
  decoder_.open_slot(0, 10, 11, 100);
  pass({{0, thread_start(10, 11, 100)}, {0, bytes}});
  ProcessRow row;
  row.pid = 10;
  row.begin_ns = 200;
  row.command = "static";
  row.unobserved_because = "it is statically linked";
  decoder_.add_unobserved(row);
  start.pid = 12;
  start.observation = static_cast<Observation>(77);
  std::memcpy(bytes.data(), &start, sizeof start);
  decoder_.open_slot(1, 12, 12, 100);
  pass({{1, thread_start(12, 12, 100)}, {1, bytes}});
  decoder_.flush(300);
  ASSERT_EQ(sink_.processes.size(), 3U);
  EXPECT_EQ(sink_.processes[0].observation, Observation::injected);
  EXPECT_EQ(sink_.processes[1].observation, Observation::none);
  EXPECT_EQ(sink_.processes[1].unobserved_because, "it is statically linked");
  EXPECT_EQ(sink_.processes[2].observation, Observation::unknown);
  EXPECT_EQ(decoder_.process_table().processes_begun(), 2U);
  EXPECT_EQ(decoder_.process_table().latest_process(10), ProcessId{0}) << "it may still have records to come";
  decoder_.evict(300);
  EXPECT_EQ(decoder_.process_table().known_processes(), 2U);
}

TEST_F(Interpreter, AProgramThatTheLibraryStaysOutOf) {
  begin();
  Message message;
  std::strncpy(message.code, "not_observed", sizeof message.code - 1);
  pass({{0, bytes_of(message, RecordType::message, "it is in a filter")}});
  decoder_.flush(300);
  EXPECT_EQ(sink_.processes[0].observation, Observation::none);
  EXPECT_EQ(sink_.processes[0].unobserved_because, "it is in a filter");
}

TEST_F(Interpreter, WhereAThreadWasMadeToBegin) {
  begin();
  ThreadStart start;
  start.pid = 10, start.tid = 12, start.time_ns = 150;
  decoder_.open_slot(1, 10, 12, 150);
  pass({{1, bytes_of(start, RecordType::thread_start, std::string("\x34\x12\0\0\0\0\0\x01", 8))}});
  decoder_.open_slot(2, 10, 13, 160);
  start.tid = 13, start.time_ns = 160;
  pass({{2, bytes_of(start, RecordType::thread_start, "odd")}});
  decoder_.flush(200);
  EXPECT_EQ(sink_.threads.at(0).start_routine, 0U);
  EXPECT_EQ(sink_.threads.at(1).start_routine, 0x0100000000001234U);
  EXPECT_EQ(sink_.threads.at(2).start_routine, 0U) << "no address";
}

TEST_F(Interpreter, ModulesAreCompletedByWhatIdentifiesTheirFiles) {
  begin();
  ModuleLoad load;
  load.begin = 0x1000, load.end = 0x2000, load.time_ns = 110;
  pass({{0, bytes_of(load, RecordType::module_load, "/bin/old")}});
  load.begin = 0x3000, load.end = 0x4000, load.build_id_size = 2;
  pass({{0, bytes_of(load, RecordType::module_load, "/lib/x.so")}});
  EXPECT_EQ((sink_.modules[{0, 0x1000}].content_hash), 4711U);
  EXPECT_EQ((sink_.modules[{0, 0x3000}].content_hash), 0U);
  EXPECT_EQ(identified_, (std::vector<std::pair<std::int32_t, std::string>>{{10, "/bin/old"}, {10, "/lib/x.so"}}));
}

TEST_F(Interpreter, APartOfAFileHasTheBuildIdOfItsModule) {
  begin();
  ModuleLoad load;
  load.begin = 0x1000, load.end = 0x2000, load.time_ns = 110, load.build_id_size = 2;
  load.build_id[0] = 0xab;
  pass({{0, bytes_of(load, RecordType::module_load, "/bin/node")}});
  EXPECT_FALSE((sink_.modules[{0, 0x1000}].file_offset));
  ModuleLoad part;
  part.begin = 0x7000, part.end = 0x8000, part.time_ns = 120, part.is_part = 1, part.file_offset = 0x3000;
  pass({{0, bytes_of(part, RecordType::module_load, "/bin/node")}});
  EXPECT_EQ((sink_.modules[{0, 0x7000}].file_offset), 0x3000U);
  EXPECT_EQ((sink_.modules[{0, 0x7000}].build_id), "ab00");
}

TEST_F(Interpreter, ALaterFileHasAllThatItsRowsReferTo) {
  decoder_.keep_for_later_files();
  begin();
  ModuleLoad load;
  load.begin = 0x1000, load.end = 0x2000, load.time_ns = 110;
  Block block;
  block.begin = 0x7000, block.bytes = 64, block.time_ns = 120;
  SharedMapping mapping;
  mapping.begin = 0x10000, mapping.bytes = 4096, mapping.time_ns = 130;
  Message message;
  std::strncpy(message.code, "no_clock", sizeof message.code - 1);
  ThreadCreation creation;
  creation.time_ns = 140;
  pass({{0, bytes_of(load, RecordType::module_load, "/bin/a")},
        {0, bytes_of(block, RecordType::block)},
        {0, bytes_of(mapping, RecordType::shared_mapping, "/dev/zero")},
        {0, bytes_of(message, RecordType::message, "a text")},
        {0, bytes_of(creation, RecordType::thread_creation)}});
  decoder_.open_slot(1, 20, 20, 150);
  pass({{1, thread_start(20, 20, 150)}, {1, process_start(20, 151)}});
  decoder_.end_process(20, 160);
  decoder_.close_slot(1, 160);
  decoder_.flush(200);
  decoder_.evict(200);
  CollectedRows next;
  decoder_.begin_file(next);
  ASSERT_EQ(next.processes.size(), 1U) << "the other one has ended";
  EXPECT_EQ(next.processes[0].pid, 10);
  ASSERT_EQ(next.threads.size(), 1U);
  EXPECT_EQ(next.threads[0].tid, 11);
  EXPECT_EQ(next.modules.size(), 1U);
  EXPECT_EQ(next.blocks.size(), 1U);
  EXPECT_EQ(next.shared_mappings.size(), 1U);
  EXPECT_EQ(next.messages.size(), 1U);
  ASSERT_EQ(next.thread_creations.size(), 1U);
  ASSERT_EQ(next.stacks.size(), 1U);
  EXPECT_EQ(next.thread_creations[0].stack, next.stacks[0].id);
  EXPECT_TRUE(next.samples.empty());
  std::vector<std::string> paths;
  decoder_.for_each_module([&](const ModuleRow& row) { paths.push_back(row.path); });
  EXPECT_EQ(paths, std::vector<std::string>{"/bin/a"});
}

TEST_F(Interpreter, AThreadHasItsLastName) {
  begin();
  decoder_.rename(0, "worker\n7");
  decoder_.rename(1, "nobody");  // no thread has that slot
  decoder_.flush(200);
  EXPECT_EQ(sink_.threads.at(0).name, "worker 7");
  ThreadEnd end;
  end.time_ns = 300;
  pass({{0, bytes_of(end, RecordType::thread_end)}});
  decoder_.flush(400);
  EXPECT_EQ(sink_.threads.at(0).name, "worker 7");  // its end could not say
  std::memcpy(end.name, "last", 5);
  pass({{0, bytes_of(end, RecordType::thread_end)}});
  decoder_.flush(500);
  EXPECT_EQ(sink_.threads.at(0).name, "last");
}

TEST_F(Interpreter, AThreadCountsTheWatchesThatItOpens) {
  begin();
  pass({{0, bytes_of(an_opening(1), RecordType::watch_open)}, {0, bytes_of(an_opening(2), RecordType::watch_open)}});
  decoder_.flush(200);
  EXPECT_EQ(sink_.threads.at(0).armed, 2U);
}

TEST_F(Interpreter, AProcessAndItsThreadAreNamed) {
  begin();
  decoder_.flush(200);
  ASSERT_EQ(sink_.processes.size(), 1U);
  EXPECT_EQ(sink_.processes[0].pid, 10);
  EXPECT_EQ(sink_.processes[0].executable, "/bin/a b");
  EXPECT_EQ(sink_.processes[0].command, "a 'b c' 'it'\\''s'");
  ASSERT_EQ(sink_.threads.size(), 1U);
  EXPECT_EQ(sink_.threads[0].tid, 11);
  EXPECT_EQ(sink_.threads[0].name, "sixteen bytes xx");
  EXPECT_EQ(sink_.threads[0].process, ProcessId{0});
}

TEST_F(Interpreter, RegistersOfASampleAreKeptUnlessTheKernelHadThem) {
  begin();
  Sample in_kernel;
  in_kernel.time_ns = 130;
  in_kernel.flags = profile::sample_in_kernel;
  pass({{0, sample(120)}, {0, bytes_of(in_kernel, RecordType::sample)}});
  ASSERT_EQ(sink_.samples.size(), 2U);
  ASSERT_TRUE(sink_.samples[0].registers);
  EXPECT_EQ((*sink_.samples[0].registers)[Register::rbx], 121U);
  EXPECT_EQ((*sink_.samples[0].registers)[Register::rip], 0x1234U);
  EXPECT_FALSE(sink_.samples[1].registers);
}

TEST_F(Interpreter, AThreadFoundBeforeItsProcessInOnePassGetsIt) {
  decoder_.open_slot(0, 10, 12, 150);
  decoder_.open_slot(1, 10, 10, 150);
  pass({{0, thread_start(10, 12, 120)}, {1, thread_start(10, 10, 100)}, {1, process_start(10, 101)}});
  decoder_.flush(200);
  EXPECT_EQ(sink_.processes.size(), 1U);
  EXPECT_EQ(sink_.threads.size(), 2U);
}

TEST_F(Interpreter, ExecMakesANewProcessOfTheSamePid) {
  begin();
  EXPECT_FALSE(decoder_.superseded(0));
  decoder_.open_slot(1, 10, 10, 500);
  decoder_.open_slot(2, 10, 13, 500);
  pass({{0, sample(300)},
        {2, thread_start(10, 13, 600)},
        {1, thread_start(10, 10, 499)},
        {1, process_start(10, 500)},
        {1, sample(550)}});
  EXPECT_TRUE(decoder_.superseded(0));
  EXPECT_FALSE(decoder_.superseded(1));
  EXPECT_FALSE(decoder_.superseded(2));
  decoder_.close_slot(0, 510);
  decoder_.flush(700);
  ASSERT_EQ(sink_.processes.size(), 2U);
  EXPECT_EQ(sink_.processes[0].end_ns, 500U);
  EXPECT_EQ(sink_.processes[1].pid, 10);
  ASSERT_EQ(sink_.threads.size(), 3U);
  EXPECT_EQ(sink_.threads[0].process, ProcessId{0});
  EXPECT_EQ(sink_.threads[0].end_ns, 510U);
  EXPECT_EQ(sink_.threads[sink_.samples[1].thread.value].process, ProcessId{1});
  for (const auto& [id, thread] : sink_.threads) {
    EXPECT_EQ(thread.process, ProcessId{thread.tid == 11 ? 0U : 1U}) << thread.tid;
  }
}

SlotTotals used(std::uint64_t cpu_ns, std::uint64_t switches) {
  SlotTotals totals;
  totals.cpu_ns = cpu_ns;
  totals.switches = switches;
  return totals;
}

TEST_F(Interpreter, WhatAThreadUsedBeforeItExecutedAProgramIsCountedOnce) {
  begin();  // the thread that executes is not the process's first
  ProcessEnd exec;
  exec.time_ns = 400, exec.pid = 10, exec.exec = 1;
  ThreadEnd end;
  end.time_ns = 900, end.cpu_ns = 1000, end.voluntary_switches = 9;
  decoder_.open_slot(1, 10, 10, 500);
  pass({{1, thread_start(10, 10, 499)},
        {1, process_start(10, 500)},
        {1, bytes_of(end, RecordType::thread_end)},
        {0, bytes_of(exec, RecordType::process_end)}});
  decoder_.update_totals(1, used(1000, 9));  // the other's use is not known yet
  decoder_.update_totals(0, used(700, 5));
  decoder_.close_slot(0, 510);
  decoder_.update_totals(1, used(1000, 9));
  decoder_.close_slot(1, 950);
  decoder_.flush(960);
  EXPECT_EQ(sink_.threads[0].cpu_ns + sink_.threads[1].cpu_ns, 1000U);
  EXPECT_EQ(sink_.threads[0].switches + sink_.threads[1].switches, 9U);
}

TEST_F(Interpreter, AProgramWithTotalsOfItsOwnHasAllOfThem) {
  decoder_.open_slot(0, 10, 10, 100);
  pass({{0, thread_start(10, 10, 100)}, {0, process_start(10, 101)}});
  ProcessStart next;
  next.pid = 10, next.time_ns = 500, next.own_totals = 1;
  decoder_.open_slot(1, 10, 10, 500);
  pass({{1, thread_start(10, 10, 499)}, {1, bytes_of(next, RecordType::process_start)}});
  decoder_.update_totals(0, used(700, 5));
  decoder_.close_slot(0, 510);
  decoder_.update_totals(1, used(600, 4));
  decoder_.close_slot(1, 950);
  decoder_.flush(960);
  EXPECT_EQ(sink_.threads[0].cpu_ns, 700U);
  EXPECT_EQ(sink_.threads[1].cpu_ns, 600U);
}

TEST_F(Interpreter, ManyGenerationsInOnePassAreTakenInTheirOrder) {
  // fork, exec, exec, fork: all since the last pass, in slots of any order.
  for (const std::uint32_t slot : {0U, 1U, 2U, 3U}) {
    decoder_.open_slot(slot, slot == 0 ? 30 : 20, slot == 0 ? 30 : 20, 900);
  }
  pass({{0, thread_start(30, 30, 400)},
        {0, process_start(30, 401, 20)},
        {1, thread_start(20, 20, 300)},
        {1, process_start(20, 301)},
        {2, thread_start(20, 20, 100)},
        {2, process_start(20, 101)},
        {3, thread_start(20, 20, 200)},
        {3, process_start(20, 201)}});
  EXPECT_FALSE(decoder_.superseded(0));
  EXPECT_FALSE(decoder_.superseded(1));
  EXPECT_TRUE(decoder_.superseded(2));
  EXPECT_TRUE(decoder_.superseded(3));
  decoder_.flush(1000);
  ASSERT_EQ(sink_.processes.size(), 4U);
  EXPECT_EQ(sink_.processes[0].end_ns, 201U);
  EXPECT_EQ(sink_.processes[1].end_ns, 301U);
  EXPECT_EQ(sink_.processes[2].end_ns, 0U);
  EXPECT_EQ(sink_.processes[3].modules_of, ProcessId{2});
}

TEST_F(Interpreter, AForksChildHasItsParentsModules) {
  begin();
  ModuleLoad load;
  load.begin = 0x1000, load.end = 0x2000, load.time_ns = 110, load.build_id_size = 2;
  load.build_id[0] = 0xab;
  pass({{0, bytes_of(load, RecordType::module_load, "/lib/x.so")}});
  decoder_.open_slot(1, 20, 20, 500);
  ModuleUnload unload;
  unload.begin = 0x1000, unload.time_ns = 600;
  pass({{1, thread_start(20, 20, 500)},
        {1, process_start(20, 501, 10)},
        {1, bytes_of(unload, RecordType::module_unload)}});
  decoder_.flush(700);
  EXPECT_TRUE(sink_.processes[1].after_fork);
  EXPECT_EQ(sink_.processes[1].modules_of, ProcessId{0});
  const ModuleRow parents = sink_.modules[{0, 0x1000}];
  EXPECT_EQ(parents.build_id, "ab00");
  EXPECT_EQ(parents.path, "/lib/x.so");
  EXPECT_EQ(parents.unloaded_ns, 0U);
  const ModuleRow childs = sink_.modules[{1, 0x1000}];
  EXPECT_EQ(childs.unloaded_ns, 600U);
  EXPECT_EQ(childs.loaded_ns, 501U);
}

TEST_F(Interpreter, AProcessThatAnnouncesItselfAgainIsTheSame) {
  decoder_.open_slot(0, 10, 10, 0);
  decoder_.open_slot(1, 10, 11, 0);
  pass({{0, thread_start(10, 10, 100)}, {0, process_start(10, 101)}, {1, thread_start(10, 11, 110)}});
  pass({{0, process_start(10, 200)}});
  decoder_.flush(0);
  EXPECT_EQ(sink_.processes.size(), 1U);
  EXPECT_FALSE(decoder_.superseded(0));
  EXPECT_FALSE(decoder_.superseded(1));
}

TEST_F(Interpreter, WhatIsOverIsForgotten) {
  constexpr std::uint64_t second = 1'000'000'000;
  std::uint64_t now_ns = 100;
  begin();
  for (int i = 0; i < 1000; ++i, now_ns += second / 10) {  // a child with a thread and modules, again and again
    const std::int32_t pid = 1000 + i;
    decoder_.open_slot(1, pid, pid, now_ns);
    pass({{1, thread_start(pid, pid, now_ns)}, {1, process_start(pid, now_ns, i == 0 ? 10 : pid - 1)}});
    ModuleLoad load;
    load.begin = 0x1000, load.end = 0x2000, load.time_ns = now_ns;
    pass({{1, bytes_of(load, RecordType::module_load, "/lib/x.so")}});
    decoder_.close_slot(1, now_ns + 1);
    decoder_.end_process(pid, now_ns + 1);
    decoder_.flush(now_ns + 1);
    decoder_.evict(now_ns + 1);
  }
  EXPECT_LT(decoder_.process_table().known_processes(), 100U);
  EXPECT_EQ(decoder_.process_table().known_threads(), 1U);
  EXPECT_EQ(sink_.processes.size(), 1001U);
  EXPECT_EQ(sink_.threads.size(), 1001U);
  EXPECT_GT(sink_.threads[1000].end_ns, 0U);
  pass({{0, sample(now_ns)}});  // the remaining threads go on
  EXPECT_EQ(sink_.samples.back().thread, ThreadId{0});
}

TEST_F(Interpreter, WhatThreadsHaveSpentIsKeptInSum) {
  begin();
  SlotTotals totals;
  totals.cpu_ns = 1000, totals.handlers_ns = 10;
  decoder_.update_totals(0, totals);
  decoder_.close_slot(0, 200);
  decoder_.flush(200);
  decoder_.evict(200);
  EXPECT_EQ(decoder_.process_table().known_threads(), 0U);
  EXPECT_EQ(decoder_.process_table().spent().cpu_ns, 1000U);
  EXPECT_EQ(decoder_.process_table().spent().observing_ns, 10U);
}

TEST_F(Interpreter, WaitsArePutWhenThereAreMore) {
  begin();
  const ThreadWaitRow all{{}, WaitKind::all, 0, 500, 2};
  const ThreadWaitRow lock{{}, WaitKind::mutex, 0x401000, 500, 2};
  decoder_.update_waits(0, {all, lock});
  decoder_.update_waits(0, {all, lock});
  ASSERT_EQ(sink_.thread_waits.size(), 2U);
  EXPECT_EQ(sink_.thread_waits[1].thread, ThreadId{0});
  EXPECT_EQ(sink_.thread_waits[1].site, 0x401000U);
  decoder_.put_everything();  // earlier rows may be lost
  decoder_.update_waits(0, {all, lock});
  EXPECT_EQ(sink_.thread_waits.size(), 4U);
  decoder_.update_waits(0, {});  // not measured
  EXPECT_EQ(sink_.thread_waits.size(), 4U);
}

TEST_F(Interpreter, SamplesAreOfTheRegionThatTheirThreadIsIn) {
  begin();
  RegionsSeen seen;
  seen.nodes.push_back({0, "outer", 1, 5, {}});
  seen.nodes.push_back({1, "inner", 1, 5, {}});
  decoder_.learn_regions(0, seen);
  Sample record;
  record.time_ns = 1000;
  for (const std::uint16_t node : {0, 2, 3}) {
    record.region = node;
    pass({{0, bytes_of(record, RecordType::sample)}});
  }
  ASSERT_EQ(sink_.samples.size(), 3U);
  EXPECT_EQ(sink_.samples[0].region, RegionId{});
  EXPECT_EQ(sink_.samples[1].region, RegionId{2});
  EXPECT_EQ(sink_.samples[2].region, RegionId{}) << "of a node that is not known";
  EXPECT_TRUE(sink_.thread_regions.empty());
  decoder_.update_regions(0, seen);
  ASSERT_EQ(sink_.thread_regions.size(), 2U);
  EXPECT_EQ(sink_.thread_regions[1].thread, ThreadId{0});
}

TEST_F(Interpreter, SamplesOfThreadsThatWaitOnTheProcessorAreKept) {
  begin();
  Sample record;
  record.time_ns = 1000;
  record.flags = all_sample_flags;
  pass({{0, bytes_of(record, RecordType::sample)}});
  ASSERT_EQ(sink_.samples.size(), 1U);
  EXPECT_EQ(sink_.samples[0].flags & sample_waiting, sample_waiting);
  EXPECT_EQ(decoder_.malformed(), 0U);
}

TEST_F(Interpreter, ALostProcessStartLeavesAProcessWithoutAName) {
  decoder_.open_slot(3, 10, 11, 100);
  pass({{3, sample(200)}});
  decoder_.flush(300);
  ASSERT_EQ(sink_.processes.size(), 1U);
  EXPECT_EQ(sink_.processes[0].pid, 10);
  EXPECT_EQ(sink_.processes[0].executable, "");
  ASSERT_EQ(sink_.threads.size(), 1U);
  EXPECT_EQ(sink_.threads[0].tid, 11);
  EXPECT_EQ(sink_.samples.size(), 1U);
}

TEST_F(Interpreter, AWatchIsJoinedWhateverTheOrder) {
  begin();
  const auto opening = [](std::uint32_t watch) { return bytes_of(an_opening(watch), RecordType::watch_open); };
  pass({{0, closing(1)}, {0, opening(1)}, {0, sample(1000, 1)}});
  pass({{0, sample(1000, 2)}, {0, opening(2)}});
  EXPECT_EQ(sink_.watches.count(1), 1U);
  EXPECT_EQ(sink_.watches[1].close, CloseReason::full);
  EXPECT_EQ(sink_.watches[1].sample_ip, 0x1234U);
  EXPECT_EQ(sink_.watches[1].words.size(), 2U);
  EXPECT_FALSE(sink_.watches[2].close.has_value());
  pass({{0, closing(2)}, {0, opening(3)}});
  EXPECT_EQ(sink_.watches[2].close, CloseReason::full);
  EXPECT_EQ(sink_.watches.count(3), 0U);  // its sample may come
  decoder_.flush(1000 + RecordDecoder::patience_ns + 1);
  EXPECT_EQ(sink_.watches.count(3), 1U);
  EXPECT_EQ(decoder_.watches(), 3U);
}

TEST_F(Interpreter, AProbeTakesThePlaceOfAWatchThatIsOver) {
  begin();
  LineProbe probe;
  probe.watch = 4, probe.time_ns = 1000, probe.line = 0x4000, probe.changed = 0xff00, probe.gap_ns = 700;
  probe.threads = 3, probe.suspected = 1, probe.value = 99, probe.value_bytes = 8;
  LineProbe hostile = probe;
  hostile.watch = 5, hostile.value_bytes = 9;
  LineProbe crooked = probe;
  crooked.watch = 6, crooked.line = 0x4001;
  pass({{0, bytes_of(probe, RecordType::line_probe)},
        {0, bytes_of(hostile, RecordType::line_probe)},
        {0, bytes_of(crooked, RecordType::line_probe)},
        {0, sample(1000, 4)}});
  EXPECT_EQ(decoder_.malformed(), 2U);
  ASSERT_EQ(sink_.watches.count(4), 1U);
  const WatchRow& row = sink_.watches[4];
  EXPECT_EQ(row.probe, (ProbedLine{0xff00, 700, 99, 8}));
  EXPECT_EQ(row.close_ns, 1700U);
  EXPECT_EQ(row.sample_ip, 0x1234U);
  EXPECT_EQ(row.armed, 2U);
  EXPECT_TRUE(row.words.empty());
}

TEST_F(Interpreter, StacksGetAscendingIds) {
  begin();
  StackSlice slice;
  slice.registers[Register::rsp] = 0x7000;
  slice.bytes = 5;
  std::string tail(reinterpret_cast<const char*>(&slice), sizeof slice);
  tail += "stack";
  Sample s;
  s.has_stack = 1;
  Block block;
  WatchTrap trap;
  trap.watch = 1;
  trap.has_stack = 1;
  trap.has_frame = 1;
  trap.frame[5] = 77;
  trap.has_state = 1;
  trap.state.word[3] = 99;
  trap.stack = slice;
  pass({{0, bytes_of(s, RecordType::sample, tail)},
        {0, bytes_of(block, RecordType::block)},
        {0, bytes_of(trap, RecordType::watch_trap, "stack")}});
  ASSERT_EQ(sink_.stacks.size(), 2U);
  EXPECT_EQ(sink_.samples[0].stack, StackId{1});
  EXPECT_EQ(sink_.blocks.size(), 1U);
  EXPECT_EQ(sink_.traps[0].stack, StackId{2});
  ASSERT_TRUE(sink_.traps[0].frame);
  EXPECT_EQ(sink_.traps[0].frame->at(5), 77U);
  ASSERT_TRUE(sink_.traps[0].state);
  EXPECT_EQ(sink_.traps[0].state->word[3], 99U);
  EXPECT_EQ(std::string(sink_.stacks[1].bytes.begin(), sink_.stacks[1].bytes.end()), "stack");
  EXPECT_EQ(sink_.stacks[1].registers[Register::rsp], 0x7000U);
}

TEST_F(Interpreter, WhatASourceMeasuredGoesWithTheSampleAndItsWatch) {
  begin();
  Sample sample;
  sample.source = SourceKind::ibs, sample.weight_unit = WeightUnit::micro_ops, sample.weight = 250'000;
  sample.latency_cycles = 412, sample.data_source = 0x6880842;
  sample.watch = 4;
  Sample tick;
  tick.cpu_ns = 700, tick.weight = 5;
  pass({{0, bytes_of(sample, RecordType::sample)},
        {0, bytes_of(an_opening(4), RecordType::watch_open)},
        {0, bytes_of(tick, RecordType::sample)}});
  ASSERT_EQ(sink_.samples.size(), 2U);
  const Measurement measured{SourceKind::ibs, WeightUnit::micro_ops, 412, 250'000, 0x6880842};
  EXPECT_EQ(sink_.samples[0].measurement, measured);
  EXPECT_EQ(sink_.samples[0].weight().value, 250'000U);
  EXPECT_EQ(sink_.samples[1].measurement, Measurement{});
  EXPECT_EQ(sink_.samples[1].weight().value, 700U);
  EXPECT_EQ(sink_.samples[1].weight().unit, WeightUnit::ns);
  ASSERT_EQ(sink_.watches.count(4), 1U);
  EXPECT_EQ(sink_.watches.at(4).sample_measurement, measured);
}

TEST_F(Interpreter, WhatCanNotBeIsDroppedAndCounted) {
  begin();
  Sample access;
  access.access = static_cast<AccessKind>(7);
  Sample no_stack;
  no_stack.has_stack = 1;
  StackSlice slice;
  slice.bytes = 1U << 30U;
  WatchOpen words = an_opening(4);
  words.words = 5;
  WatchOpen length = an_opening(4);
  length.word[1].length = 3;
  WatchOpen probability = an_opening(4);
  probability.word[0].probability = __builtin_nanf("");
  Sample source;
  source.source = static_cast<SourceKind>(5);
  Sample unit;
  unit.source = SourceKind::pebs, unit.weight_unit = static_cast<WeightUnit>(5);
  Sample not_time;
  not_time.weight_unit = WeightUnit::accesses;
  WatchTrap word;
  word.watch = 1;
  word.word = 4;
  WatchOpen state = an_opening(4);
  state.has_state = 2;
  WatchTrap trap_state;
  trap_state.watch = 1, trap_state.has_state = 2;
  WatchTrap trap_stack;
  trap_stack.watch = 1, trap_stack.has_stack = 1, trap_stack.stack.bytes = 8;
  WatchClose reason;
  reason.watch = 1;
  reason.reason = static_cast<CloseReason>(3);
  Block kind;
  kind.kind = static_cast<BlockKind>(9);
  WatchTrap line;
  line.watch = 1, line.line = 0x1001;
  SharedMapping empty;
  SharedMapping wraps;
  wraps.begin = 4096, wraps.bytes = ~std::uint64_t{0};
  ModuleLoad build_id;
  build_id.build_id_size = 21;
  ModuleLoad range;
  range.begin = 5;
  Lookahead end;
  end.end = static_cast<LookaheadEnd>(6);
  ThreadCreation no_bytes;
  no_bytes.stack.bytes = 8;
  const Lookahead whole;
  pass({{0, bytes_of(access, RecordType::sample)},
        {0, bytes_of(no_stack, RecordType::sample)},
        {0, bytes_of(no_stack, RecordType::sample, {reinterpret_cast<const char*>(&slice), sizeof slice})},
        {0, bytes_of(words, RecordType::watch_open)},
        {0, bytes_of(length, RecordType::watch_open)},
        {0, bytes_of(probability, RecordType::watch_open)},
        {0, bytes_of(source, RecordType::sample)},
        {0, bytes_of(unit, RecordType::sample)},
        {0, bytes_of(not_time, RecordType::sample)},
        {0, bytes_of(word, RecordType::watch_trap)},
        {0, bytes_of(trap_stack, RecordType::watch_trap)},
        {0, bytes_of(state, RecordType::watch_open)},
        {0, bytes_of(trap_state, RecordType::watch_trap)},
        {0, bytes_of(reason, RecordType::watch_close)},
        {0, bytes_of(kind, RecordType::block)},
        {0, bytes_of(line, RecordType::watch_trap)},
        {0, bytes_of(empty, RecordType::shared_mapping)},
        {0, bytes_of(wraps, RecordType::shared_mapping)},
        {0, bytes_of(no_bytes, RecordType::thread_creation)},
        {0, bytes_of(end, RecordType::lookahead, {"\x04", 1})},
        {0, bytes_of(whole, RecordType::lookahead, {"\x04\x02", 2})},  // ends at a jump
        {0, bytes_of(build_id, RecordType::module_load)},
        {0, bytes_of(range, RecordType::module_load)}});
  EXPECT_EQ(decoder_.malformed(), 23U);
  decoder_.finish();
  EXPECT_TRUE(sink_.samples.empty() && sink_.watches.empty() && sink_.traps.empty() && sink_.modules.empty());
  EXPECT_TRUE(sink_.shared_mappings.empty() && sink_.lookaheads.empty() && sink_.thread_creations.empty());
}

TEST_F(Interpreter, Walks) {
  begin();
  Lookahead lookahead;
  lookahead.time_ns = 300, lookahead.begin = 0x1008, lookahead.head = 0x1000;
  lookahead.instructions = 5, lookahead.passages = 1, lookahead.cost_ns = 700, lookahead.end = LookaheadEnd::whole;
  pass({{0, bytes_of(lookahead, RecordType::lookahead, {"\x08\x1f\x00", 3})}});  // 8 on, 16 back, the end
  EXPECT_EQ(decoder_.malformed(), 0U);
  ASSERT_EQ(sink_.lookaheads.size(), 1U);
  const LookaheadRow& row = sink_.lookaheads[0];
  EXPECT_EQ(row.thread, ThreadId{0});
  EXPECT_EQ(row.time_ns, 300U);
  EXPECT_EQ(row.begin, 0x1008U);
  EXPECT_EQ(row.head, 0x1000U);
  EXPECT_EQ(row.instructions, 5U);
  EXPECT_EQ(row.passages, 1U);
  EXPECT_EQ(row.cost_ns, 700U);
  EXPECT_EQ(row.end, LookaheadEnd::whole);
  EXPECT_EQ(row.branches, (std::vector<std::uint8_t>{8, 0x1f, 0}));
}

TEST_F(Interpreter, ThreadCreations) {
  begin();
  ThreadCreation creation;
  creation.time_ns = 300, creation.stack.bytes = 8;
  creation.stack.registers[Register::rsp] = 0x7000;
  pass({{0, bytes_of(creation, RecordType::thread_creation, "12345678")}});
  EXPECT_EQ(decoder_.malformed(), 0U);
  ASSERT_EQ(sink_.thread_creations.size(), 1U);
  EXPECT_EQ(sink_.thread_creations[0].thread, ThreadId{0});
  EXPECT_EQ(sink_.thread_creations[0].time_ns, 300U);
  ASSERT_EQ(sink_.stacks.size(), 1U);
  EXPECT_EQ(sink_.thread_creations[0].stack, sink_.stacks[0].id);
  EXPECT_EQ(sink_.stacks[0].bytes.size(), 8U);
  EXPECT_EQ(sink_.stacks[0].registers[Register::rsp], 0x7000U);
}

TEST_F(Interpreter, LooksAtWaits) {
  begin();
  SampledWait all;
  all.time_ns = 290, all.looked_ns = 50, all.looks = 5, all.spread_ns = 20, all.slept_ns = 7, all.slept_known = 1;
  SampledWait wait;
  wait.time_ns = 300, wait.futex = 0x404010, wait.looked_ns = 30, wait.looks = 3;
  wait.kind = LookKind::waiting;
  wait.stack.bytes = 8;
  wait.stack.registers[Register::rsp] = 0x7000;
  const SampledWait none;
  SampledWait no_bytes = wait;
  no_bytes.stack.bytes = 16;
  SampledWait no_kind = all;
  no_kind.kind = static_cast<LookKind>(3);
  pass({{0, bytes_of(all, RecordType::sampled_wait)},
        {0, bytes_of(wait, RecordType::sampled_wait, "12345678")},
        {0, bytes_of(none, RecordType::sampled_wait)},
        {0, bytes_of(no_bytes, RecordType::sampled_wait, "12345678")},
        {0, bytes_of(no_kind, RecordType::sampled_wait)}});
  EXPECT_EQ(decoder_.malformed(), 3U);
  ASSERT_EQ(sink_.sampled_waits.size(), 2U);
  const SampledWaitRow& looks = sink_.sampled_waits[0];
  EXPECT_EQ(looks.kind, LookKind::all);
  EXPECT_EQ(looks.slept_ns, 7);
  EXPECT_EQ(looks.looked_ns, 50U);
  EXPECT_EQ(looks.spread_ns, 20U);
  EXPECT_EQ(looks.looks, 5U);
  EXPECT_EQ(looks.stack, StackId{});
  const SampledWaitRow& found = sink_.sampled_waits[1];
  EXPECT_EQ(found.kind, LookKind::waiting);
  EXPECT_FALSE(found.slept_ns);
  EXPECT_EQ(found.thread, ThreadId{0});
  EXPECT_EQ(found.time_ns, 300U);
  EXPECT_EQ(found.futex, 0x404010U);
  ASSERT_EQ(sink_.stacks.size(), 1U);
  EXPECT_EQ(found.stack, sink_.stacks[0].id);
  EXPECT_EQ(sink_.stacks[0].registers[Register::rsp], 0x7000U);
}

TEST_F(Interpreter, SharedMappingsAndLinesOfOtherProcesses) {
  begin();
  SharedMapping mapping;
  mapping.time_ns = 300, mapping.begin = 0x7000, mapping.bytes = 8192, mapping.file_offset = 4096;
  mapping.device = 5, mapping.inode = 77;
  WatchTrap trap;
  trap.time_ns = 400, trap.watch = 1, trap.line = 0x7040;
  pass({{0, bytes_of(mapping, RecordType::shared_mapping, "/memfd:two\nlines")},
        {0, bytes_of(trap, RecordType::watch_trap)}});
  EXPECT_EQ(decoder_.malformed(), 0U);
  ASSERT_EQ(sink_.shared_mappings.size(), 1U);
  const SharedMappingRow& row = sink_.shared_mappings[0];
  EXPECT_EQ(row.process, ProcessId{0});
  EXPECT_EQ(row.time_ns, 300U);
  EXPECT_EQ(row.begin, 0x7000U);
  EXPECT_EQ(row.bytes, 8192U);
  EXPECT_EQ(row.file_offset, 4096U);
  EXPECT_EQ(row.device, 5U);
  EXPECT_EQ(row.inode, 77U);
  EXPECT_EQ(row.name, "/memfd:two lines");
  ASSERT_EQ(sink_.traps.size(), 1U);
  EXPECT_EQ(sink_.traps[0].line, 0x7040U);
}

TEST_F(Interpreter, TotalsAndTheThreadsEndMakeItsRow) {
  begin();
  SlotTotals totals;
  totals.cpu_ns = 700, totals.handlers_ns = 30, totals.samples = 2, totals.lost = 1;
  totals.clock = ClockKind::perf;
  decoder_.update_totals(0, totals);
  ThreadEnd end;
  end.time_ns = 900, end.cpu_ns = 1000, end.voluntary_switches = 3, end.involuntary_switches = 4;
  pass({{0, bytes_of(end, RecordType::thread_end)}});
  totals.cpu_ns = 800;
  decoder_.update_totals(0, totals);
  decoder_.close_slot(0, 950);
  decoder_.flush(960);
  const ThreadRow& row = sink_.threads[0];
  EXPECT_EQ(row.end_ns, 900U);
  EXPECT_EQ(row.cpu_ns, 1000U);
  EXPECT_EQ(row.switches, 7U);
  EXPECT_EQ(row.handlers_ns, 30U);
  EXPECT_EQ(row.lost, 1U);
  EXPECT_EQ(row.clock, ClockKind::perf);
}

TEST_F(Interpreter, AReusedSlotIsAnotherThread) {
  begin();
  decoder_.close_slot(0, 200);
  decoder_.open_slot(0, 10, 14, 300);
  pass({{0, thread_start(10, 14, 300)}, {0, sample(310)}});
  decoder_.flush(400);
  ASSERT_EQ(sink_.threads.size(), 2U);
  EXPECT_EQ(sink_.samples[0].thread, ThreadId{1});
  EXPECT_EQ(sink_.threads[1].process, ProcessId{0});
}

TEST_F(Interpreter, MessagesAreOneSafeLine) {
  begin();
  Message message;
  std::memcpy(message.code, "Odd-Code", 9);
  pass({{0, bytes_of(message, RecordType::message, "two\nlines\x1b[31m")}});
  ASSERT_EQ(sink_.messages.size(), 1U);
  EXPECT_EQ(sink_.messages[0].code, "_dd__ode");
  EXPECT_EQ(sink_.messages[0].text, "two lines [31m");
}

TEST_F(Interpreter, MessagesOfOtherProgramsNameThem) {
  Message message;
  std::memcpy(message.code, "traced", 7);
  ProcessStart other;
  other.pid = 20;
  other.time_ns = 301;
  begin();
  decoder_.open_slot(1, 20, 20, 300);
  pass({{0, bytes_of(message, RecordType::message, "it is traced")},
        {1, thread_start(20, 20, 300)},
        {1, bytes_of(other, RecordType::process_start, std::string("/usr/bin/gdb\0gdb", 16))},
        {1, bytes_of(message, RecordType::message, "it is traced")}});
  ASSERT_EQ(sink_.messages.size(), 2U);
  EXPECT_EQ(sink_.messages[0].text, "it is traced");
  EXPECT_EQ(sink_.messages[1].text, "it is traced (in gdb)");
}

TEST_F(Interpreter, EverythingCanBePutAgain) {
  begin();
  ModuleLoad load;
  load.begin = 0x1000, load.end = 0x2000;
  pass({{0, bytes_of(load, RecordType::module_load, "/lib/x.so")}});
  decoder_.flush(200);
  sink_.processes.clear(), sink_.threads.clear(), sink_.modules.clear();
  decoder_.flush(300);
  EXPECT_TRUE(sink_.threads.empty());
  decoder_.put_everything();
  EXPECT_EQ(sink_.processes.size(), 1U);
  EXPECT_EQ(sink_.threads.size(), 1U);
  EXPECT_EQ(sink_.modules.size(), 1U);
}

TEST_F(Interpreter, readings_of_counters_become_rows_of_their_thread) {
  CounterReading reading;
  reading.time_ns = 1500;
  reading.ip = 0x401000;
  reading.enabled_ns = 900, reading.running_ns = 450;
  reading.group = 2, reading.life = 5, reading.cpu = 1;
  const std::uint64_t counts[] = {100, 42};
  const std::string tail(reinterpret_cast<const char*>(counts), sizeof counts);
  decoder_.open_slot(0, 100, 100, 900);
  pass({{0, thread_start(100, 100, 1000)},
        {0, process_start(100, 1000)},
        {0, bytes_of(reading, RecordType::counter_reading, tail)},
        {0, bytes_of(reading, RecordType::counter_reading, tail.substr(1))},
        {0, bytes_of(reading, RecordType::counter_reading)}});
  ASSERT_EQ(sink_.readings.size(), 1U);
  const ReadingRow& row = sink_.readings.front();
  EXPECT_EQ(row.thread, ThreadId{0});
  EXPECT_EQ(row.time_ns, 1500U);
  EXPECT_EQ(row.ip, 0x401000U);
  EXPECT_EQ(row.running_ns, 450U);
  EXPECT_EQ(row.group, 2U);
  EXPECT_EQ(row.life, 5U);
  EXPECT_EQ(row.counts, (std::vector<std::uint64_t>{100, 42}));
  EXPECT_EQ(decoder_.malformed(), 2U) << "half a count, and none";
}

}  // namespace
}  // namespace crosstalk::daemon::record_decoder_test
