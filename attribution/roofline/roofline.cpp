// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/roofline.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
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

/// Places loops from the inside out. A loop whose inner loops have no place, such as those that stay in registers,
/// stands for them if it has one.
class Placing {
 public:
  Placing(const Analysis& analysis, const models::Machine& machine, RooflineModel model, const RooflineOptions& options)
      : machine_(machine), options_(options), program_s_(analysis.cpu_s) {
    result_.model = model;
    result_.options = options;
    for (const LoopRow& loop : analysis.loops) {
      order_.push_back(&loop);
      if (loop.parent) {
        inside_[*loop.parent].push_back(loop.id);
      }
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [](const LoopRow* a, const LoopRow* b) { return a->depth > b->depth; });
  }

  Roofline take() {
    for (const LoopRow* loop : order_) {
      place(*loop);
    }
    std::map<std::string, Unplaced> sums;
    for (const auto& [id, left] : left_out_) {
      for (const auto& [why, own_s] : left.reasons) {
        Unplaced& of = sums[why];
        of.why = why;
        of.self_s += own_s;
        ++of.loops;
        of.ids.push_back(id);
      }
    }
    for (auto& [why, of] : sums) {
      result_.unplaced.push_back(std::move(of));
    }
    std::stable_sort(result_.unplaced.begin(), result_.unplaced.end(),
                     [](const Unplaced& a, const Unplaced& b) { return a.self_s > b.self_s; });
    std::stable_sort(result_.loops.begin(), result_.loops.end(),
                     [](const RooflineLoop& a, const RooflineLoop& b) { return a.work.own_s > b.work.own_s; });
    return std::move(result_);
  }

 private:
  struct LeftOut {
    std::vector<std::pair<std::string, double>> reasons;  // with own time
    double own_s = 0;
  };

  void place(const LoopRow& loop) {
    double inside_s = 0;  // of its inner loops without a place
    for (const std::uint32_t inner : inside_[loop.id]) {
      inside_s += left_out_.contains(inner) ? left_out_[inner].own_s : 0;
    }
    if (loop.self_s + inside_s < least_own * loop.cpu_s || loop.cpu_s <= 0) {
      return;
    }
    LeftOut left;
    bool any = false;
    if (!options_.by_thread) {
      any = add(work_of_loop(loop, machine_, options_), loop.self_s + inside_s, left);
    } else {
      for (const LoopThread& thread : loop.threads) {
        const double own_s = thread.self_s + inside_s * thread.cpu_s / loop.cpu_s;
        if (own_s > 0 && own_s >= least_of_thread * program_s_) {
          any = add(work_of_thread(loop, thread, machine_, options_), own_s, left) || any;
        }
      }
    }
    if (any) {
      forget_inside(loop.id);
    }
    if (!left.reasons.empty() && (any || inside_s < loop.self_s)) {
      left_out_[loop.id] = std::move(left);
    } else if (!any) {  // its inner loops say why
      left_out_[loop.id] = {{}, loop.self_s + inside_s};
    }
  }

  /// True if it has a place.
  bool add(Result<LoopWork> work, double own_s, LeftOut& left) {
    const auto leave_out = [&](const std::string& why) {
      left.reasons.emplace_back(why, own_s);
      left.own_s += own_s;
      return false;
    };
    if (!work) {
      return leave_out(work.error().message);
    }
    work->own_s = own_s;
    auto places = places_of(*work, machine_, options_, std::make_index_sequence<all_roofline_models.size()>{});
    if (const auto& wanted = places.at(static_cast<std::size_t>(result_.model)); !wanted) {
      return leave_out(wanted.error().message);
    }
    result_.placed_s += own_s;
    result_.loops.push_back({*std::move(work), std::move(places)});
    return true;
  }

  void forget_inside(std::uint32_t id) {
    for (const std::uint32_t inner : inside_[id]) {
      if (left_out_.erase(inner) > 0) {
        forget_inside(inner);
      }
    }
  }

  const models::Machine& machine_;
  const RooflineOptions& options_;
  double program_s_;
  std::vector<const LoopRow*> order_;                                     // inner loops first
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> inside_;  // ids by the loop around
  std::map<std::uint32_t, LeftOut> left_out_;                             // by id
  Roofline result_;
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
  Placing placing(analysis, machine, model, options);
  Roofline result = placing.take();
  note_kinds_of_cores(analysis, machine, result.notes);
  return result;
}

}  // namespace crosstalk::attribution
