// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_busy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "attribution/busy/loop_evidence.h"
#include "attribution/counters/counted_evidence.h"
#include "attribution/loops/core_cycles.h"
#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "models/roofline/roof.h"
#include "models/stream_traffic.h"
#include "symbolizer/cfg/instructions.h"
#include "symbolizer/loops/iteration_time.h"
#include "symbolizer/loops/loop_body.h"
#include "symbolizer/loops/loop_operands.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_share = 0.001;  // of CPU time; the figures of smaller loops are too uncertain
constexpr double line_bytes = 64;

using models::Unit;

/// Both have the same order (flop_kinds.h, machine.h).
models::FlopMix mix_of(const symbolizer::FlopsByKind& flops) {
  static_assert(symbolizer::FlopsByKind::kinds == sizeof(models::FlopMix::of) / sizeof(double));
  static_assert(
      symbolizer::FlopsByKind::index(symbolizer::FlopWidth::avx2, symbolizer::FlopType::float32,
                                     symbolizer::FlopOperation::fma) ==
      models::FlopMix::index(models::Width::avx2, models::Precision::single_precision, models::Operation::fma));
  models::FlopMix mix;
  mix.of = flops.of;
  mix.other = flops.other;
  return mix;
}

/// A loop's traffic between the levels, a second of CPU time.
struct Traffic {
  std::optional<models::LevelBytes> per_s;
  std::array<double, 4> served{};  // lines, by the level that they come from
  std::string unknown;
  bool stores_only_new = false;
  bool scattered = false;  // some accesses are taken to fall anywhere in the range that they were seen in
};

/// True if the loop stores whole lines that it does not load.
bool has_store_stream(const std::vector<models::Stream>& streams) {
  return std::any_of(streams.begin(), streams.end(), [&](const models::Stream& store) {
    const bool whole =
        store.stores && !store.loads && !store.streaming && std::abs(static_cast<double>(store.stride)) <= line_bytes;
    return whole && std::none_of(streams.begin(), streams.end(), [&](const models::Stream& other) {
             return other.loads && other.low <= store.high && store.low <= other.high;
           });
  });
}

std::optional<models::Width> widest_of(const models::FlopMix& mix) {
  for (const models::Width width :
       {models::Width::avx512, models::Width::avx2, models::Width::sse, models::Width::scalar}) {
    if (mix.of_width(width) > 0) {
      return width;
    }
  }
  return std::nullopt;
}

std::optional<models::Width> widest_of(const models::Machine& machine) {
  for (const models::Width width : {models::Width::avx512, models::Width::avx2, models::Width::sse}) {
    const models::Figure* figure =
        machine.flops_of(width, models::Precision::double_precision, models::Operation::add, models::Scope::one_core);
    if (figure != nullptr && figure->value) {
      return width;
    }
  }
  return std::nullopt;
}

