// SPDX-License-Identifier: Apache-2.0
// A one-dimensional stencil: each thread writes the two boundary rows of its block, meets the others, and reads
// its neighbours' rows. Every line of a row is communicated once an iteration, to the one neighbour beside it.
#include <memory>

#include "rendezvous.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Rendezvous;
using workload::Truth;

constexpr int max_threads = 64;
constexpr std::size_t row_doubles = 8192;
constexpr std::size_t row_lines = row_doubles * sizeof(double) / workload::line_bytes;

struct alignas(workload::line_bytes) Block {
  double top[row_doubles];     // read by the thread above
  double bottom[row_doubles];  // read by the thread below
};
Block blocks[max_threads];

constexpr int consumer_line = __LINE__ + 4;
double read_row(const double* row) {
  double sum = 0;
  for (std::size_t i = 0; i < row_doubles; ++i) {
    sum += row[i];
  }
  return sum;
}

constexpr int producer_line = __LINE__ + 3;
void write_row(double* row, double value) {
  for (std::size_t i = 0; i < row_doubles; ++i) {
    row[i] = value;
  }
}

double read_row_of(int neighbour, const double* row, CostClock& clock) {
  clock.begin();
  const double sum = read_row(row);
  clock.end(neighbour + 1, workload::Sharing::same_word);
  return sum;
}

CostClock relax_block(int me, int threads, std::uint64_t iterations, Rendezvous& rendezvous) {
  CostClock clock;
  double value = me;
  for (std::uint64_t n = 0; n < iterations; ++n) {
    write_row(blocks[me].top, value);
    write_row(blocks[me].bottom, value);
    rendezvous.meet();
    double sum = value * row_doubles;
    sum += me > 0 ? read_row_of(me - 1, blocks[me - 1].bottom, clock) : 0;
    sum += me + 1 < threads ? read_row_of(me + 1, blocks[me + 1].top, clock) : 0;
    value = sum / (3.0 * row_doubles);
    rendezvous.meet();
  }
  return clock;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("halo_exchange", "neighbours read each other's boundary rows");
  flags.number("--threads", 2, 2, max_threads, "blocks");
  flags.number("--iterations", 30000, 1, 1e9, "iterations");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const auto iterations = static_cast<std::uint64_t>(flags.integer("--iterations"));

  const Deadline clock(0);
  Rendezvous rendezvous(static_cast<std::uint32_t>(threads));
  std::vector<CostClock> clocks(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    clocks[static_cast<std::size_t>(index - 1)] = relax_block(index - 1, threads, iterations, rendezvous);
  });

  Truth truth("halo_exchange", threads + 1);
  truth.add_data("blocks", blocks);
  truth.sync = {"rendezvous"};
  truth.file = __FILE_NAME__;
  truth.producer_line = producer_line;
  truth.consumer_line = consumer_line;
  for (int me = 1; me <= threads; ++me) {
    truth.add_costs(me, clocks[static_cast<std::size_t>(me - 1)]);
  }
  for (int me = 1; me < threads; ++me) {
    truth.add_true(me, me + 1, iterations * row_lines);
    truth.add_true(me + 1, me, iterations * row_lines);
    truth.add_invalidations(me, me + 1, (iterations - 1) * row_lines);  // the first iteration finds nothing read yet
    truth.add_invalidations(me + 1, me, (iterations - 1) * row_lines);
  }
  truth.print(clock.elapsed());
}
