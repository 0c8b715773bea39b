// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/core_kernels.h"
#include "collectors/calibration/memory_block.h"
#include "collectors/calibration/pointer_chain.h"
#include "collectors/calibration/working_set.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;

models::Figure latency_of(Bench& bench, Level level, std::uint64_t& page_bytes) {
  constexpr std::uint32_t line_bytes = 64;  // of all x86-64 processors
  const std::string method = "a circle of pointers through all lines, in random order";
  const std::uint32_t cpu = bench.cores.back();
  const auto bytes = working_set(bench.machine, level, {cpu}, bench.available(), bench.beyond_caches);
  if (!bytes) {
    bench.schedule.skip();
    return refused(bytes.error().message, method);
  }
  HeldMemory of_cache;
  HeldMemory& memory = level == Level::memory ? bench.memory : of_cache;
  memory.expect({cpu});
  const std::uint64_t ready_ns = bench.preparation_deadline_ns();
  std::string missing;
  void* place = nullptr;
  std::uint64_t rounds = 0;
  bench.one.run([&](unsigned) {
    const auto block = memory.block(cpu, *bytes + arrays_slack, ready_ns);
    if (!block) {
      missing = block.error().message;
      return;
    }
    place = make_pointer_chain((*block)->data(), *bytes, line_bytes, 1, ready_ns);
    if (place == nullptr) {
      missing = "the pointers were not laid out in time: the machine is too busy";
      return;
    }
    page_bytes = (*block)->page_bytes();
    rounds = rounds_for(bench.effort(), [&](std::uint64_t n) { place = follow(place, n); });
  });
  if (place == nullptr) {
    bench.schedule.skip();
    return refused(missing, method);
  }
  return time_figure(collect(bench.next_figure(),
                             [&] {
                               // In memory, goes on from where the last try ended: a part of the circle would soon be
                               // in a cache. In a cache, first fetches all lines, in case others have used it
                               // meanwhile.
                               double seconds = 0;
                               const TeamTime time = bench.one.run([&](unsigned) {
                                 if (level != Level::memory) {
                                   place = follow(place, *bytes / line_bytes / unrolled);
                                 }
                                 seconds = seconds_of([&] { place = follow(place, rounds); });
                               });
                               return Trial{seconds / static_cast<double>(rounds * unrolled), time.disturbed};
                             }),
                     method + ", in pages of " + std::to_string(page_bytes >> 10U) + " KiB");
}

}  // namespace

std::vector<models::LoadLatency> measure_latencies(Bench& bench, std::uint64_t& page_bytes) {
  std::vector<models::LoadLatency> latencies;
  for (const Level level : models::all_levels) {
    bench.progress("latency of " + std::string(name(level)));
    latencies.push_back({level, latency_of(bench, level, page_bytes)});
  }
  return latencies;
}

}  // namespace crosstalk::collectors::calibration
