// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_busy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "attribution/busy/inner_loop.h"
#include "attribution/busy/loop_evidence.h"
#include "attribution/busy/loop_mix.h"
#include "attribution/busy/loop_threads.h"
#include "attribution/busy/loop_traffic.h"
#include "attribution/busy/own_callees.h"
#include "attribution/counters/counted_evidence.h"
#include "attribution/loops/core_cycles.h"
#include "attribution/model/sentences.h"
#include "symbolizer/loops/iteration_time.h"
#include "symbolizer/loops/loop_body.h"
#include "symbolizer/loops/loop_operands.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_share = 0.001;  // of CPU time; the figures of smaller loops are too uncertain
constexpr double line_bytes = 64;

using models::Unit;

class Figures {
 public:
  Figures(std::vector<LoopRow>& loops, const BusyEvidence& evidence, const ProgramView& view)
      : loops_(loops), evidence_(evidence), view_(view) {}

  void fill() {
    std::vector<LoopRow*> order;
    for (LoopRow& loop : loops_) {
      if (loop.share >= least_share) {
        order.push_back(&loop);
        if (loop.parent) {
          inside_[*loop.parent].push_back(&loop);
        }
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const LoopRow* a, const LoopRow* b) { return a->depth > b->depth; });
    for (LoopRow* loop : order) {
      loop->figures = std::make_shared<const LoopFigures>(figures_of(*loop));
    }
  }

