// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/roofline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr double least_own = 0.3;          // part of a loop's time that is its own
constexpr double least_of_thread = 0.001;  // of the program's time

template <std::size_t... index>
std::array<Result<RooflinePlace>, all_roofline_models.size()> places_of(const LoopWork& work,
                                                                        const models::Machine& machine,
                                                                        const RooflineOptions& options,
                                                                        std::index_sequence<index...> /*of models*/) {
  return {place_in(all_roofline_models[index], work, machine, options)...};
}

class Placing {
 public:
  Placing(const models::Machine& machine, RooflineModel model, const RooflineOptions& options)
      : machine_(machine), options_(options) {
    result_.model = model;
    result_.options = options;
  }

  void add(const LoopRow& loop, double program_s) {
    if (!options_.by_thread) {
      add(work_of_loop(loop, machine_, options_), loop, loop.self_s);
      return;
    }
    for (const LoopThread& thread : loop.threads) {
      if (thread.self_s >= least_of_thread * program_s && thread.self_s > 0) {
        add(work_of_thread(loop, thread, machine_, options_), loop, thread.self_s);
      }
    }
  }

  Roofline take() {
    for (auto& [why, of] : unplaced_) {
      of.why = why;
      result_.unplaced.push_back(std::move(of));
    }
    std::stable_sort(result_.unplaced.begin(), result_.unplaced.end(),
                     [](const Unplaced& a, const Unplaced& b) { return a.self_s > b.self_s; });
    std::stable_sort(result_.loops.begin(), result_.loops.end(),
                     [](const RooflineLoop& a, const RooflineLoop& b) { return a.work.own_s > b.work.own_s; });
    return std::move(result_);
  }

 private:
  void add(Result<LoopWork> work, const LoopRow& loop, double own_s) {
    if (!work) {
      leave_out(work.error().message, loop, own_s);
      return;
    }
    auto places = places_of(*work, machine_, options_, std::make_index_sequence<all_roofline_models.size()>{});
    const auto& wanted = places.at(static_cast<std::size_t>(result_.model));
    if (!wanted) {
      leave_out(wanted.error().message, loop, own_s);
      return;
    }
    result_.placed_s += own_s;
    result_.loops.push_back({*std::move(work), std::move(places)});
  }
  void leave_out(const std::string& why, const LoopRow& loop, double own_s) {
    Unplaced& of = unplaced_[why];
    of.self_s += own_s;
    ++of.loops;
    of.ids.push_back(loop.id);
  }

  const models::Machine& machine_;
  const RooflineOptions& options_;
  Roofline result_;
  std::map<std::string, Unplaced> unplaced_;
};

/// Says so if the program ran on cores of different kinds: their first or second caches differ in size.
void note_kinds_of_cores(const Analysis& analysis, const models::Machine& machine, std::vector<std::string>& notes) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> sizes;  // L1D and L2 by processor
  for (const models::Cache& cache : machine.caches) {
    for (const std::uint32_t cpu : cache.cpus) {
      auto& [first, second] = sizes[cpu];
      (cache.level == 1 ? first : cache.level == 2 ? second : first) += cache.level <= 2 ? cache.bytes : 0;
    }
  }
  std::set<std::pair<std::uint64_t, std::uint64_t>> kinds;
  for (const ProcessorSummary& processor : analysis.processors) {
    if (const auto found = sizes.find(processor.cpu); processor.samples > 0 && found != sizes.end()) {
      kinds.insert(found->second);
    }
  }
  if (kinds.size() > 1) {
    notes.push_back("The program ran on cores of " + std::to_string(kinds.size()) +
                    " kinds, and the roofs are of those that the calibration ran on: keep it on one kind (taskset).");
  }
}

}  // namespace

Roofline roofline_of(const Analysis& analysis, const models::Machine& machine, RooflineModel model,
                     const RooflineOptions& options) {
  Placing placing(machine, model, options);
  for (const LoopRow& loop : analysis.loops) {
    if (loop.self_s >= least_own * loop.cpu_s) {
      placing.add(loop, analysis.cpu_s);
    }
  }
  Roofline result = placing.take();
  note_kinds_of_cores(analysis, machine, result.notes);
  return result;
}

}  // namespace crosstalk::attribution
