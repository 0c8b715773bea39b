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
  const auto bytes = working_set(bench.machine, level, {bench.cores.back()}, available_memory());
  if (!bytes) {
    return refused(bytes.error().message, method);
  }
  MemoryBlock block;
  void* place = nullptr;
  std::uint64_t rounds = 0;
  bench.one.run([&](unsigned) {
    if (auto mapped = MemoryBlock::map(*bytes)) {
      block = std::move(*mapped);
      place = make_pointer_chain(block.data(), block.size(), line_bytes, 1);
      rounds = rounds_for(bench.effort, [&](std::uint64_t n) { place = follow(place, n); });
    }
  });
  if (place == nullptr) {
    return refused("there is not enough memory", method);
  }
  page_bytes = block.page_bytes();
  return time_figure(collect(bench.effort,
                             [&] {
                               // Of memory, on from where the last try ended: a part of the circle would soon be in a
                               // cache. Of a cache, after all lines were fetched, should others have used it meanwhile.
                               double seconds = 0;
                               bench.one.run([&](unsigned) {
                                 if (level != Level::memory) {
                                   place = follow(place, *bytes / line_bytes / unrolled);
                                 }
                                 seconds = seconds_of([&] { place = follow(place, rounds); });
                               });
                               return std::optional(seconds / static_cast<double>(rounds * unrolled));
                             }),
                     method + ", in pages of " + std::to_string(page_bytes >> 10U) + " KiB");
}

}  // namespace

std::vector<models::LoadLatency> measure_latencies(Bench& bench, std::uint64_t& page_bytes) {
  std::vector<models::LoadLatency> latencies;
  for (const Level level : {Level::l1d, Level::l2, Level::l3, Level::memory}) {
    bench.progress("latency of " + std::string(name(level)));
    latencies.push_back({level, latency_of(bench, level, page_bytes)});
  }
  return latencies;
}

}  // namespace crosstalk::collectors::calibration
