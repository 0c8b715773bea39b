// SPDX-License-Identifier: Apache-2.0
#include "attribution/hottest.h"

#include <gtest/gtest.h>

#include <string>

namespace crosstalk::attribution::hottest_test {
namespace {

FunctionRow function(const std::string& name, const std::string& module, double share) {
  FunctionRow row;
  row.function = name;
  row.module = module;
  row.self_s = row.share = share;
  row.samples = 100;
  return row;
}

LoopRow loop(const std::string& function, double share, const std::string& compiled_into = "") {
  LoopRow row;
  row.function = function;
  row.compiled_into = compiled_into;
  row.module = "/bin/app";
  row.file = "/src/a.c";
  row.line_begin = 5;
  row.line_end = 9;
  row.share = share;
  row.samples = 100;
  return row;
}

KernelRow call(const std::string& name, double share) {
  KernelRow row;
  row.name = name;
  row.share = row.self_s = share;
  row.samples = 100;
  row.callers = {{"pump", "/src/a.c", 20, 1}};
  return row;
}

std::string sentence(const Analysis& analysis) { return hottest(analysis).sentence; }

TEST(Hottest, ALoopThatHoldsAsMuchAsItsFunction) {
  Analysis a;
  a.functions = {function("work", "/bin/app", 0.9)};
  a.loops = {loop("work", 0.88)};
  EXPECT_EQ(sentence(a), "The hottest loop, in work() at a.c:5-9, takes 88 % of the CPU time.");
  a.loops = {loop("step", 0.88, "work")};
  EXPECT_EQ(sentence(a), "The hottest loop, in step() at a.c:5-9 (inlined into work()), takes 88 % of the CPU time.");
}

TEST(Hottest, AFunctionThatHoldsMoreThanAnyLoop) {
  Analysis a;
  a.functions = {function("work", "/bin/app", 0.55), function("other", "/bin/app", 0.2)};
  a.loops = {loop("work", 0.3)};
  EXPECT_EQ(sentence(a),
            "The hottest function, work() of app, takes 55 % of the CPU time, 30 % in its loop at a.c:5-9.");
  a.loops = {loop("other", 0.2)};
  EXPECT_EQ(sentence(a), "The hottest function, work() of app, takes 55 % of the CPU time.");
}

TEST(Hottest, OfALibraryWithWhoCallsIt) {
  Analysis a;
  a.functions = {function("memmove", "/lib/libc.so.6", 0.6), function("work", "/bin/app", 0.3)};
  a.functions[0].callers = {{"copy", "/src/a.c", 7, 0.7}, {"send", "/src/b.c", 8, 0.3}};
  EXPECT_EQ(sentence(a),
            "The hottest function, memmove() of libc.so.6, takes 60 % of the CPU time, mostly called by copy() at "
            "a.c:7 and send() at b.c:8.");
}

TEST(Hottest, OfALibrarysTemplateWithWhoCallsIt) {
  Analysis a;
  a.functions = {function("std::__find_if", "/bin/app", 0.6)};
  a.functions[0].callers = {{"look_up", "/src/a.c", 7, 1}};
  EXPECT_EQ(sentence(a),
            "The hottest function, std::__find_if() of app, takes 60 % of the CPU time, called by look_up() at a.c:7.");
  a.loops = {loop("std::__find_if", 0.6)};
  EXPECT_EQ(
      sentence(a),
      "The hottest loop, in std::__find_if() at a.c:5-9, takes 60 % of the CPU time, called by look_up() at a.c:7.");
}

TEST(Hottest, ASystemCallByItsName) {
  Analysis a;
  a.functions = {function("__libc_read", "/lib/libc.so.6", 0.9), function("pump", "/bin/app", 0.1)};
  a.functions[0].kernel_s = 0.88;
  a.kernel = {call("read", 0.88)};
  EXPECT_EQ(sentence(a), "The system call read() takes 88 % of the CPU time, called by pump() at a.c:20.");
  EXPECT_EQ(hottest(a).kind, "kernel");
  a.kernel[0].name = "[page faults and interrupts]";
  a.kernel[0].system_call = false;
  EXPECT_EQ(sentence(a), "Page faults and interrupts take 88 % of the CPU time, in pump() at a.c:20.");
}

TEST(Hottest, NeverTheCollector) {
  Analysis a;
  a.functions = {function("crosstalk::in_target::blocks::insert()", "/opt/libcrosstalk.so", 0.8),
                 function("work", "/bin/app", 0.1)};
  a.loops = {loop("crosstalk::in_target::blocks::insert()", 0.8)};
  a.loops[0].module = "/opt/libcrosstalk.so";
  EXPECT_EQ(sentence(a), "The hottest function, work() of app, takes 10 % of the CPU time.");
}

TEST(Hottest, CodeWithoutNames) {
  Analysis a;
  a.functions = {function("[plug.so]", "/tmp/plug.so", 0.95), function("work", "/bin/app", 0.05)};
  EXPECT_EQ(sentence(a),
            "95 % of the CPU time is in code of plug.so, whose functions have no names here: the warnings say why.");
  a.functions[0] = function("[unknown]", "", 0.95);
  EXPECT_EQ(sentence(a),
            "95 % of the CPU time is in code that lies in no file and has no names: the warnings say why.");
}

TEST(Hottest, AFunctionWithoutANameTellsItsFileOnce) {
  Analysis a;
  a.functions = {function("liblzma.so.5+0x15990", "/lib/liblzma.so.5", 0.63)};
  EXPECT_EQ(sentence(a), "The hottest function, liblzma.so.5+0x15990, takes 63 % of the CPU time.");
  a.functions[0].module = "/lib/other.so";
  EXPECT_EQ(sentence(a), "The hottest function, liblzma.so.5+0x15990 of other.so, takes 63 % of the CPU time.");
}

TEST(Hottest, CodeOfALanguagesRunTimeByItsSource) {
  Analysis a;
  const auto told = [&a](const std::string& name) {
    a.functions = {function(name, "[JIT]", 0.5)};
    return sentence(a);
  };
  EXPECT_EQ(told("JS:*fib /src/w.js:2:13"),
            "The hottest function, fib() at w.js:2 of [JIT], takes 50 % of the CPU time.");
  EXPECT_EQ(told("LazyCompile:~ file:///src/w.mjs:7:1"),
            "The hottest function, (anonymous) at w.mjs:7 of [JIT], takes 50 % of the CPU time.");
  EXPECT_EQ(told("py::A.run:/src/a.py"), "The hottest function, A.run() at a.py of [JIT], takes 50 % of the CPU time.");
  EXPECT_EQ(told("JS:odd"), "The hottest function, JS:odd() of [JIT], takes 50 % of the CPU time.");
}

TEST(Hottest, NothingOfHardlyAnything) {
  Analysis a;
  EXPECT_EQ(sentence(a), "");
  a.functions = {function("work", "/bin/app", 0.01)};
  EXPECT_EQ(sentence(a), "");
}

TEST(Hottest, FewSamplesAreAHint) {
  Analysis a;
  a.functions = {function("work", "/bin/app", 0.9)};
  a.functions[0].samples = 3;
  EXPECT_NE(sentence(a).find(" This is a hint only: it rests on 3 samples."), std::string::npos) << sentence(a);
}

TEST(InTheKernel, IsToldByCall) {
  Analysis a;
  a.cpu_s = 1;
  ThreadSummary thread;
  thread.cpu_s = 1;
  thread.kernel_share = 0.7;
  a.threads = {thread};
  a.kernel = {call("read", 0.4), call("write", 0.3), call("[page faults and interrupts]", 0.001)};
  EXPECT_EQ(in_the_kernel(a, hottest(a)).sentence,
            "The kernel takes 70 % of the CPU time: read() 40 %, write() 30 %. crosstalk sees no data addresses in the "
            "kernel, so it cannot show communication there.");
  a.kernel = {call("read", 0.7)};
  EXPECT_EQ(in_the_kernel(a, hottest(a)).sentence, "") << "it is said";
  a.kernel = {call("a", 0.3), call("b", 0.1), call("c", 0.1), call("d", 0.1), call("e", 0.09)};
  EXPECT_EQ(
      in_the_kernel(a, {}).sentence,
      "The kernel takes 70 % of the CPU time: a() 30 %, b() 10 %, c() 10 %, d() 10 %, others 10 %. crosstalk sees "
      "no data addresses in the kernel, so it cannot show communication there.");
  a.threads[0].kernel_share = 0.2;
  EXPECT_NE(in_the_kernel(a, {}).sentence.find("takes 69 %"), std::string::npos) << "as much as its parts";
  a.kernel.clear();
  EXPECT_EQ(in_the_kernel(a, {}).sentence, "");
}

}  // namespace
}  // namespace crosstalk::attribution::hottest_test
