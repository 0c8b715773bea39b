// SPDX-License-Identifier: Apache-2.0
// Written rows read back equal: every row type, absent values, and the extremes of every field.
#include <sqlite3.h>

#include <limits>

#include "profile/branch_trace.h"
#include "profile/codec.h"
#include "tests/profile/profile_files.h"

namespace crosstalk::profile::round_trip_test {
namespace {

using test::a_process;
using test::a_sample;
using test::a_session;
using test::a_thread;

class RoundTrip : public ::testing::Test {
 protected:
  void SetUp() override { put(a_session()), put(a_process(0)), put(a_process(1)), put(a_thread(0)), put(a_thread(1)); }

  template <class Row>
  void put(const Row& row) {
    const Result<void> result = writer_.put(row);
    ASSERT_TRUE(result) << result.error().message;
  }

  ProfileReader read() {
    const Result<void> finished = writer_.finish();
    EXPECT_TRUE(finished) << finished.error().message;
    Result<ProfileReader> reader = ProfileReader::open(path_);
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      std::abort();
    }
    return std::move(*reader);
  }

  test::Directory directory_;
  std::string path_ = directory_ / "p.db";
  ProfileWriter writer_ = test::created(path_);
};

TEST_F(RoundTrip, SessionKeepsEveryField) {
  const ProfileReader reader = read();
  const Session& got = reader.session();
  const Session want = a_session();
  EXPECT_EQ(got.command, want.command);
  EXPECT_EQ(got.exit_status, want.exit_status);
  EXPECT_EQ(got.begin_ns, want.begin_ns);
  EXPECT_EQ(got.begin_unix_ns, 1'795'000'000'123'456'789U);
  EXPECT_EQ(got.end_ns, want.end_ns);
  EXPECT_TRUE(got.complete);
  EXPECT_EQ(got.source, "clock");
  EXPECT_EQ(got.source_choice, want.source_choice);
  EXPECT_EQ(got.method_choice, want.method_choice);
  EXPECT_EQ(got.cpu_model, want.cpu_model);
  EXPECT_EQ(got.cpus, 8U);
  EXPECT_EQ(got.memory_bytes, want.memory_bytes);
  EXPECT_EQ(got.recorder_cpu_ns, 987U);
  EXPECT_EQ(got.unobserved_cpu_ns, 654U);
  EXPECT_DOUBLE_EQ(got.config.budget, 0.05);
  EXPECT_EQ(got.config.clock, ClockKind::perf);
  EXPECT_EQ(got.config.method, Method::probe);
  EXPECT_EQ(got.config.partner, Partner::next_store);
  EXPECT_EQ(got.config.board_slots, 256U);
  EXPECT_EQ(got.config.seed, want.config.seed);
  EXPECT_EQ(got.watch_trial.verdict, TrialVerdict::partly);
  EXPECT_EQ(got.watch_trial.silent, want.watch_trial.silent);
  EXPECT_EQ(got.watch_trial.registers, 3U);
  EXPECT_EQ(got.watch_trial.why, want.watch_trial.why);
  EXPECT_EQ(got.watch_trial.remedy, want.watch_trial.remedy);
}

TEST_F(RoundTrip, AnUnknownExitStatusStaysUnknown) {
  Session session = a_session();
  session.exit_status.reset();
  put(session);
  EXPECT_FALSE(read().session().exit_status.has_value());
}

TEST_F(RoundTrip, ProcessesAndThreadsComeByIdAndAreReplaced) {
  ThreadRow renamed = a_thread(1);
  renamed.name = "renamed";
  renamed.start_routine = 0xffffffffff600123U;
  renamed.ran_ns = 7;
  renamed.waited_ns = 5;
  put(renamed);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.processes().size(), 2U);
  const ProcessRow& child = reader.processes()[1];
  EXPECT_EQ(child.pid, 4001);
  EXPECT_EQ(child.modules_of, ProcessId{0});
  EXPECT_TRUE(child.after_fork);
  EXPECT_FALSE(child.exit_status.has_value());
  EXPECT_EQ(reader.processes()[0].exit_status, 143);
  EXPECT_EQ(reader.processes()[0].observation, Observation::injected);
  EXPECT_EQ(reader.processes()[0].unobserved_because, "");
  EXPECT_EQ(child.observation, Observation::none);
  EXPECT_EQ(child.unobserved_because, "it is a 32-bit program");
  ASSERT_EQ(reader.threads().size(), 2U);
  const ThreadRow& thread = reader.threads()[1];
  EXPECT_EQ(thread.name, "renamed");
  EXPECT_EQ(thread.thread_pointer, a_thread(1).thread_pointer);
  EXPECT_EQ(thread.handler_samples_ns, 2U);
  EXPECT_EQ(thread.lost, 6U);
  EXPECT_EQ(thread.clock, ClockKind::posix);
  EXPECT_EQ(thread.period_us, 4000U);
  EXPECT_EQ(thread.start_routine, 0xffffffffff600123U);
  EXPECT_EQ(reader.threads()[0].start_routine, 0U);
  EXPECT_EQ(thread.ran_ns, 7U);
  EXPECT_EQ(thread.waited_ns, 5U);
}

