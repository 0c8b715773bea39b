// SPDX-License-Identifier: Apache-2.0
#include "sample_analysis.h"

#include <string>

namespace crosstalk::driver::test {

using namespace attribution;

namespace {

Amount amount(double cost_s, std::uint64_t seen) {
  Amount a;
  if (seen > 0) {
    a.cost_s = cost_s;
    a.cost_ci95 = Interval{cost_s * 0.8, cost_s * 1.2};
    a.detections = static_cast<double>(seen) * 10;
    a.seen = seen;
  }
  return a;
}

Cell cell(std::uint32_t producer, std::uint32_t consumer, double true_s, double false_s) {
  return {producer, consumer, amount(true_s, true_s > 0 ? 12 : 0), amount(false_s, false_s > 0 ? 34 : 0)};
}

const std::string long_name =
    "bench::detail::Histogram<unsigned long, std::allocator<unsigned long> >::add(std::vector<double> const&)";

Communication sample_communication() {
  Communication c;
  c.cells = {cell(1, 2, 0, 0.412), cell(1, 3, 0, 0.0871),    cell(2, 1, 0.0021, 0.398), cell(2, 4, 0, 0.0203),
             cell(3, 4, 0.231, 0), cell(4, 1, 0, 0.0000912), cell(4, 3, 0.118, 0.090)};
  c.cores = {cell(0, 1, 0.1, 0.4), cell(1, 0, 0.2, 0.3)};
  c.invalidations = {cell(0, 1, 0.01, 0)};
  LineRow line{"/src/bench/histogram.cpp", 41, long_name, Role::consumer, {cell(1, 2, 0, 0.412)}, 0.412, {}};
  line.call_paths = {
      {{{long_name, {"/src/bench/histogram.cpp", 41}, false}, {"worker(int)", {"/src/main.cpp", 20}, false}}, 0.9}};
  c.lines = {line, {"", 0, "", Role::producer, {cell(1, 2, 0, 0.412)}, 0.412, {}}};
  c.line_pairs = {{"/src/bench/histogram.cpp",
                   41,
                   long_name,
                   "/src/bench/histogram.cpp",
                   41,
                   long_name,
                   "counters",
                   {cell(1, 2, 0, 0.412), cell(2, 1, 0, 0.398)},
                   0.81},
                  {"/src/queue.h",
                   88,
                   "Queue::push(int)",
                   "/src/queue.h",
                   102,
                   "Queue::pop()",
                   "queue",
                   {cell(3, 4, 0.231, 0)},
                   0.231}};
  ObjectRow counters{
      "counters", ObjectKind::global, 64, "[1].hits", "", {}, {cell(1, 2, 0, 0.412), cell(2, 1, 0, 0.398)}, {}, 0.81};
  for (std::uint32_t t = 1; t <= 4; ++t) {
    counters.offsets.push_back({t, 8ULL * (t - 1), 8, 40, t == 3 ? 0U : 41U});
  }
  counters.offsets.push_back({1, 48, 4, 9, 0});
  ObjectRow queue{"Queue",
                  ObjectKind::heap,
                  1 << 20,
                  "head",
                  "queue.cpp:12 make_queue()",
                  {{"make_queue()", {"/src/queue.cpp", 12}, false}, {"main", {"/src/main.cpp", 9}, false}},
                  {cell(3, 4, 0.231, 0)},
                  {{3, 4096, 8, 0, 7}, {4, 4096, 8, 9, 0}},
                  0.231};
  c.objects = {counters, queue};
  return c;
}

std::vector<LoopRow> sample_loops() {
  LoopRow outer{1,    std::nullopt, "worker(int)", "/src/main.cpp", 18, 30, 1, 2.9, 0.3,
                0.58, {0.55, 0.61}, "/src/a.out",  {{1, 1.5, 0.1}}};
  LoopRow inner{2, 1, long_name, "/src/bench/histogram.cpp", 40, 43, 2, 2.6, 2.6, 0.52, {0.5, 0.54}, "/src/a.out", {}};
  LoopRow other{3, std::nullopt, "main", "/src/main.cpp", 50, 50, 1, 0.2, 0.2, 0.04, {0.03, 0.05}, "/src/a.out", {}};
  return {outer, inner, other};
}

AccessFigures figures_of(std::uint64_t loads, std::uint64_t stores, std::uint64_t hitm) {
  AccessFigures figures;
  figures.samples = loads + stores;
  figures.loads = loads;
  figures.stores = stores;
  figures.hitm_local = hitm;
  figures.store_misses = stores / 2;
  figures.found[static_cast<std::size_t>(MemoryLevel::l3)] = loads;
  figures.snoop[static_cast<std::size_t>(Snoop::hitm)] = loads;
  figures.translation[static_cast<std::size_t>(Translation::l1)] = figures.samples;
  figures.accesses = 1000.0 * static_cast<double>(figures.samples);
  figures.hitm = 1000.0 * static_cast<double>(hitm);
  if (loads > 0) {
    figures.cost_cycles = 3e5 * static_cast<double>(loads);
    figures.latency = LatencyFigures{loads, 250, 700, 300, 1200};
  }
  return figures;
}

Memory sample_memory() {
  Memory memory;
  memory.unknown = "";
  memory.events = {{"cpu/mem-loads,ldlat=30/P", 40, 30, true}, {"cpu/mem-stores/P", 20, 0, true}};
  memory.totals = figures_of(40, 20, 10);
  memory.on_shared_lines = figures_of(30, 20, 10);
  memory.sources = {{MemoryLevel::l3, 40, 1, 40'000, LatencyFigures{40, 250, 700, 300, 1200}}};
  memory.lines = {{long_name, "/src/bench/histogram.cpp", "/src/a.out", 41, figures_of(40, 0, 10), {}}};
  memory.lines[0].call_paths = {{{{long_name, {"/src/bench/histogram.cpp", 41}, false}, {"main", {}, false}}, 0.75}};
  memory.objects = {{"counters", ObjectKind::global, 64, figures_of(40, 20, 10)}};
  memory.loops = {{2, long_name, "/src/bench/histogram.cpp", "/src/a.out", 40, 43, 2, figures_of(40, 0, 10)}};
  SharedLine line;
  line.address = 0x7f0000001200;
  line.pid = 4242;
  line.object = "counters";
  line.threads = {1, 2, 3};
  line.nodes = {0, 1};
  line.hitm_share = 1;
  line.figures = figures_of(30, 20, 10);
  SharedOffset offset;
  offset.offset = 8;
  offset.field = "[1].hits";
  offset.function = long_name;
  offset.file = "/src/bench/histogram.cpp";
  offset.line = 41;
  offset.threads = {1, 3};
  offset.nodes = {0};
  offset.processors = 2;
  offset.hitm_local_latency = 310;
  offset.figures = figures_of(30, 20, 10);
  line.offsets = {offset};
  memory.shared_lines = {line};
  memory.all_lines = memory.all_objects = memory.all_loops = 1;
  memory.all_shared_lines = 3;
  memory.sharing.window_s = 0.01;
  memory.sharing.hitm_known = true;
  memory.sharing.hitm_samples = 10;
  memory.sharing.unattributed_samples = 2;
  memory.sharing.pairs = {{1, 2, 8, 0, 4, 8000.0, {{3500.0, 16000.0}}, 2.5}};
  memory.limits = {"cpu/mem-loads,ldlat=30/P samples only loads that take 30 cycles and more"};
  return memory;
}

}  // namespace

Analysis sample_analysis() {
  Analysis a;
  a.session.command = "./histogram --threads 4";
  a.session.exit_status = 0;
  a.session.complete = true;
  a.session.host = "host";
  a.session.kernel = "6.1.0";
  a.session.cpus = 4;
  a.duration_s = 1.31;
  a.cpu_s = 5.02;
  profile::ProcessRow process;
  process.pid = 4242;
  process.parent_pid = 4200;
  process.command = a.session.command;
  process.exit_status = 0;
  a.processes = {process};
  for (std::uint32_t t = 0; t < 5; ++t) {
    a.threads.push_back({t, 4242, 4242 + static_cast<std::int32_t>(t), t == 0 ? "histogram" : "worker", 0.2 + 0.3 * t,
                         300 + t, 0.01, false, t == 0 ? 0 : 0.1 * t});
  }
  a.threads[4].cpu_s.reset();
  a.warnings = {{"no_lines",
                 "libfoo.so.1 has no line information; install its debug package, or set DEBUGINFOD_URLS "
                 "so that it can be fetched, to see source lines in it"}};
  a.sampling = {"clock",
                "watch",
                "post_stratified",
                1532,
                0,
                402,
                913,
                1490,
                1500,
                0.002,
                {{"task-clock", 4000000, "ns", 1532}},
                0.021,
                0.08,
                0.02,
                1 << 20};
  a.communication = sample_communication();
  a.loops = sample_loops();
  a.memory = sample_memory();
  a.functions = {{long_name, "/src/bench/histogram.cpp", "/src/a.out", 38, 2.6, 0.52},
                 {"", "", "/lib/libc.so.6", 0, 0.1, 0.02}};
  a.findings = {
      {"4 threads (1, 2, 3, 4) exchange the cache line of `counters` (global, 64 bytes) by false sharing: "
       "about 0.81 s, 16 % of all CPU time. Give each thread's part a cache line of its own.",
       0.81},
      {"Thread 3 passes to thread 4 cache lines of `Queue.head` (heap) by true sharing: about 231 ms.", 0.231}};
  return a;
}

Analysis crowded_analysis(std::uint32_t threads) {
  Analysis a = sample_analysis();
  a.threads.clear();
  a.communication.cells.clear();
  for (std::uint32_t t = 0; t < threads; ++t) {
    a.threads.push_back({t, 4242, 4242 + static_cast<std::int32_t>(t), "worker", 0.1, 10, 0, false, 0});
    if (t + 1 < threads) {
      a.communication.cells.push_back(cell(t, t + 1, t % 3 == 0 ? 0.01 * (t + 1) : 0, t % 3 == 0 ? 0 : 0.02));
    }
    if (t > 0) {
      a.communication.cells.push_back(cell(t, t - 1, 0, 0.001 * t));
    }
  }
  return a;
}

}  // namespace crosstalk::driver::test
