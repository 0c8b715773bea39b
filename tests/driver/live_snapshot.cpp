// SPDX-License-Identifier: Apache-2.0
#include "live_snapshot.h"

#include <string>

namespace crosstalk::driver::live::test {

namespace {

Exchange exchange(double cost_s, double gain_s, double latest_s, std::uint64_t seen) {
  return {cost_s, gain_s, std::nullopt, latest_s, seen, latest_s > 0 ? seen / 4 : 0};
}

LineRow line(const std::string& file, std::uint32_t number, const std::string& function, const std::string& role,
             const std::string& object, const Exchange& amount, std::vector<PairShare> pairs) {
  LineRow row;
  row.file = file;
  row.line = number;
  row.function = function;
  row.role = role;
  row.object = object;
  row.exchange = amount;
  row.pairs = std::move(pairs);
  return row;
}

}  // namespace

Snapshot sample_snapshot() {
  Snapshot s;
  s.sequence = 7;
  s.time_unix_s = 1'700'000'000;
  s.window_s = 10;
  s.latest_s = 2;
  s.refresh_s = 2;
  s.command = "/opt/bench/histogram --threads 4";
  s.pids = {4242};
  s.cpu_s = 20;
  s.latest_cpu_s = 4;
  s.processors = s.latest_processors = 2;
  s.source = "clock";
  s.method = "watch";
  s.watching = "4 of 5 threads sampled: 2311 samples, 150 watches, 589 traps";
  s.overhead = {0.012, 0.11, 0.03, 0.004};
  s.warnings = {{"missing_symbols", "libfoo.so.1 has no line information; install its debug package"}};
  for (std::uint32_t i = 0; i < 5; ++i) {
    s.threads.push_back({i, 4242, static_cast<std::int32_t>(4242 + i), i == 0 ? "histogram" : "worker",
                         i == 0 ? 0.01 : 5.0, i == 0 ? 0.0 : 1.0, i == 0 ? 0 : 0.5 * i});
  }
  const Exchange there = exchange(4, 2, 1.2, 40);
  const Exchange back = exchange(3, 1.5, 0.4, 36);
  const Exchange passed = exchange(1, 0.25, 0, 12);
  s.cells = {{1, 2, 0.0, 4.0, there}, {2, 1, 0.0, 3.0, back}, {3, 4, 1.0, 0.0, passed}};
  const std::vector<PairShare> both = {{1, 2, 4.0, 40}, {2, 1, 3.0, 36}};
  const std::vector<PairShare> one = {{3, 4, 1.0, 12}};
  const std::string add = "bench::detail::Histogram<unsigned long>::add(std::vector<double> const&)";
  s.lines = {line("/src/bench/histogram.cpp", 41, add, "consumer", "counters", exchange(7, 3.5, 1.6, 76), both),
             line("/src/bench/histogram.cpp", 41, add, "producer", "counters", exchange(7, 3.5, 1.6, 76), both),
             line("/src/queue.h", 102, "Queue::pop()", "consumer", "Queue", passed, one)};
  ObjectRow counters;
  counters.name = "counters";
  counters.label = "counters[1].hits";
  counters.kind = "global";
  counters.sharing = "false_sharing";
  counters.exchange = exchange(7, 3.5, 1.6, 76);
  counters.lines = {{"/src/bench/histogram.cpp", 41, add}};
  counters.pairs = both;
  ObjectRow queue;
  queue.name = queue.label = "Queue";
  queue.kind = "heap";
  queue.sharing = "queue";
  queue.exchange = passed;
  queue.exchange.gain_s.reset();
  queue.exchange.gain_most_s = 0.5;
  queue.lines = {{"/src/queue.h", 102, "Queue::pop()"}};
  queue.pairs = one;
  s.objects = {counters, queue};
  LoopRow loop;
  loop.id = 11;
  loop.function = add;
  loop.file = "/src/bench/histogram.cpp";
  loop.line_begin = 40;
  loop.line_end = 43;
  loop.self_s = loop.cpu_s = 12;
  loop.latest_cpu_s = 2.4;
  loop.share = 0.6;
  loop.busy_class = "in_l2";
  loop.samples = 1400;
  loop.threads = {{1, 7.0}, {2, 5.0}};
  s.loops = {loop};
  s.findings = {{"Threads 1 and 2 (worker) exchange the cache line of `counters[1].hits` (global, 64 bytes): all of it "
                 "false sharing. This costs about 70 % of their time. Give each thread's part its own 64-byte line.",
                 "false_sharing", 7.0, 3.5, std::nullopt, "counters", "histogram.cpp:41", "histogram.cpp:41",
                 "Give each thread's part its own 64-byte line."},
                {"The hottest loop, in add() at histogram.cpp:40-43, takes 60 % of the CPU time.", "loop", std::nullopt,
                 std::nullopt, std::nullopt, "", "", "", ""}};
  s.code = {{"/src/bench/histogram.cpp", 41, add, 11.0}, {"/src/bench/histogram.cpp", 42, add, 1.0}};
  return s;
}

Snapshot crowded_snapshot(std::uint32_t threads) {
  Snapshot s = sample_snapshot();
  s.threads.clear();
  s.cells.clear();
  for (std::uint32_t t = 0; t < threads; ++t) {
    s.threads.push_back({t, 4242, static_cast<std::int32_t>(4242 + t), "worker", 1.0, 0.2, 0.1});
    if (t + 1 < threads) {
      s.cells.push_back({t, t + 1, 0.1, 0.0, exchange(0.1, 0.05, 0.02, 8)});
    }
  }
  return s;
}

}  // namespace crosstalk::driver::live::test