TEST_F(RoundTrip, ThreadsOfAProcessAreNumberedAsTheyWereMade) {
  std::uint32_t id = 2;
  for (const std::int32_t tid : {9003, 9001, 9002}) {
    ThreadRow thread = a_thread(1);
    thread.id = ThreadId{id++};
    thread.process = ProcessId{1};
    thread.tid = tid;
    put(thread);
  }
  SampleRow sample = a_sample();
  sample.thread = ThreadId{3};  // of 9001
  put(sample);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.threads().size(), 5U);
  std::int32_t last = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const ThreadRow& thread = reader.threads()[i];
    EXPECT_EQ(thread.id.value, i);
    if (thread.process == ProcessId{1}) {
      EXPECT_GT(thread.tid, last);
      last = thread.tid;
    }
  }
  ASSERT_TRUE(
      reader.for_each_sample([&](const SampleRow& row) { EXPECT_EQ(reader.threads()[row.thread.value].tid, 9001); }));
}

TEST_F(RoundTrip, ModulesComeByProcessThenLoadTime) {
  ModuleRow late{ProcessId{0}, 900, 0, 0x1000, 0x2000, 0x3000, -64, 32, "ab01", "/lib/late.so", false};
  ModuleRow early{ProcessId{0}, 100, 500, 0, 0xffffffffff600000U, 0xffffffffff601000U, 0, 0, "", "", true};
  ModuleRow other{ProcessId{1}, 50, 0, 0, 0x1, 0x2, 0, 0, "", "/x", false, 0xf00dULL << 48U, 0};
  put(other), put(late), put(early);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.modules().size(), 3U);
  EXPECT_TRUE(reader.modules()[0].is_vdso);
  EXPECT_EQ(reader.modules()[0].begin, early.begin);
  EXPECT_EQ(reader.modules()[0].unloaded_ns, 500U);
  EXPECT_EQ(reader.modules()[1].tls_offset, -64);
  EXPECT_EQ(reader.modules()[1].build_id, "ab01");
  EXPECT_EQ(reader.modules()[2].path, "/x");
  EXPECT_EQ(reader.modules()[1].content_hash, 0U);
  EXPECT_EQ(reader.modules()[2].content_hash, 0xf00dULL << 48U);
  EXPECT_FALSE(reader.modules()[1].file_offset);
  EXPECT_EQ(reader.modules()[2].file_offset, 0U);
}

TEST_F(RoundTrip, KeptFilesAreFoundByWhatNamesThem) {
  const std::vector<std::uint8_t> bytes(100'000, 7);
  put(KeptFileRow{"/bin/gone", "", 4711, bytes});
  put(KeptFileRow{"/tmp/perf-1.map", "", 0, {}});
  const ProfileReader reader = read();
  EXPECT_EQ(reader.kept_file("/bin/gone", "", 4711), bytes);
  EXPECT_FALSE(reader.kept_file("/bin/gone", "", 4712));
  EXPECT_FALSE(reader.kept_file("/bin/gone", "ab", 4711));
  const auto empty = reader.kept_file("/tmp/perf-1.map", "", 0);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
}

TEST_F(RoundTrip, SamplesComeInOrderWithEveryField) {
  SampleRow bare;
  bare.time_ns = 1;  // before the session's begin
  bare.ip = 0xffffffffff600400U;
  SampleRow extreme = a_sample();
  extreme.thread = ThreadId{1};
  extreme.ip = 1;
  extreme.access_ip = std::numeric_limits<std::uint64_t>::max();
  extreme.address = std::numeric_limits<std::uint64_t>::max();
  extreme.cpu_ns = std::numeric_limits<std::uint64_t>::max();
  extreme.cpu = 0xffff;
  extreme.width = 0xff;
  extreme.watch = WatchId{0xffffffff};
  put(a_sample()), put(bare), put(extreme);
  const ProfileReader reader = read();
  std::vector<SampleRow> got;
  ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& row) { got.push_back(row); }));
  ASSERT_EQ(got.size(), 3U);
  const SampleRow want = a_sample();
  EXPECT_EQ(got[0].time_ns, want.time_ns);
  EXPECT_EQ(got[0].ip, want.ip);
  EXPECT_EQ(got[0].access_ip, want.access_ip);
  EXPECT_EQ(got[0].address, want.address);
  EXPECT_EQ(got[0].cpu_ns, want.cpu_ns);
  EXPECT_EQ(got[0].watch, want.watch);
  EXPECT_EQ(got[0].stack, want.stack);
  EXPECT_EQ(got[0].cpu, want.cpu);
  EXPECT_EQ(got[0].width, want.width);
  EXPECT_EQ(got[0].access, want.access);
  EXPECT_EQ(got[0].from, want.from);
  EXPECT_EQ(got[0].flags, want.flags);
  EXPECT_EQ(got[0].previous_handler_ns, want.previous_handler_ns);
  EXPECT_EQ(got[1].time_ns, 1U);
  EXPECT_EQ(got[1].ip, bare.ip);
  EXPECT_EQ(got[1].access_ip, 0U);
  EXPECT_EQ(got[2].access_ip, extreme.access_ip);
  EXPECT_EQ(got[2].address, extreme.address);
  EXPECT_EQ(got[2].cpu_ns, extreme.cpu_ns);
  EXPECT_EQ(got[2].watch, extreme.watch);
}

