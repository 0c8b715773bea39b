// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/code_time.h"

#include <gtest/gtest.h>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::code_time_test {
namespace {

/// One module: work() at [0x100, 0x200) with an outer loop [0x110, 0x190) and in it an inner one [0x140, 0x160) whose
/// body is inlined from step(); tail() at 0x200 without loops. 0x300 and up has no symbols.
class CodeTimeTest : public testing::Test {
 protected:
  CodeTimeTest()
      : processes_(1),
        threads_(make_threads(2)),
        modules_({module_row("/bin/app", 0x400000, 0x401000, 0x400000)}),
        spaces_(processes_, modules_),
        view_(processes_, threads_, spaces_, code_) {
    const auto put = [&](std::uint64_t address, std::vector<symbolizer::Frame> frames, std::uint64_t begin) {
      symbolizer::CodeLocation location;
      location.frames = std::move(frames);
      location.function_begin = begin;
      code_.locations[{0, address}] = location;
    };
    put(0x100, {frame("work", "/src/a.cpp", 10)}, 0x100);
    put(0x110, {frame("work", "/src/a.cpp", 12)}, 0x100);
    put(0x140, {frame("step", "/src/b.h", 5, true), frame("work", "/src/a.cpp", 14)}, 0x100);
    put(0x160, {frame("work", "/src/a.cpp", 15)}, 0x100);
    put(0x200, {frame("tail", "/src/a.cpp", 30)}, 0x200);
    put(0x300, {}, 0);
    symbolizer::FunctionLoops loops;
    loops.function_begin = 0x100;
    loops.loops.resize(2);
    loops.loops[0].header = 0x110;
    loops.loops[0].begin = {"/src/a.cpp", 12};
    loops.loops[0].end = {"/src/a.cpp", 16};
    loops.loops[1].parent = 0;
    loops.loops[1].depth = 2;
    loops.loops[1].header = 0x140;
    loops.loops[1].begin = {"/src/b.h", 5};
    loops.loops[1].end = {"/src/b.h", 6};
    loops.ranges = {{0x110, 0x140, 0}, {0x140, 0x160, 1}, {0x160, 0x190, 0}};
    code_.functions[{0, 0x100}] = loops;
    code_.functions[{0, 0x200}] = {};
  }