 private:
  struct Known {
    std::optional<symbolizer::LoopBodyFacts> body;
    std::vector<std::string> own_callees;
    LoopMix mix;
    double store_share = 0;  // of its accesses, those of the loops inside it included
    LoopTraffic traffic;
    const CounterRates* counted = nullptr;  // null: counters tell nothing of it
  };
  [[nodiscard]] const CounterRates* counted_of(const LoopRow& loop) const;
  [[nodiscard]] LoopFigures figures_of(const LoopRow& loop);
  [[nodiscard]] std::optional<symbolizer::LoopBodyFacts> body_of(const LoopRow& loop) const;
  template <class Figure>
  [[nodiscard]] std::vector<InnerLoop<Figure>> inner_of(const LoopRow& loop, Figure Known::*figure) const;
  [[nodiscard]] LoopTraffic find_traffic(const LoopRow& loop, const Known& known, double threads) const;
  void fill_rates(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  [[nodiscard]] std::string reason_of(Unit unit, const LoopRow& loop, const Known& known, const LoopFigures& figures,
                                      const models::Demand& demand) const;
  void fill_busy(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_waits(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_classes(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_advice(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  [[nodiscard]] std::optional<double> part_of_time(const LoopRow& loop, std::optional<double> cycles) const;
  [[nodiscard]] std::optional<double> chain_share(const LoopRow& loop, const Known& known) const;
  [[nodiscard]] std::optional<double> local_share(const LoopRow& loop, const Known& known) const;
  [[nodiscard]] const LoopPairs* pairs_of(const LoopRow& loop) const;

  std::vector<LoopRow>& loops_;
  const BusyEvidence& evidence_;
  const ProgramView& view_;
  std::unordered_map<std::uint32_t, std::vector<LoopRow*>> inside_;
  std::unordered_map<std::uint32_t, Known> known_;  // by id, of loops that are done
};

std::optional<symbolizer::LoopBodyFacts> Figures::body_of(const LoopRow& loop) const {
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  return code ? symbolizer::loop_body_facts(code->anatomy->ways(code->index), cycles_of(evidence_.core)) : std::nullopt;
}

template <class Figure>
std::vector<InnerLoop<Figure>> Figures::inner_of(const LoopRow& loop, Figure Known::*figure) const {
  std::vector<InnerLoop<Figure>> inner;
  if (const auto rows = inside_.find(loop.id); rows != inside_.end()) {
    for (const LoopRow* row : rows->second) {
      inner.push_back({row->cpu_s, &(known_.at(row->id).*figure)});
    }
  }
  return inner;
}

const LoopPairs* Figures::pairs_of(const LoopRow& loop) const {
  const auto pairs = evidence_.pairs.find({loop.module_file, loop.header});
  return pairs != evidence_.pairs.end() ? &pairs->second : nullptr;
}

LoopTraffic Figures::find_traffic(const LoopRow& loop, const Known& known, double threads) const {
  if (inside_.contains(loop.id)) {
    return traffic_inside(loop.cpu_s, inner_of(loop, &Known::traffic));
  }
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  return traffic_of(loop.rates.iterations,
                    {code ? &*code : nullptr, known.body ? &*known.body : nullptr, pairs_of(loop), threads},
                    *evidence_.machine);
}

const CounterRates* Figures::counted_of(const LoopRow& loop) const {
  const auto index = static_cast<std::size_t>(&loop - loops_.data());
  return index < evidence_.counted.size() && evidence_.counted[index].unknown.empty() ? &evidence_.counted[index]
                                                                                      : nullptr;
}

/// Replaces figures from code and samples by counted ones.
void take_counted(const CounterRates& counted, const LoopRow& loop, LoopFigures& figures) {
  const models::ByUnit<std::optional<double>> bytes = counted_bytes(counted);
  for (const Unit unit : models::all_units) {
    if (bytes[unit] && takes_counted(unit, *bytes[unit], figures.per_s[unit])) {
      figures.per_s[unit] = bytes[unit];
      figures.counted[unit] = true;
    }
  }
  if (figures.counted[Unit::memory]) {
    figures.notes.emplace_back(
        "The true traffic with memory is at least this high: lines that are prefetched into the last level are not "
        "counted.");
  }
  figures.counted[Unit::fpu] = figures.per_s[Unit::fpu].has_value() && loop.rates.flops.counted;
}

/// Fills in the work of each unit.
void Figures::fill_rates(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  const auto& traffic = known.traffic.per_s;
  figures.per_s[Unit::fpu] = known.mix.unknown.empty() ? loop.rates.flops.per_s : std::nullopt;
  figures.per_s[Unit::l1d] = loop.rates.bytes.per_s;
  figures.per_s[Unit::l2] = traffic ? std::optional(traffic->l2) : std::nullopt;
  figures.per_s[Unit::l3] = traffic ? std::optional(traffic->l3) : std::nullopt;
  figures.per_s[Unit::memory] = traffic ? std::optional(traffic->memory) : std::nullopt;
  if (known.counted != nullptr) {
    take_counted(*known.counted, loop, figures);
  }
  if (traffic && known.traffic.scattered && !figures.counted[Unit::memory]) {
    figures.notes.emplace_back(
        "Accesses by loaded addresses are assumed to fall evenly into their observed range. If they cluster, less data "
        "moves.");
  }
}

/// Why a unit has no busy time.
std::string Figures::reason_of(Unit unit, const LoopRow& loop, const Known& known, const LoopFigures& figures,
                               const models::Demand& demand) const {
  if (figures.per_s[unit]) {
    return models::why_no_peak(*evidence_.machine, unit, demand);
  }
  if (unit == Unit::fpu) {
    return known.mix.unknown.empty() ? loop.rates.flops.unknown : known.mix.unknown;
  }
  return unit == Unit::l1d ? loop.rates.bytes.unknown : known.traffic.unknown;
}

void Figures::fill_busy(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  const models::Machine& machine = *evidence_.machine;
  models::Demand demand;
  demand.flops = known.mix.flops;
  demand.threads = figures.threads;
  demand.store_share = known.store_share;
  if (known.body) {
    demand.streaming = known.body->stores > 0 && 2 * known.body->streaming_stores > known.body->stores;
  }
  const models::Peaks peaks = models::peaks_of(machine, demand);
  fill_rates(loop, known, figures);
  models::LoopWork work{loop.cpu_s, {}};
  for (const Unit unit : models::all_units) {
    const auto& rate = figures.per_s[unit];
    work.amount[unit] = rate ? std::optional(*rate * loop.cpu_s) : std::nullopt;
  }
  figures.busy = models::busy_times(work, peaks);
  for (const Unit unit : models::all_units) {
    if (figures.busy[unit].exists && !figures.busy[unit].seconds) {
      figures.reasons[unit] = reason_of(unit, loop, known, figures, demand);
    }
  }
  figures.bytes_to_flops = models::bytes_to_flops(work);
  const bool single = 2 * known.mix.flops.of_precision(models::Precision::single_precision) > known.mix.flops.total();
  const models::Peak best = models::peak_of_machine(
      machine, single ? models::Precision::single_precision : models::Precision::double_precision, figures.threads);
  models::Peaks of_best = peaks;
  of_best[Unit::fpu] = peaks[Unit::fpu].effective ? peaks[Unit::fpu] : best;
  figures.balance = models::machine_balance(of_best);
  if (figures.per_s[Unit::fpu] && best.effective) {
    figures.fpu_of_machine = *figures.per_s[Unit::fpu] / *best.effective;
  }
}

/// The part of the loop's time that its iterations would take with so many cycles each; not known of a loop with others
/// inside it.
std::optional<double> Figures::part_of_time(const LoopRow& loop, std::optional<double> cycles) const {
  if (!cycles || !loop.rates.iterations.per_s || evidence_.core.cycle_ps == 0 || inside_.contains(loop.id)) {
    return std::nullopt;
  }
  constexpr double s_per_ps = 1e-12;
  return *cycles * evidence_.core.cycle_ps * s_per_ps * *loop.rates.iterations.per_s;
}

std::optional<double> Figures::chain_share(const LoopRow& loop, const Known& known) const {
  return part_of_time(loop, known.body ? known.body->chain : std::nullopt);
}

/// The part of its time that its iterations would take at most if all of their data were in the first level.
std::optional<double> Figures::local_share(const LoopRow& loop, const Known& known) const {
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  if (!code || !known.body || known.body->calls) {
    return std::nullopt;
  }
  const auto local = symbolizer::over_ways(code->anatomy->ways(code->index), cycles_of(evidence_.core));
  return part_of_time(loop, local ? std::optional(local->most) : std::nullopt);
}

/// Adds the on-processor part of measured waits for other threads. `waited`, which includes sleep, gives the division
/// into kinds. Sampled waits are sleep alone.
void tell_of_others(const LoopRow& loop, models::CycleEvidence& evidence) {
  if (!loop.waited || loop.waited->sampled || loop.waited->total() <= 0) {
    return;
  }
  const double on_cpu = waiting_in(loop) / loop.waited->total();
  evidence.lock_s = on_cpu * loop.waited->lock_s;
  evidence.barrier_s = on_cpu * loop.waited->barrier_s;
  evidence.condition_s = on_cpu * loop.waited->condition_s;
}

void Figures::fill_waits(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  constexpr double half = 0.5;
  models::CycleEvidence cycles;
  cycles.elapsed_s = loop.cpu_s;
  tell_of_others(loop, cycles);
  const double kernel_s = kernel_time_in(loop);
  cycles.kernel_s = kernel_s > 0 ? std::optional(kernel_s) : std::nullopt;
  const auto found = evidence_.standings.find({loop.module_file, loop.header});
  if (found != evidence_.standings.end() && found->second.total() > 0) {
    const LoopStanding& at = found->second;
    const bool by_chain = known.body && known.body->chain_is_fpu && chain_share(loop, known).value_or(0) >= half;
    cycles.standing = models::Standing{.fpu = (at.fpu + (by_chain ? at.loaded_fpu : 0)) / at.total(),
                                       .data = (at.load + at.store + (by_chain ? 0 : at.loaded_fpu)) / at.total()};
  }
  std::string missing;
  if (evidence_.machine != nullptr) {
    cycles.data_levels = shares_of_waits(known.traffic, *evidence_.machine, missing);
  }
  const std::optional<models::Standing> sampled = cycles.standing;
  const bool counted = known.counted != nullptr &&
                       tell_of_cycles(*known.counted, loop.cpu_s - waiting_in(loop) - kernel_s, sampled, cycles);
  figures.waits = models::account(cycles);
  if (!missing.empty() && !cycles.data_levels) {  // counters may tell by themselves
    figures.waits.notes.push_back("Waits for data are not told apart by level: " + missing + ".");
  }
  if (cycles.data_levels && !counted) {
    figures.notes.emplace_back(
        "The levels that it waits for follow from the addresses and strides that were sampled and from the machine's "
        "latencies; they were not measured.");
  }
  if (counted) {
    figures.waits.notes.emplace_back("The processor's counters measured this split of cycles.");
  }
}

/// Ignores the number of ways of a loop with inner loops: its ways differ only by how those are passed.
models::LoopBody model_of(const std::optional<symbolizer::LoopBodyFacts>& facts, bool holds_others) {
  if (!facts) {
    return {};
  }
  return {facts->instructions, holds_others ? std::nullopt : std::optional(facts->one_way), facts->calls,
          facts->indirect};
}

/// "It waits for L3 for 98 % of its time. ", if one level has most of a loop that keeps no unit busy; else empty.
std::string wait_in_words(const models::CycleAccount& waits) {
  using models::CycleClass;
  constexpr double most = 0.5;
  for (const auto& [level, name] :
       {std::pair{CycleClass::l2, "L2"}, {CycleClass::l3, "L3"}, {CycleClass::memory, "memory"}}) {
    const double share = waits.total() > 0 ? waits[level].value_or(0) / waits.total() : 0;
    if (share >= most) {
      return std::string("It waits for ") + name + " for " + percent(share) + " of its time. ";
    }
  }
  return {};
}

void Figures::fill_classes(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  figures.busy_class = models::classify(figures.busy);
  if (figures.busy_class.which == models::BusyClass::under_tuned) {
    figures.busy_class.evidence.insert(0, wait_in_words(figures.waits));
  }
  models::ApplicationEvidence evidence;
  evidence.busy = figures.busy;
  evidence.busy_class = figures.busy_class.which;
  evidence.flops = loop.rates.flops.per_s;
  evidence.bytes_to_flops = figures.bytes_to_flops;
  const auto& [loads, stores] = std::pair(loop.rates.loads.per_s, loop.rates.stores.per_s);
  if (loads && stores && evidence.flops.value_or(0) > 0) {
    evidence.bytes_to_flops_limit = line_bytes * (*loads + 2 * *stores) / *evidence.flops;
  }
  evidence.balance = figures.balance;
  evidence.multiply_adds = figures.multiply_adds;
  evidence.body = model_of(known.body, inside_.contains(loop.id));
  figures.application = models::application_candidates(evidence);
}

void Figures::fill_advice(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  if (loop.samples != 0 && loop.samples < few_samples) {
    return;  // a few samples are no reason for a change
  }
  models::TuningEvidence evidence;
  evidence.busy = figures.busy;
  evidence.busy_class = figures.busy_class.which;
  evidence.elapsed_s = loop.cpu_s;
  evidence.waits = &figures.waits;
  evidence.body = model_of(known.body, inside_.contains(loop.id));
  evidence.own_callees = known.own_callees;
  evidence.packed = figures.packed;
  evidence.widest_flops = widest_of(known.mix.flops);
  evidence.widest_available = evidence_.machine != nullptr ? widest_of(*evidence_.machine) : std::nullopt;
  evidence.multiply_adds = figures.multiply_adds;
  const double flops = known.mix.flops.total();
  evidence.other_flops = flops > 0 ? std::optional(known.mix.flops.other / flops) : std::nullopt;
  if (known.body) {
    const double accesses = known.body->loads + known.body->stores;
    evidence.access_bytes = figures.access_bytes;
    evidence.stack_accesses = accesses > 0 ? std::optional(known.body->stack_accesses / accesses) : std::nullopt;
    evidence.gathers = known.body->gathers, evidence.scatters = known.body->scatters;
    evidence.chain_is_fpu = known.body->chain_is_fpu;
  }
  evidence.chain_share = chain_share(loop, known);
  evidence.local_share = local_share(loop, known);
  evidence.stores_only_new = known.traffic.stores_only_new;
  if (figures.imbalance && is_beyond_chance(*figures.imbalance, loop)) {
    evidence.imbalance = figures.imbalance;
  }
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  const LoopPairs* const pairs = pairs_of(loop);
  if (code && pairs != nullptr && !inside_.contains(loop.id)) {
    evidence.long_strides = long_strides(symbolizer::loop_operands(*code->anatomy, code->index), *pairs);
  }
  if (const models::Cache* first = evidence_.machine != nullptr ? evidence_.machine->cache_of(1) : nullptr) {
    evidence.first_level_bytes = static_cast<double>(first->bytes);
  }
  figures.advice = models::remedies_for(evidence);
}

LoopFigures Figures::figures_of(const LoopRow& loop) {
  LoopFigures figures;
  Known& known = known_[loop.id];
  known.body = body_of(loop);
  known.own_callees = known.body && known.body->calls ? own_callees_of(loop, view_) : std::vector<std::string>();
  known.counted = counted_of(loop);
  known.mix = mix_of(loop, known.body, inner_of(loop, &Known::mix));
  figures.threads = threads_at_once(loop, evidence_.machine);
  figures.imbalance = imbalance_of(loop, view_);
  const models::FlopMix& mix = known.mix.flops;
  const double counted = mix.total() - mix.other;
  if (counted > 0) {
    figures.packed = 1 - mix.of_width(models::Width::scalar) / counted;
    figures.multiply_adds = mix.of_operation(models::Operation::fma) / mix.total();
  }
  if (mix.total() > 0) {
    figures.flops = mix;
  }
  if (const auto packed = known.counted != nullptr ? known.counted->packed() : std::nullopt) {
    figures.packed = packed;
  }
  if (!evidence_.counted.empty()) {
    figures.counters = evidence_.counted[static_cast<std::size_t>(&loop - loops_.data())];
  }
  if (known.body) {
    const double accesses = known.body->loads + known.body->stores;
    figures.access_bytes = accesses > 0 ? std::optional(known.body->access_bytes / accesses) : std::nullopt;
    figures.gathers = known.body->gathers, figures.scatters = known.body->scatters;
    figures.body = inside_.contains(loop.id) ? std::nullopt : known.body;
  }
  if (evidence_.machine != nullptr) {
    known.store_share = store_share_of(loop, known.body, inner_of(loop, &Known::store_share));
    known.traffic = find_traffic(loop, known, figures.threads);
    figures.served = known.traffic.per_s ? std::optional(known.traffic.served) : std::nullopt;
    fill_busy(loop, known, figures);
  }
  fill_waits(loop, known, figures);
  if (evidence_.machine != nullptr) {
    fill_classes(loop, known, figures);
  }
  fill_advice(loop, known, figures);
  return figures;
}

}  // namespace

void add_figures(std::vector<LoopRow>& loops, const BusyEvidence& evidence, const ProgramView& view) {
  Figures(loops, evidence, view).fill();
}

}  // namespace crosstalk::attribution