TEST_F(RoundTrip, ThePartsOfSamplesThatAreNotReadHaveTheirDefaults) {
  SampleRow want = a_sample();
  want.registers.emplace();
  (*want.registers)[Register::rbx] = 77;
  put(want), put(want);
  const ProfileReader reader = read();
  std::vector<SampleRow> got;
  ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& row) { got.push_back(row); }, SampleParts::accesses));
  ASSERT_EQ(got.size(), 2U);
  for (const SampleRow& row : got) {
    EXPECT_EQ(row.thread, want.thread);
    EXPECT_EQ(row.time_ns, want.time_ns);
    EXPECT_EQ(row.ip, want.ip);
    EXPECT_EQ(row.access_ip, want.access_ip);
    EXPECT_EQ(row.address, want.address);
    EXPECT_EQ(row.cpu_ns, want.cpu_ns);
    EXPECT_EQ(row.cpu, want.cpu);
    EXPECT_EQ(row.width, want.width);
    EXPECT_EQ(row.access, want.access);
    EXPECT_EQ(row.flags, want.flags);
    ASSERT_TRUE(row.registers);
    EXPECT_EQ((*row.registers)[Register::rbx], 77U);
    EXPECT_EQ(row.watch, WatchId{});
    EXPECT_EQ(row.stack, StackId{});
    EXPECT_EQ(row.from, AddressFrom::none);
    EXPECT_EQ(row.previous_handler_ns, 0U);
  }
}

SampleRow sample_with(std::uint32_t thread, std::uint64_t ip, std::uint64_t rax, std::uint64_t r15) {
  SampleRow row = a_sample();
  row.thread = ThreadId{thread};
  row.ip = ip;
  row.registers.emplace();
  (*row.registers)[Register::rax] = rax;
  (*row.registers)[Register::r15] = r15;
  return row;
}

TEST_F(RoundTrip, RegistersOfSamplesAreThoseOfTheirThread) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  SampleRow without = a_sample();
  without.registers.reset();
  put(sample_with(0, 0x10, 1, most)), put(sample_with(1, 0x20, 500, 0)), put(without);
  put(sample_with(0, 0x30, 0, most)), put(sample_with(1, 0x40, most, 1ULL << 63U)), put(sample_with(1, 0x50, 0, 1));
  const ProfileReader reader = read();
  std::vector<SampleRow> got;
  ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& row) { got.push_back(row); }));
  ASSERT_EQ(got.size(), 6U);
  const auto expect = [&](std::size_t at, std::uint64_t ip, std::uint64_t rax, std::uint64_t r15) {
    ASSERT_TRUE(got[at].registers) << at;
    EXPECT_EQ((*got[at].registers)[Register::rip], ip) << at;
    EXPECT_EQ((*got[at].registers)[Register::rax], rax) << at;
    EXPECT_EQ((*got[at].registers)[Register::rcx], 0U) << at;
    EXPECT_EQ((*got[at].registers)[Register::r15], r15) << at;
  };
  expect(0, 0x10, 1, most);
  expect(1, 0x20, 500, 0);
  EXPECT_FALSE(got[2].registers);
  expect(3, 0x30, 0, most);
  expect(4, 0x40, most, 1ULL << 63U);
  expect(5, 0x50, 0, 1);
}

TEST_F(RoundTrip, AWatchIsReplacedByItsClosing) {
  WatchRow watch;
  watch.id = WatchId{7};
  watch.thread = ThreadId{1};
  watch.time_ns = a_session().begin_ns + 5;
  watch.line = 0x7f0000001200;
  watch.words = {{0, 8, 0, 0.5F}, {56, 4, 0, 0.25F}};
  watch.threads = 4, watch.armed = 3, watch.suspected = true, watch.horizon_ns = 20'000'000;
  watch.sample_ip = 0x1000, watch.sample_access_ip = 0xff8, watch.sample_address = 0x7f0000001238;
  watch.sample_cpu_ns = 4'000'000, watch.sample_width = 4, watch.sample_access = AccessKind::store;
  watch.sample_from = AddressFrom::next, watch.sample_flags = sample_armed, watch.sample_cpu = 2;
  watch.sample_stack = StackId{3};
  watch.state = LineState{{1, 0, 0xffff, 0x1234, 5, 6, 7, 8}};
  put(watch);
  watch.words.resize(1);
  watch.close = CloseReason::full;
  watch.close_ns = watch.time_ns + 1000;
  put(watch);
  WatchRow open;
  open.id = WatchId{2};
  open.probe = ProbedLine{1ULL << 63U, 4000, ~std::uint64_t{0}, 8};
  put(open);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.watches().size(), 2U);
  EXPECT_EQ(reader.watches()[0].id, WatchId{2});
  EXPECT_FALSE(reader.watches()[0].close.has_value());
  EXPECT_EQ(reader.watches()[0].probe, open.probe);
  EXPECT_FALSE(reader.watches()[1].probe);
  const WatchRow& got = reader.watches()[1];
  ASSERT_EQ(got.words.size(), 1U);
  EXPECT_EQ(got.words[0].length, 8);
  EXPECT_FLOAT_EQ(got.words[0].probability, 0.5F);
  EXPECT_EQ(got.close, CloseReason::full);
  EXPECT_EQ(got.close_ns, watch.close_ns);
  EXPECT_EQ(got.thread, ThreadId{1});
  EXPECT_EQ(got.time_ns, watch.time_ns);
  EXPECT_EQ(got.threads, 4U);
  EXPECT_EQ(got.armed, 3U);
  EXPECT_TRUE(got.suspected);
  EXPECT_EQ(got.sample_access_ip, 0xff8U);
  EXPECT_EQ(got.sample_address, watch.sample_address);
  EXPECT_EQ(got.sample_from, AddressFrom::next);
  EXPECT_EQ(got.sample_cpu, 2);
  EXPECT_EQ(got.sample_stack, StackId{3});
  EXPECT_EQ(got.state, watch.state);
  EXPECT_FALSE(reader.watches()[0].state);
}

