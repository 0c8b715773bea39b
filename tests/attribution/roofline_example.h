// SPDX-License-Identifier: Apache-2.0
// A made machine of one core, and loops of known work on it.
#pragma once

#include <memory>
#include <string>

#include "attribution/busy/loop_figures.h"
#include "attribution/model/model.h"
#include "models/machine.h"

namespace crosstalk::attribution::test {

/// 48 Gflop/s by fused multiply-adds of 4; 400, 100, 40 and 10 GB/s from L1D, L2, L3 and memory.
inline models::Machine roofline_machine() {
  using namespace models;  // NOLINT: of this function only
  const auto figure = [](double value) {
    Figure of;
    of.value = value;
    of.tries = 5;
    return of;
  };
  Machine m;
  m.identity.name = "A processor";
  m.processors = {{0, 0, 0, 0}};
  m.caches = {{1, 32768, 64, 8, {0}}, {2, 1 << 20, 64, 8, {0}}, {3, 1 << 25, 64, 16, {0}}};
  for (const auto& [level, rate] :
       {std::pair{Level::l1d, 400e9}, {Level::l2, 100e9}, {Level::l3, 40e9}, {Level::memory, 10e9}}) {
    m.bandwidths.push_back({level, Traffic::load, Scope::one_core, figure(rate)});
  }
  m.flops = {{Width::avx2, Precision::double_precision, Operation::fma, Scope::one_core, figure(48e9)}};
  return m;
}

/// A loop of so many operations and bytes an iteration, all of its data from memory.
inline LoopRow roofline_loop(std::uint32_t id, double flops, double bytes, double iterations_per_s, double cpu_s = 1) {
  LoopRow loop;
  loop.id = id;
  loop.function = "loop_" + std::to_string(id);
  loop.file = "/src/loops.cpp";
  loop.line_begin = loop.line_end = id;
  loop.cpu_s = loop.self_s = cpu_s;
  loop.samples = 250;
  const auto rate = [&](double amount) {
    const double per_s = amount * iterations_per_s;
    return Rate{per_s, Interval{0.99 * per_s, 1.01 * per_s}, "", 0, false};
  };
  loop.rates.iterations = rate(1);
  loop.rates.flops = rate(flops);
  loop.rates.bytes = rate(bytes);
  LoopFigures figures;
  models::FlopMix mix;
  mix.add(models::Width::avx2, models::Precision::double_precision, models::Operation::fma, flops * iterations_per_s);
  figures.flops = mix;
  figures.packed = 1;
  for (const models::Unit unit : {models::Unit::memory, models::Unit::l3, models::Unit::l2, models::Unit::l1d}) {
    figures.per_s[unit] = bytes * iterations_per_s;
  }
  loop.figures = std::make_shared<LoopFigures>(figures);
  return loop;
}

}  // namespace crosstalk::attribution::test