models::CacheSizes caches_of(const models::Machine& machine, double threads) {
  const auto bytes = [&](std::uint32_t level) {
    const models::Cache* cache = machine.cache_of(level);
    return cache != nullptr ? cache->bytes : std::uint64_t{0};
  };
  const models::Cache* last = machine.cache_of(3);
  const double sharing = last != nullptr ? std::clamp(threads, 1.0, std::max(1.0, double(last->cpus.size()))) : 1;
  return {bytes(1), bytes(2), static_cast<std::uint64_t>(static_cast<double>(bytes(3)) / sharing)};
}

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
    models::FlopMix mix;  // a second
    std::string mix_unknown;
    double store_share = 0;  // of its accesses, those of the loops inside it included
    Traffic traffic;
    const CounterRates* counted = nullptr;  // null: counters tell nothing of it
  };
  [[nodiscard]] const CounterRates* counted_of(const LoopRow& loop) const;
  [[nodiscard]] LoopFigures figures_of(const LoopRow& loop);
  [[nodiscard]] std::optional<symbolizer::LoopBodyFacts> body_of(const LoopRow& loop) const;
  [[nodiscard]] std::vector<std::string> own_callees_of(const LoopRow& loop) const;
  void find_mix(const LoopRow& loop, Known& known) const;
  [[nodiscard]] double store_share_of(const LoopRow& loop, const Known& known) const;
  [[nodiscard]] Traffic traffic_of(const LoopRow& loop, const Known& known, double threads) const;
  [[nodiscard]] Traffic traffic_inside(const LoopRow& loop, const std::vector<LoopRow*>& inner) const;
  void fill_busy(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_waits(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_classes(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  void fill_advice(const LoopRow& loop, const Known& known, LoopFigures& figures) const;
  [[nodiscard]] std::optional<double> part_of_time(const LoopRow& loop, std::optional<double> cycles) const;
  [[nodiscard]] std::optional<double> chain_share(const LoopRow& loop, const Known& known) const;
  [[nodiscard]] std::optional<double> local_share(const LoopRow& loop, const Known& known) const;
  [[nodiscard]] std::optional<models::LevelShares> data_levels(const Known& known, std::string& missing) const;

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

/// Short names of functions of the same file that it calls directly. Leaves out stubs, which lead to other files.
std::vector<std::string> Figures::own_callees_of(const LoopRow& loop) const {
  std::vector<std::string> names;
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  for (const symbolizer::Way& way :
       code && !is_runtime_library(loop.module) ? code->anatomy->ways(code->index) : std::vector<symbolizer::Way>()) {
    for (std::size_t i = 0; i < way.code.size(); ++i) {
      const auto instruction = symbolizer::decode(way.code[i], way.addresses[i]);
      if (!instruction || instruction->flow != symbolizer::Flow::call || instruction->target == 0 ||
          instruction->target == code->anatomy->function_begin()) {
        continue;
      }
      const symbolizer::CodeLocation& callee = view_.code().locate({loop.module_file, instruction->target});
      if (callee.frames.empty() || is_unknown(callee.frames.back()) || is_library_code(callee.frames.back()) ||
          callee.frames.back().function.ends_with("@plt")) {
        continue;
      }
      const std::string name = in_short(callee.frames.back().function);
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

/// Finds the kinds of its operations, its own and those of its inner loops, a second of its CPU time.
void Figures::find_mix(const LoopRow& loop, Known& known) const {
  constexpr double most = 0.5;
  const Rate& flops = loop.rates.flops;
  if (!flops.per_s || *flops.per_s <= 0) {
    return;
  }
  models::FlopMix mix;
  if (known.body && loop.rates.iterations.per_s) {
    mix.add(mix_of(known.body->flops), *loop.rates.iterations.per_s);
  }
  if (const auto inner = inside_.find(loop.id); inner != inside_.end()) {
    for (const LoopRow* row : inner->second) {
      mix.add(known_.at(row->id).mix, row->cpu_s / loop.cpu_s);
    }
  }
  const double found = mix.total();
  if (found < most * *flops.per_s) {
    known.mix_unknown = "by which instructions its operations are done is not known";
    return;
  }
  known.mix.add(mix, *flops.per_s / found);
}

/// The share of stores by the loop's rates; if they are not known, by its inner loops, or its code.
double Figures::store_share_of(const LoopRow& loop, const Known& known) const {
  double stores = loop.rates.stores.per_s.value_or(0);
  double all = stores + loop.rates.loads.per_s.value_or(0);
  const auto inner = inside_.find(loop.id);
  if (all <= 0 && inner != inside_.end()) {
    for (const LoopRow* row : inner->second) {
      stores += known_.at(row->id).store_share * row->cpu_s;
      all += row->cpu_s;
    }
  } else if (all <= 0 && known.body) {
    stores = known.body->stores;
    all = known.body->stores + known.body->loads;
  }
  return all > 0 ? stores / all : 0;
}

Traffic Figures::traffic_inside(const LoopRow& loop, const std::vector<LoopRow*>& inner) const {
  constexpr double nearly_all = 0.95;
  Traffic sum;
  sum.per_s.emplace();
  double inside_s = 0;
  for (const LoopRow* row : inner) {
    const Traffic& part = known_.at(row->id).traffic;
    if (!part.per_s) {
      return {std::nullopt, {}, "of a loop inside it: " + part.unknown};
    }
    const double share = row->cpu_s / loop.cpu_s;
    inside_s += row->cpu_s;
    sum.per_s->l2 += share * part.per_s->l2;
    sum.per_s->l3 += share * part.per_s->l3;
    sum.per_s->memory += share * part.per_s->memory;
    for (std::size_t level = 0; level < sum.served.size(); ++level) {
      sum.served[level] += share * part.served[level];
    }
    sum.stores_only_new = sum.stores_only_new || part.stores_only_new;
    sum.scattered = sum.scattered || part.scattered;
  }
  return inside_s >= nearly_all * loop.cpu_s ? sum
                                             : Traffic{std::nullopt, {}, "much of its time is outside its inner loops"};
}

Traffic Figures::traffic_of(const LoopRow& loop, const Known& known, double threads) const {
  const auto unknown = [](std::string why) { return Traffic{std::nullopt, {}, std::move(why)}; };
  if (const auto inner = inside_.find(loop.id); inner != inside_.end()) {
    return traffic_inside(loop, inner->second);
  }
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  const auto pairs = evidence_.pairs.find({loop.module_file, loop.header});
  if (!loop.rates.iterations.per_s) {
    return unknown(loop.rates.iterations.unknown);
  }
  if (!code || !known.body || pairs == evidence_.pairs.end()) {
    return unknown("its code is not known");
  }
  if (known.body->calls || !known.body->one_way) {
    return unknown(known.body->calls ? "it calls functions" : "its iterations take different ways");
  }
  const double iterations = *loop.rates.iterations.per_s;
  const LoopStreams streams =
      streams_of(symbolizer::loop_operands(*code->anatomy, code->index), pairs->second, iterations);
  if (!streams.unknown.empty()) {
    return unknown(streams.unknown);
  }
  const models::StreamTraffic found =
      models::stream_traffic(streams.streams, streams.scattered, caches_of(*evidence_.machine, threads));
  if (!found.bytes) {
    return unknown(found.unknown);
  }
  const models::LevelBytes& each = *found.bytes;
  return {models::LevelBytes{each.l2 * iterations, each.l3 * iterations, each.memory * iterations}, found.served, "",
          has_store_stream(streams.streams), !streams.scattered.empty()};
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
        "At least as much comes from memory as this says: lines that are prefetched into the last level are not "
        "counted.");
  }
  figures.counted[Unit::fpu] = figures.per_s[Unit::fpu].has_value() && loop.rates.flops.counted;
}

void Figures::fill_busy(const LoopRow& loop, const Known& known, LoopFigures& figures) const {
  const models::Machine& machine = *evidence_.machine;
  models::Demand demand;
  demand.flops = known.mix;
  demand.threads = figures.threads;
  demand.store_share = known.store_share;
  if (known.body) {
    demand.streaming = known.body->stores > 0 && 2 * known.body->streaming_stores > known.body->stores;
  }
  const models::Peaks peaks = models::peaks_of(machine, demand);
  const auto& traffic = known.traffic.per_s;
  figures.per_s[Unit::fpu] = known.mix_unknown.empty() ? loop.rates.flops.per_s : std::nullopt;
  figures.per_s[Unit::l1d] = loop.rates.bytes.per_s;
  figures.per_s[Unit::l2] = traffic ? std::optional(traffic->l2) : std::nullopt;
  figures.per_s[Unit::l3] = traffic ? std::optional(traffic->l3) : std::nullopt;
  figures.per_s[Unit::memory] = traffic ? std::optional(traffic->memory) : std::nullopt;
  if (known.counted != nullptr) {
    take_counted(*known.counted, loop, figures);
  }
  models::LoopWork work{loop.cpu_s, {}};
  for (const Unit unit : models::all_units) {
    const auto& rate = figures.per_s[unit];
    work.amount[unit] = rate ? std::optional(*rate * loop.cpu_s) : std::nullopt;
  }
  figures.busy = models::busy_times(work, peaks);
  for (const Unit unit : models::all_units) {
    if (figures.busy[unit].exists && !figures.busy[unit].seconds) {
      figures.reasons[unit] = unit == Unit::fpu && !figures.per_s[unit]
                                  ? (known.mix_unknown.empty() ? loop.rates.flops.unknown : known.mix_unknown)
                              : unit == Unit::l1d && !figures.per_s[unit] ? loop.rates.bytes.unknown
                              : !figures.per_s[unit]                      ? known.traffic.unknown
                                                                          : models::why_no_peak(machine, unit, demand);
    }
  }
  if (traffic && known.traffic.scattered && !figures.counted[Unit::memory]) {
    figures.notes.emplace_back(
        "Accesses whose addresses are loaded are taken to fall anywhere in the range in which they were seen: where "
        "they "
        "stay together for a while, less is moved than this says.");
  }
  figures.bytes_to_flops = models::bytes_to_flops(work);
  const bool single = 2 * known.mix.of_precision(models::Precision::single_precision) > known.mix.total();
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

/// The shares of waits for each level, from the number of lines that it serves and the latency of one. Sets `missing`
/// to the latencies that the machine's figures lack.
std::optional<models::LevelShares> Figures::data_levels(const Known& known, std::string& missing) const {
  if (evidence_.machine == nullptr || !known.traffic.per_s) {
    return std::nullopt;
  }
  constexpr auto& levels = models::all_levels;
  models::LevelShares shares{};
  double sum = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (known.traffic.served[i] > 0) {
      const models::Figure* latency = evidence_.machine->latency_of(levels[i]);
      if (latency == nullptr || !latency->value) {
        missing = "the latency of " + std::string(models::roofline::level_in_words(levels[i])) +
                  " is not in the calibration" + (latency != nullptr ? ": " + latency->refused : "");
        return std::nullopt;
      }
      shares[i] = known.traffic.served[i] * *latency->value;
      sum += shares[i];
    }
  }
  if (sum <= 0) {
    return models::LevelShares{1, 0, 0, 0};  // no stream: what it accesses stays in the first level
  }
  for (double& share : shares) {
    share /= sum;
  }
  return shares;
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
  cycles.data_levels = data_levels(known, missing);
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
    figures.waits.notes.emplace_back("What its cycles went to was counted by the processor.");
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
  evidence.widest_flops = widest_of(known.mix);
  evidence.widest_available = evidence_.machine != nullptr ? widest_of(*evidence_.machine) : std::nullopt;
  evidence.multiply_adds = figures.multiply_adds;
  const double flops = known.mix.total();
  evidence.other_flops = flops > 0 ? std::optional(known.mix.other / flops) : std::nullopt;
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
  evidence.imbalance = figures.imbalance;
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  const auto pairs = evidence_.pairs.find({loop.module_file, loop.header});
  if (code && pairs != evidence_.pairs.end() && !inside_.contains(loop.id)) {
    evidence.long_strides = long_strides(symbolizer::loop_operands(*code->anatomy, code->index), pairs->second);
  }
  if (const models::Cache* first = evidence_.machine != nullptr ? evidence_.machine->cache_of(1) : nullptr) {
    evidence.first_level_bytes = static_cast<double>(first->bytes);
  }
  figures.advice = models::remedies_for(evidence);
}

/// True if the loop's threads all lived at one moment. Those that came one after another waited for nobody.
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

/// Fills in the average number of threads that execute the loop at once, from their times. A thread that spins at a
/// barrier in the loop waits as long as the slowest one works, so imbalance uses the time without waits.
void fill_threads(const LoopRow& loop, const ProgramView& view, LoopFigures& figures) {
  double most = 0;
  std::vector<double> work_s;
  for (const LoopThread& thread : loop.threads) {
    most = std::max(most, thread.cpu_s);
    work_s.push_back(std::max(0.0, thread.cpu_s - thread.waiting_s));
  }
  figures.threads = most > 0 ? std::max(1.0, loop.cpu_s / most) : 1;
  figures.imbalance = lived_at_once(loop, view) ? models::imbalance(work_s) : std::nullopt;
}

LoopFigures Figures::figures_of(const LoopRow& loop) {
  LoopFigures figures;
  Known& known = known_[loop.id];
  known.body = body_of(loop);
  known.own_callees = known.body && known.body->calls ? own_callees_of(loop) : std::vector<std::string>();
  known.counted = counted_of(loop);
  find_mix(loop, known);
  fill_threads(loop, view_, figures);
  if (evidence_.machine != nullptr && !evidence_.machine->processors.empty()) {  // threads may come one after another
    figures.threads = std::min(figures.threads, static_cast<double>(evidence_.machine->processors.size()));
  }
  const double counted = known.mix.total() - known.mix.other;
  if (counted > 0) {
    figures.packed = 1 - known.mix.of_width(models::Width::scalar) / counted;
    figures.multiply_adds = known.mix.of_operation(models::Operation::fma) / known.mix.total();
  }
  if (known.mix.total() > 0) {
    figures.flops = known.mix;
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
    known.store_share = store_share_of(loop, known);
    known.traffic = traffic_of(loop, known, figures.threads);
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