TEST_F(RoundTrip, TrapsComeByWatchThenSequenceAndOrphansAreLeftOut) {
  WatchRow watch;
  watch.id = WatchId{2};
  watch.words.resize(2);
  put(watch);
  TrapRow trap;
  trap.watch = WatchId{2};
  trap.thread = ThreadId{1};
  trap.sequence = 1;
  trap.time_ns = a_session().begin_ns + 9;
  trap.ip = 0x400;
  trap.cpu = 5;
  trap.word = 1;
  trap.write_only = true;
  for (std::size_t i = 0; i < register_count; ++i) {
    trap.registers.value[i] = i == 0 ? 0 : ~std::uint64_t{0} >> (3 * i);
  }
  trap.stack = StackId{8};
  trap.line = 0x7f00'1234'5640;
  trap.state = LineState{{8, 7, 6, 5, 0x1234, 0xffff, 0, 1}};
  trap.frame.emplace();
  for (std::size_t i = 0; i < trap_frame_words; ++i) {
    trap.frame->at(i) = i == 1 ? 0 : ~std::uint64_t{0} >> (3 * i);
  }
  put(trap);
  TrapRow first = trap;
  first.sequence = 0;
  first.line = 0;
  first.frame.reset();
  first.state.reset();
  put(first);
  TrapRow orphan = trap;
  orphan.watch = WatchId{1};
  put(orphan);
  TrapRow no_such_word = trap;
  no_such_word.word = 2;
  put(no_such_word);
  const ProfileReader reader = read();
  const std::vector<TrapRow> traps = test::traps_of(reader);
  ASSERT_EQ(traps.size(), 2U);
  EXPECT_EQ(traps[0].sequence, 0U);
  EXPECT_EQ(traps[0].line, 0U);
  const TrapRow& got = traps[1];
  EXPECT_EQ(got.sequence, 1U);
  EXPECT_EQ(got.time_ns, trap.time_ns);
  EXPECT_EQ(got.ip, trap.ip);
  EXPECT_EQ(got.cpu, 5);
  EXPECT_EQ(got.word, 1);
  EXPECT_TRUE(got.write_only);
  EXPECT_EQ(got.registers.value, trap.registers.value);
  EXPECT_EQ(got.stack, StackId{8});
  EXPECT_EQ(got.frame, trap.frame);
  EXPECT_FALSE(traps[0].frame);
  EXPECT_EQ(got.line, trap.line);
  EXPECT_EQ(got.state, trap.state);
  EXPECT_FALSE(traps[0].state);
}

/// Watches 1 to `watches`, each with traps 1 and 0, in this order.
void put_trapped(ProfileWriter& writer, std::uint32_t watches) {
  for (std::uint32_t id = 1; id <= watches; ++id) {
    WatchRow watch;
    watch.id = WatchId{id};
    watch.words = {{0, 8, 0, 1}};
    ASSERT_TRUE(writer.put(watch));
    for (const std::uint32_t sequence : {1U, 0U}) {
      TrapRow trap;
      trap.watch = WatchId{id};
      trap.sequence = sequence;
      ASSERT_TRUE(writer.put(trap));
    }
  }
}

TEST_F(RoundTrip, TrapsOfAWatchComeTogetherAndBySequence) {
  put_trapped(writer_, 3);
  TrapRow last;
  last.watch = WatchId{1};
  last.sequence = 2;
  put(last);
  const std::vector<TrapRow> traps = test::traps_of(read());
  ASSERT_EQ(traps.size(), 7U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(traps[i].watch, WatchId{1});
    EXPECT_EQ(traps[i].sequence, i);
  }
  EXPECT_EQ(traps[6].watch, WatchId{3});
  EXPECT_EQ(traps[6].sequence, 1U);
}