  static CodeTotal at(std::uint64_t address, std::uint64_t samples, std::uint32_t thread = 0) {
    const auto n = static_cast<double>(samples);
    return {ThreadId{thread}, ModulePlace{0, address}, address, samples, n * 1e6, n * 1e12};
  }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  AddressSpaces spaces_;
  FakeCode code_;
  ProgramView view_;
};

TEST_F(CodeTimeTest, LoopsNest) {
  const auto result = code_time(std::vector{at(0x150, 60), at(0x150, 10, 1), at(0x120, 20), at(0x210, 10)}, view_, 100);
  ASSERT_EQ(result.loops.size(), 2U);
  const LoopRow& outer = result.loops[0];
  const LoopRow& inner = result.loops[1];
  EXPECT_EQ(outer.function, "work");
  EXPECT_EQ(outer.line_begin, 12U);
  EXPECT_EQ(outer.line_end, 16U);
  EXPECT_NEAR(outer.cpu_s, 0.09, 1e-12);
  EXPECT_NEAR(outer.self_s, 0.02, 1e-12);
  EXPECT_NEAR(outer.share, 0.9, 1e-12);
  EXPECT_LT(outer.share_ci95.low, 0.9);
  EXPECT_GT(outer.share_ci95.high, 0.9);
  EXPECT_FALSE(outer.parent);
  EXPECT_EQ(inner.function, "step");
  EXPECT_EQ(inner.file, "/src/b.h");
  EXPECT_EQ(inner.depth, 2U);
  EXPECT_EQ(inner.parent, outer.id);
  EXPECT_NEAR(inner.self_s, 0.07, 1e-12);
  ASSERT_EQ(inner.threads.size(), 2U);
  EXPECT_NEAR(inner.threads[1].cpu_s, 0.01, 1e-12);
}

TEST_F(CodeTimeTest, LoopIdsAreTheSameInAnotherRun) {
  const auto one = code_time(std::vector{at(0x150, 60)}, view_, 100);
  const auto other = code_time(std::vector{at(0x120, 5)}, view_, 100);
  ASSERT_EQ(other.loops.size(), 1U);
  EXPECT_EQ(one.loops[1].line_begin == 12 ? one.loops[1].id : one.loops[0].id, other.loops[0].id);
}

TEST_F(CodeTimeTest, FunctionsAndLines) {
  const auto result = code_time(std::vector{at(0x150, 60), at(0x120, 25), at(0x210, 15)}, view_, 100);
  ASSERT_EQ(result.functions.size(), 2U);
  EXPECT_EQ(result.functions[0].function, "work");
  EXPECT_EQ(result.functions[0].line, 10U);
  EXPECT_NEAR(result.functions[0].share, 0.85, 1e-12);
  ASSERT_EQ(result.lines.size(), 3U);
  EXPECT_EQ(result.lines[0].file, "/src/b.h");
  EXPECT_EQ(result.lines[0].function, "step");
  EXPECT_NEAR(result.lines[0].share, 0.6, 1e-12);
}

TEST_F(CodeTimeTest, ALineHasTheTimeOfItsAccesses) {
  const AccessTime access{ModulePlace{0, 0x150}, ModulePlace{0, 0x120}, 45e6};
  const auto result = code_time(std::vector{at(0x150, 60), at(0x210, 10)}, view_, 100, 0, std::vector{access});
  ASSERT_EQ(result.lines.size(), 3U);
  EXPECT_EQ(result.lines[0].function, "work");
  EXPECT_NEAR(result.lines[0].self_s, 0.045, 1e-12);
  EXPECT_EQ(result.lines[1].function, "step");
  EXPECT_NEAR(result.lines[1].self_s, 0.015, 1e-12);
  EXPECT_NEAR(result.loops[0].self_s + result.loops[1].self_s, 0.06, 1e-12) << "loops are of the interrupted code";

  const AccessTime all{ModulePlace{0, 0x150}, ModulePlace{0, 0x120}, 60e6};
  EXPECT_EQ(code_time(std::vector{at(0x150, 60)}, view_, 100, 0, std::vector{all}).lines.size(), 1U);
}

TEST_F(CodeTimeTest, ALineIsTheProgramsOwn) {
  code_.locations[{0, 0x300}].frames = {frame("std::atomic<long>::fetch_add", "/usr/include/c++/12/atomic", 618, true),
                                        frame("count", "/src/a.cpp", 33)};
  const auto result = code_time(std::vector{at(0x310, 10)}, view_, 100);
  ASSERT_EQ(result.lines.size(), 1U);
  EXPECT_EQ(result.lines[0].file, "/src/a.cpp");
  EXPECT_EQ(result.lines[0].line, 33U);
}

TEST_F(CodeTimeTest, UnknownCodeIsListedAndCounted) {
  code_.jit[0x7000] = "jitted";
  CodeTotal jit{ThreadId{0}, std::nullopt, 0x7000, 5, 5e6, 5e12};
  CodeTotal nowhere{ThreadId{0}, std::nullopt, 0x8000, 5, 5e6, 5e12};
  const auto result = code_time(std::vector{at(0x310, 10), jit, nowhere}, view_, 100);
  ASSERT_EQ(result.functions.size(), 3U);
  EXPECT_EQ(result.functions[0].function, "[unknown]");
  EXPECT_EQ(result.functions[0].module, "/bin/app");
  EXPECT_NEAR(*result.unknown_frames, 0.75, 1e-12);
}

TEST_F(CodeTimeTest, NoSamplesNoShares) {
  const auto result = code_time({}, view_, 100);
  EXPECT_FALSE(result.unknown_frames);
  EXPECT_TRUE(result.functions.empty());
}

TEST_F(CodeTimeTest, DamagedLoopTablesEnd) {
  symbolizer::FunctionLoops loops;
  loops.loops.resize(2);
  loops.loops[0].parent = 1;
  loops.loops[1].parent = 0;
  loops.loops[0].header = 0x200;
  loops.loops[1].header = 0x208;
  loops.ranges = {{0x200, 0x210, 0}, {0x210, 0x220, 1}, {0x220, 0x230, 77}};
  code_.functions[{0, 0x200}] = loops;
  const auto result = code_time(std::vector{at(0x204, 1), at(0x214, 1), at(0x224, 1)}, view_, 100);
  EXPECT_LE(result.loops.size(), 2U);
}

TEST_F(CodeTimeTest, RowsAreCut) {
  const auto result = code_time(std::vector{at(0x150, 60), at(0x120, 25), at(0x210, 15)}, view_, 1);
  EXPECT_EQ(result.functions.size(), 1U);
  EXPECT_EQ(result.lines.size(), 1U);
}

TEST_F(CodeTimeTest, DigestSumsByPlaceAndMovesKernelTimeToItsCall) {
  Strata strata({}, threads_);
  LineSet lines;
  SampleDigest digest(threads_, spaces_, lines, strata);
  profile::SampleRow sample;
  sample.cpu_ns = 1'000'000;
  sample.ip = 0x400150;
  digest.add(sample);
  digest.add(sample);
  sample.flags = profile::sample_in_kernel;
  sample.ip = 0x400200;  // the instruction after a system call at the end of work()
  digest.add(sample);
  sample.thread = ThreadId{99};
  digest.add(sample);
  const auto code = digest.code();
  ASSERT_EQ(code.size(), 2U);
  EXPECT_EQ(code[0].place, (ModulePlace{0, 0x150}));
  EXPECT_EQ(code[0].samples, 2U);
  EXPECT_EQ(code[1].place, (ModulePlace{0, 0x1ff}));
  EXPECT_EQ(digest.malformed(), 1U);
  EXPECT_EQ(digest.user_mode(), 2U);
  EXPECT_TRUE(digest.access_times().empty());
  profile::SampleRow retired;
  retired.cpu_ns = 1'000'000;
  retired.ip = 0x400150;
  retired.access_ip = 0x40014c;
  for (const auto from : {profile::AddressFrom::retired, profile::AddressFrom::next}) {
    retired.from = from;
    digest.add(retired);
  }
  const auto accesses = digest.access_times();
  ASSERT_EQ(accesses.size(), 1U) << "the next access has taken no time yet";
  EXPECT_EQ(accesses[0].access, (ModulePlace{0, 0x14c}));
  EXPECT_NEAR(accesses[0].ns, 1e6, 1e-6);
  EXPECT_NEAR(digest.threads()[0].kernel_ns, 1e6, 1e-6);
}

TEST(ShareInterval, Wilson) {
  const Interval half = share_interval(0.5, 100);
  EXPECT_NEAR(half.low, 0.4038, 1e-3);
  EXPECT_NEAR(half.high, 0.5962, 1e-3);
  EXPECT_EQ(share_interval(0, 50).low, 0);
  EXPECT_GT(share_interval(0, 50).high, 0);
  EXPECT_EQ(share_interval(0.3, 0).high, 1);
}

TEST_F(CodeTimeTest, TimeInTheKernelHasANameAndSamplesAreCounted) {
  CodeTotal call = at(0x150, 30);
  call.in_kernel = call.system_call = true;
  const auto totals = code_totals({call, at(0x150, 70)}, view_);
  EXPECT_TRUE(totals[0].system_call) << "code that is not known is taken to have one";
  const CodeTime result = code_time(totals, view_, 100);
  ASSERT_EQ(result.kernel.size(), 1U);
  EXPECT_EQ(result.kernel[0].name, "[system calls]");
  EXPECT_NEAR(result.kernel[0].share, 0.3, 1e-12);
  EXPECT_EQ(result.kernel[0].samples, 30U);
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_EQ(result.functions[0].samples, 100U);
  EXPECT_NEAR(result.functions[0].kernel_s, 0.03, 1e-12);
  EXPECT_EQ(result.loops[0].samples, 100U);
  EXPECT_NEAR(result.loops[0].kernel_s, 0.03, 1e-12);
}

TEST_F(CodeTimeTest, AFunctionThatALoopWasInlinedIntoIsKept) {
  const auto result = code_time(std::vector{at(0x150, 60)}, view_, 100);
  EXPECT_EQ(result.loops[0].function, "step");
  EXPECT_EQ(result.loops[0].compiled_into, "work");
  EXPECT_EQ(result.loops[1].compiled_into, "");
}

}  // namespace
}  // namespace crosstalk::attribution::test::code_time_test
