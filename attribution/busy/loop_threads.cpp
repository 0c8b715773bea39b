// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_threads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "models/cycle_accounting.h"

namespace crosstalk::attribution {
namespace {

/// True if the loop's threads all lived at one moment.
bool lived_at_once(const LoopRow& loop, const ProgramView& view) {
  std::uint64_t last_begin = 0;
  std::uint64_t first_end = UINT64_MAX;
  for (const LoopThread& each : loop.threads) {
    if (view.knows(ThreadId{each.thread})) {
      const profile::ThreadRow& thread = view.threads()[each.thread];
      last_begin = std::max(last_begin, thread.begin_ns);
      first_end = std::min(first_end, thread.end_ns != 0 ? thread.end_ns : UINT64_MAX);
    }
  }
  return last_begin < first_end;
}

}  // namespace

double threads_at_once(const LoopRow& loop, const models::Machine* machine) {
  double most_s = 0;
  for (const LoopThread& thread : loop.threads) {
    most_s = std::max(most_s, thread.cpu_s);
  }
  const double threads = most_s > 0 ? std::max(1.0, loop.cpu_s / most_s) : 1;
  return machine != nullptr && !machine->processors.empty()
             ? std::min(threads, static_cast<double>(machine->processors.size()))
             : threads;
}

std::optional<double> imbalance_of(const LoopRow& loop, const ProgramView& view) {
  if (!lived_at_once(loop, view)) {
    return std::nullopt;
  }
  std::vector<double> work_s;
  for (const LoopThread& thread : loop.threads) {
    work_s.push_back(std::max(0.0, thread.cpu_s - thread.waiting_s));
  }
  return models::imbalance(work_s);
}

bool is_beyond_chance(double imbalance, const LoopRow& loop) {
  const auto threads = static_cast<double>(loop.threads.size());
  const auto samples = static_cast<double>(loop.samples);
  if (threads < 2 || samples <= 0 || imbalance >= 1) {
    return threads >= 2 && samples > 0;
  }
  // The greatest of n numbers of about m samples each is above m by the square root of m times this, at most, nearly
  // always.
  const double deviations = 1 + std::sqrt(2 * std::log(threads));
  const double above_mean = imbalance / (1 - imbalance);
  return above_mean > deviations * std::sqrt(threads / samples);
}

}  // namespace crosstalk::attribution