TEST_F(RoundTrip, TrapsOfAWatchComeTogetherHoweverFarApartTheyAre) {
  constexpr std::uint32_t watches = 20'000;  // more traps than are waited for
  put_trapped(writer_, watches);
  TrapRow last;
  last.watch = WatchId{1};
  last.sequence = 2;
  put(last);
  const ProfileReader reader = read();
  int restarts = 0;
  std::size_t seen = 0;
  std::size_t of_first = 0;
  ASSERT_TRUE(reader.for_each_trapped_watch(
      [&](std::size_t watch, std::span<const TrapRow> traps) {
        seen += traps.size();
        of_first += watch == 0 ? traps.size() : 0;
      },
      [&] {
        ++restarts;
        seen = of_first = 0;
      }));
  EXPECT_EQ(restarts, 1);
  EXPECT_EQ(seen, 2 * watches + 1);
  EXPECT_EQ(of_first, 3U);
}

TEST_F(RoundTrip, WhatASourceMeasuredStaysWithItsSample) {
  const Measurement most{SourceKind::ibs_kmod, WeightUnit::micro_ops, std::numeric_limits<std::uint32_t>::max(),
                         std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()};
  const Measurement least{SourceKind::pebs, WeightUnit::accesses, 0, 0, 0};
  SampleRow row = a_sample();
  put(row);
  row.measurement = most;
  put(row);
  row.measurement = {};
  put(row);
  row.measurement = least;
  put(row);
  WatchRow watch;
  watch.id = WatchId{3};
  watch.sample_measurement = least;
  put(watch);
  watch.sample_measurement = most;
  put(watch);
  watch.id = WatchId{4};
  watch.sample_measurement = {};
  watch.sample_cpu_ns = 77;
  put(watch);
  const ProfileReader reader = read();
  for (const SampleParts parts : {SampleParts::all, SampleParts::accesses}) {
    std::vector<SampleRow> got;
    ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& sample) { got.push_back(sample); }, parts));
    ASSERT_EQ(got.size(), 4U);
    EXPECT_EQ(got[0].measurement, Measurement{});
    EXPECT_EQ(got[0].weight().value, a_sample().cpu_ns);
    EXPECT_EQ(got[1].measurement, most);
    EXPECT_EQ(got[1].weight().unit, WeightUnit::micro_ops);
    EXPECT_EQ(got[2].measurement, Measurement{});
    EXPECT_EQ(got[3].measurement, least);
    EXPECT_EQ(got[3].cpu_ns, a_sample().cpu_ns);
  }
  ASSERT_EQ(reader.watches().size(), 2U);
  EXPECT_EQ(reader.watches()[0].sample_measurement, most);
  EXPECT_EQ(reader.watches()[1].sample_measurement, Measurement{});
  EXPECT_EQ(reader.watches()[1].sample_weight().value, 77U);
}

TEST_F(RoundTrip, EventsAndCallsStayWithTheirSamples) {
  const std::vector<std::uint64_t> calls = {0x401000, 0x7fffffffe000, 0xffffffffff600000, 1, UINT64_MAX};
  const std::vector<std::uint64_t> deep(max_call_chain + 10, 0x1000);
  put(EventRow{EventId{1}, "cpu/mem-loads,ldlat=64/P", SourceKind::pebs, WeightUnit::accesses, 10'007, 64, true});
  put(EventRow{EventId{2}, "cpu-clock", SourceKind::clock, WeightUnit::ns, 0, 0, false});
  put(CallChainRow{CallChainId{1}, calls});
  put(CallChainRow{CallChainId{2}, deep});
  SampleRow of_clock = a_sample();
  of_clock.event = EventId{2};
  of_clock.call_chain = CallChainId{2};
  put(of_clock);
  put(a_sample());
  SampleRow of_load = a_sample();
  of_load.measurement = {SourceKind::pebs, WeightUnit::accesses, 300, 10'007, 0x142};
  of_load.event = EventId{1};
  put(of_load);
  const ProfileReader reader = read();
  for (const SampleParts parts : {SampleParts::all, SampleParts::accesses}) {
    std::vector<SampleRow> got;
    ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& sample) { got.push_back(sample); }, parts));
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0].event, EventId{2});
    EXPECT_EQ(got[0].call_chain, CallChainId{2});
    EXPECT_EQ(got[0].measurement, Measurement{});
    EXPECT_EQ(got[0].weight().value, of_clock.cpu_ns);
    EXPECT_EQ(got[1].event, EventId{});
    EXPECT_EQ(got[2].event, EventId{1});
    EXPECT_EQ(got[2].call_chain, CallChainId{});
    EXPECT_EQ(got[2].measurement, of_load.measurement);
  }
  ASSERT_EQ(reader.events().size(), 2U);
  EXPECT_EQ(reader.events()[0].name, "cpu/mem-loads,ldlat=64/P");
  EXPECT_EQ(reader.events()[0].period, 10'007U);
  EXPECT_EQ(reader.events()[0].least_latency_cycles, 64U);
  EXPECT_TRUE(reader.events()[0].at_access);
  EXPECT_EQ(reader.events()[1].period, 0U);
  std::vector<CallChainRow> chains;
  ASSERT_TRUE(reader.for_each_call_chain([&](const CallChainRow& row) { chains.push_back(row); }));
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].addresses, calls);
  EXPECT_EQ(chains[1].addresses, std::vector<std::uint64_t>(max_call_chain, 0x1000))
      << "what is further out is left off";
}

