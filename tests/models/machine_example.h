// SPDX-License-Identifier: Apache-2.0
// A machine with a figure of each kind, one of them refused.
#pragma once

#include "models/machine.h"

namespace crosstalk::models::test {

inline Figure measured(double value) {
  Figure figure;
  figure.value = figure.median = value;
  figure.spread = 0.01;
  figure.tries = 12;
  figure.method = "example";
  return figure;
}

inline Machine example() {
  Machine m;
  m.identity = {"AuthenticAMD", 0x19, 0x11, 1, "Example 3000", true};
  m.host = "here";
  m.kernel = "6.1";
  m.measured_at = "2030-01-02T03:04:05Z";
  m.version = "0.1.0";
  m.measuring_s = 12.5;
  m.memory_bytes = std::uint64_t{1} << 33;
  m.processors = {{0, 0, 0, 0}, {1, 1, 0, 0}};
  m.caches = {{1, 32768, 64, 8, {0}},
              {1, 32768, 64, 8, {1}},
              {2, 1048576, 64, 8, {0}},
              {2, 1048576, 64, 8, {1}},
              {3, 33554432, 64, 16, {0, 1}}};
  m.frequency.tsc_hz = 2.6e9;
  m.frequency.one_core_hz = measured(3.7e9);
  m.frequency.all_cores_hz = measured(3.6e9);
  m.frequency.after_avx2_hz = measured(3.7e9);
  m.frequency.after_avx512_hz.refused = "this processor has no such instructions";
  m.flops = {{Width::avx2, Precision::double_precision, Operation::add, Scope::one_core, measured(2.9e10)},
             {Width::avx2, Precision::double_precision, Operation::fma, Scope::one_core, measured(5.8e10)},
             {Width::avx2, Precision::single_precision, Operation::fma, Scope::one_core, measured(1.1e11)}};
  m.flops[1].flops_per_s.theoretical = 5.92e10;
  m.bandwidths = {{Level::l1d, Traffic::load, Scope::one_core, measured(2e11)},
                  {Level::memory, Traffic::load, Scope::one_core, measured(2e10)},
                  {Level::memory, Traffic::triad, Scope::one_core, measured(2.2e10)},
                  {Level::memory, Traffic::triad_streaming, Scope::one_core, measured(2.1e10)}};
  m.latencies = {{Level::l1d, measured(1e-9)}, {Level::memory, measured(1e-7)}};
  m.instructions = {{Instruction::integer_add, measured(1.4e10)}};
  m.chains = {{Chain::locked_add, measured(5e-9)}};
  m.pairs = {{0, 1, measured(6e-8), measured(9e-8)}};
  m.accesses = {{Level::l1d, Width::avx2, Mix::two_to_one, 1, measured(1.7e11)},
                {Level::l1d, Width::avx2, Mix::two_to_one, 2, measured(3.3e11)}};
  m.thread_flops = {{Width::avx2, Precision::double_precision, Operation::fma, 2, measured(1.1e11)}};
  m.flop_latencies = {{Width::scalar, Precision::double_precision, Operation::add, measured(8e-10)}};
  m.integers = {{Width::avx2, Element::int32, Operation::add, Scope::one_core, measured(1e11)}};
  m.kinds = {{Kind::nop, measured(6), measured(448)}, {Kind::scalar, measured(2), {}}};
  m.kinds[1].buffer.refused = "there is no knee";
  m.groups = {{Level::memory, Width::scalar, 0, measured(0.5)}, {Level::memory, Width::scalar, 6, measured(0.25)}};
  m.ridges = {{Level::memory, Width::scalar, Kind::integer_add, 16, measured(0.4)}};
  m.sparse_roofs = {{Level::l2, Level::l1d, Scope::one_core, 64, measured(2e10)}};
  m.sparse_bands = {{Level::l2, 64, Scope::one_core, 1024, 512, measured(1.5e9), measured(2e9)}};
  m.notes = {"an example"};
  return m;
}

}  // namespace crosstalk::models::test