TEST_F(RoundTrip, AnImportedSessionHasNoSettings) {
  path_ = directory_ / "imported.db";
  writer_ = test::created(path_);  // of which no session is put before
  Session session = a_session();
  session.source = imported_source;
  session.config.period_ns = 5;  // not a recorder's of ours
  put(session);
  const ProfileReader reader = read();
  EXPECT_EQ(reader.session().config.period_ns, 0U);
  EXPECT_EQ(reader.session().config.watchpoints, 0U);
  EXPECT_EQ(reader.session().command, session.command);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db, "SELECT key FROM meta WHERE key LIKE 'config.%' OR key = 'memory_bytes'", -1,
                               &statement, nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
  sqlite3_finalize(statement);
  sqlite3_close(db);
}

TEST_F(RoundTrip, AClocksSamplesTakeNoMoreRoomThanBefore) {
  put(a_sample());
  WatchRow watch;
  watch.id = WatchId{7};
  put(watch);
  const ProfileReader reader = read();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  for (const char* sql : {"SELECT 1 FROM sample_measurement", "SELECT 1 FROM watch_measurement"}) {
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE) << sql;
    sqlite3_finalize(statement);
  }
  sqlite3_close(db);
}

TEST_F(RoundTrip, ThreadCreations) {
  const ThreadCreationRow row{ThreadId{1}, a_session().begin_ns + 9, StackId{4}};
  put(row);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.thread_creations().size(), 1U);
  EXPECT_EQ(reader.thread_creations()[0].thread, row.thread);
  EXPECT_EQ(reader.thread_creations()[0].time_ns, row.time_ns);
  EXPECT_EQ(reader.thread_creations()[0].stack, row.stack);
}

TEST_F(RoundTrip, ThreadWaitsAreReplacedByLaterOnes) {
  put(ThreadWaitRow{ThreadId{1}, WaitKind::mutex, 0x401000, 500, 2});
  put(ThreadWaitRow{ThreadId{1}, WaitKind::mutex, 0x401000, 900, 3});
  put(ThreadWaitRow{ThreadId{0}, WaitKind::all, 0, 0, 0});
  const ProfileReader reader = read();
  ASSERT_EQ(reader.thread_waits().size(), 2U);
  EXPECT_EQ(reader.thread_waits()[0].thread, ThreadId{0});
  EXPECT_EQ(reader.thread_waits()[0].kind, WaitKind::all);
  const ThreadWaitRow& later = reader.thread_waits()[1];
  EXPECT_EQ(later.thread, ThreadId{1});
  EXPECT_EQ(later.kind, WaitKind::mutex);
  EXPECT_EQ(later.site, 0x401000U);
  EXPECT_EQ(later.waited_ns, 900U);
  EXPECT_EQ(later.count, 3U);
}

TEST_F(RoundTrip, WaitsThatWereLookedAtComeByThreadThenTime) {
  const std::uint64_t begin_ns = a_session().begin_ns;
  put(SampledWaitRow{ThreadId{1}, begin_ns + 9, LookKind::waiting, 0xfffffffffffffff8, 500, 30, {}, 7, StackId{4}});
  put(SampledWaitRow{ThreadId{0}, begin_ns + 8, LookKind::all, 0, 900, 40, -3, 12, StackId{}});
  const ProfileReader reader = read();
  ASSERT_EQ(reader.sampled_waits().size(), 2U);
  const SampledWaitRow& all = reader.sampled_waits()[0];
  EXPECT_EQ(all.thread, ThreadId{0});
  EXPECT_EQ(all.kind, LookKind::all);
  EXPECT_EQ(all.looked_ns, 900U);
  EXPECT_EQ(all.slept_ns, -3);
  EXPECT_EQ(all.stack, StackId{});
  const SampledWaitRow& asleep = reader.sampled_waits()[1];
  EXPECT_EQ(asleep.thread, ThreadId{1});
  EXPECT_EQ(asleep.time_ns, begin_ns + 9);
  EXPECT_EQ(asleep.kind, LookKind::waiting);
  EXPECT_FALSE(asleep.slept_ns);
  EXPECT_EQ(asleep.futex, 0xfffffffffffffff8U);
  EXPECT_EQ(asleep.looked_ns, 500U);
  EXPECT_EQ(asleep.spread_ns, 30U);
  EXPECT_EQ(asleep.looks, 7U);
  EXPECT_EQ(asleep.stack, StackId{4});
}

TEST_F(RoundTrip, RegionsAndWhoWasInThem) {
  put(RegionRow{RegionId{1}, RegionId{}, "outer"});
  put(RegionRow{RegionId{2}, RegionId{1}, "inner"});
  put(ThreadRegionRow{ThreadId{1}, RegionId{2}, 1, 10, {1, 2, 3}});
  put(ThreadRegionRow{ThreadId{1}, RegionId{2}, 5, 50, {4, 5, 6}});
  SampleRow sample;
  sample.region = RegionId{2};
  sample.flags = all_sample_flags;
  put(sample);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.regions().size(), 2U);
  EXPECT_EQ(reader.regions()[1].parent, RegionId{1});
  EXPECT_EQ(reader.regions()[1].name, "inner");
  ASSERT_EQ(reader.thread_regions().size(), 1U);
  const ThreadRegionRow& later = reader.thread_regions()[0];
  EXPECT_EQ(later.entries, 5U);
  EXPECT_EQ(later.elapsed_ns, 50U);
  EXPECT_EQ(later.waited_ns, (std::array<std::uint64_t, wait_classes>{4, 5, 6}));
  std::size_t samples = 0;
  ASSERT_TRUE(reader.for_each_sample([&](const SampleRow& row) {
    ++samples;
    EXPECT_EQ(row.region, RegionId{2});
    EXPECT_EQ(row.flags, all_sample_flags);
  }));
  EXPECT_EQ(samples, 1U);
}

TEST_F(RoundTrip, SharedMappingsComeByProcessThenTime) {
  const std::uint64_t begin_ns = a_session().begin_ns;
  const SharedMappingRow later{ProcessId{1}, begin_ns + 9,    0x9000, 4096, 8192, std::uint64_t{8} << 32U | 1,
                               77,           "/dev/shm/table"};
  SharedMappingRow earlier = later;
  earlier.time_ns = begin_ns + 3;
  earlier.name = "";
  put(later);
  put(earlier);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.shared_mappings().size(), 2U);
  EXPECT_EQ(reader.shared_mappings()[0].time_ns, earlier.time_ns);
  EXPECT_EQ(reader.shared_mappings()[0].name, "");
  const SharedMappingRow& got = reader.shared_mappings()[1];
  EXPECT_EQ(got.process, ProcessId{1});
  EXPECT_EQ(got.begin, 0x9000U);
  EXPECT_EQ(got.bytes, 4096U);
  EXPECT_EQ(got.file_offset, 8192U);
  EXPECT_EQ(got.device, later.device);
  EXPECT_EQ(got.inode, 77U);
  EXPECT_EQ(got.name, "/dev/shm/table");
}

/// A path that loops from 0x1010 to 0x1000 three times and ends at 0x1008.
std::vector<std::uint8_t> some_branches() {
  std::uint8_t bytes[64];
  BranchTraceWriter writer(bytes, sizeof bytes);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(writer.turn(i == 0 ? 8 : 16, std::uint64_t{0} - 16));
  }
  writer.end(8);
  return {bytes, bytes + writer.size()};
}

TEST_F(RoundTrip, Walks) {
  LookaheadRow lookahead;
  lookahead.thread = ThreadId{1};
  lookahead.time_ns = a_session().begin_ns + 7;
  lookahead.begin = 0x1008, lookahead.head = 0x1000;
  lookahead.instructions = 12, lookahead.passages = 3, lookahead.cost_ns = 1234, lookahead.end = LookaheadEnd::value;
  lookahead.branches = some_branches();
  put(lookahead);
  put(LookaheadRow{ThreadId{0}, 0, 5, 0, 0, 0, 0, LookaheadEnd::code, {0}});
  std::vector<LookaheadRow> got;
  ASSERT_TRUE(read().for_each_lookahead([&](const LookaheadRow& row) { got.push_back(row); }));
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].thread, ThreadId{1});
  EXPECT_EQ(got[0].time_ns, lookahead.time_ns);
  EXPECT_EQ(got[0].begin, 0x1008U);
  EXPECT_EQ(got[0].head, 0x1000U);
  EXPECT_EQ(got[0].instructions, 12U);
  EXPECT_EQ(got[0].passages, 3U);
  EXPECT_EQ(got[0].cost_ns, 1234U);
  EXPECT_EQ(got[0].end, LookaheadEnd::value);
  EXPECT_EQ(got[0].branches, lookahead.branches);
  EXPECT_EQ(got[1].head, 0U);
}

TEST_F(RoundTrip, CountersAndTheirReadings) {
  const CounterRow cycles{1, 1, "cycles", "cpu/config=0x3c/", "cpu", CounterQuantity::cycles, 1};
  const CounterRow slots{2, 1, "retiring", "cpu/config=0x2c2/", "cpu", CounterQuantity::retiring, 0.25};
  put(cycles);
  put(slots);
  ReadingRow reading;
  reading.thread = ThreadId{1};
  reading.time_ns = a_session().begin_ns + 9;
  reading.ip = 0xffff'ffff'8000'1234, reading.enabled_ns = 1'000'000, reading.running_ns = 999'999;
  reading.group = 1, reading.life = 7, reading.cpu = 3;
  reading.counts = {std::uint64_t{1} << 63U, 0};
  put(reading);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.counters().size(), 2U);
  EXPECT_EQ(reader.counters()[1].name, "retiring");
  EXPECT_EQ(reader.counters()[1].event, "cpu/config=0x2c2/");
  EXPECT_EQ(reader.counters()[1].unit, "cpu");
  EXPECT_EQ(reader.counters()[1].quantity, CounterQuantity::retiring);
  EXPECT_EQ(reader.counters()[1].each, 0.25);
  std::vector<ReadingRow> got;
  ASSERT_TRUE(reader.for_each_reading([&](const ReadingRow& row) { got.push_back(row); }));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].thread, ThreadId{1});
  EXPECT_EQ(got[0].time_ns, reading.time_ns);
  EXPECT_EQ(got[0].ip, reading.ip);
  EXPECT_EQ(got[0].enabled_ns, 1'000'000U);
  EXPECT_EQ(got[0].running_ns, 999'999U);
  EXPECT_EQ(got[0].group, 1U);
  EXPECT_EQ(got[0].life, 7U);
  EXPECT_EQ(got[0].cpu, 3U);
  EXPECT_EQ(got[0].counts, reading.counts);
}

TEST(Counts, WhatIsCutShortOrTooMuchIsNone) {
  const std::vector<std::uint64_t> counts = {0, 127, 128, UINT64_MAX};
  const std::vector<std::uint8_t> packed = pack_counts(counts);
  std::vector<std::uint64_t> got;
  ASSERT_TRUE(unpack_counts(packed, 4, got));
  EXPECT_EQ(got, counts);
  EXPECT_FALSE(unpack_counts(packed, 3, got));
  EXPECT_FALSE(unpack_counts({packed.data(), packed.size() - 1}, 4, got));
}

TEST(BranchTrace, IsReadBackLineByLine) {
  const auto lines = unpack_branch_trace(some_branches(), 0x1008);
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 4U);
  EXPECT_EQ((*lines)[0].begin, 0x1008U);
  EXPECT_EQ((*lines)[0].last, 0x1010U);
  EXPECT_EQ((*lines)[2].begin, 0x1000U);
  EXPECT_EQ((*lines)[2].last, 0x1010U);
  EXPECT_EQ((*lines)[3].begin, 0x1000U);
  EXPECT_EQ((*lines)[3].last, 0x1008U);
}

TEST(BranchTrace, WhatIsCutShortIsNone) {
  const std::vector<std::uint8_t> branches = some_branches();
  EXPECT_FALSE(unpack_branch_trace({}, 0));
  EXPECT_FALSE(unpack_branch_trace({branches.data(), 2}, 0));                            // behind a jump
  EXPECT_FALSE(unpack_branch_trace(std::vector<std::uint8_t>{0x80}, 0));                 // within a number
  EXPECT_FALSE(unpack_branch_trace(std::vector<std::uint8_t>{0xff, 0xff, 0xff, 1}, 0));  // longer than lookaheads are
  EXPECT_FALSE(unpack_branch_trace(std::vector<std::uint8_t>(max_branch_trace_bytes + 1, 0), 0));  // too many bytes
}

TEST(BranchTrace, AFullBufferKeepsRoomForTheEnd) {
  std::uint8_t bytes[40];
  BranchTraceWriter writer(bytes, sizeof bytes);
  std::size_t turns = 0;
  while (writer.turn(max_straight_bytes, 0x7000000000000000)) {
    ++turns;
  }
  writer.end(~std::uint64_t{0});
  EXPECT_EQ(turns, 1U);
  EXPECT_LE(writer.size(), sizeof bytes);
}

TEST_F(RoundTrip, BlocksStacksAndMessages) {
  BlockRow block{ProcessId{1}, a_session().begin_ns + 3, 0x5000, 4096, 0x1234, BlockKind::mapping, StackId{1}};
  put(block);
  StackRow stack;
  stack.id = StackId{1};
  stack.registers[Register::rsp] = 0x7fffffffe000;
  for (int i = 0; i < 5000; ++i) {
    stack.bytes.push_back(static_cast<std::uint8_t>(i * i));
  }
  put(stack);
  StackRow empty;
  empty.id = StackId{2};
  put(empty);
  put(MessageRow{"records_lost", "lost", 3}), put(MessageRow{"records_lost", "lost", 4});
  put(MessageRow{"records_lost", "other", 1});
  const ProfileReader reader = read();
  ASSERT_EQ(reader.blocks().size(), 1U);
  EXPECT_EQ(reader.blocks()[0].process, ProcessId{1});
  EXPECT_EQ(reader.blocks()[0].time_ns, block.time_ns);
  EXPECT_EQ(reader.blocks()[0].site, 0x1234U);
  EXPECT_EQ(reader.blocks()[0].kind, BlockKind::mapping);
  std::vector<StackRow> stacks;
  ASSERT_TRUE(reader.for_each_stack([&](const StackRow& row) { stacks.push_back(row); }));
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0].bytes, stack.bytes);
  EXPECT_EQ(stacks[0].registers[Register::rsp], 0x7fffffffe000U);
  EXPECT_TRUE(stacks[1].bytes.empty());
  stacks.clear();
  const auto second = [](StackId id) { return id == StackId{2}; };
  ASSERT_TRUE(reader.for_each_stack([&](const StackRow& row) { stacks.push_back(row); }, second));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].id, StackId{2});
  ASSERT_EQ(reader.messages().size(), 2U);
  EXPECT_EQ(reader.messages()[0].count, 7U);
}

TEST_F(RoundTrip, CommittedRowsAreReadableWhileTheWriterGoesOn) {
  put(a_sample());
  ASSERT_TRUE(writer_.commit());
  put(a_sample());
  const Result<ProfileReader> reader = ProfileReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  int samples = 0;
  ASSERT_TRUE(reader->for_each_sample([&](const SampleRow&) { ++samples; }));
  EXPECT_EQ(samples, 1);
  ASSERT_TRUE(writer_.commit());
}

}  // namespace
}  // namespace crosstalk::profile::round_trip_test
