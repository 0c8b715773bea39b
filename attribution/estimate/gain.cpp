// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/gain.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "attribution/estimate/amounts.h"
#include "attribution/loops/core_cycles.h"
#include "attribution/samples/brief_threads.h"
#include "base/units.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {
namespace {

constexpr double ps_per_s = 1e12;
// The most work of functions around their communicating accesses, as a multiple of the accesses' time with the line at
// hand.
constexpr double most_around_accesses = 4;
// Between two threads of one core a line stays in the first-level cache. The rest are pipelines flushed by the other
// thread's stores; without a measurement of that, the bound is wide.
constexpr double most_of_siblings = 0.5, likely_of_siblings = 0.1;

double part_of_cost(const PayingLoop& loop, double saved_s) { return std::clamp(saved_s / loop.cost_s, 0.0, 1.0); }

}  // namespace

GainPart gain_of_loop(const PayingLoop& loop, const profile::CoreTimes& core) {
  if (!loop.iterations || core.cycle_ps == 0 || !(loop.cost_s > 0)) {
    return {};
  }
  const double cycle_s = core.cycle_ps / ps_per_s;
  const Interval& n = loop.iterations_ci95;
  if (loop.accesses_cycles) {
    const double each_s = *loop.accesses_cycles * cycle_s;
    return {part_of_cost(loop, loop.cost_s - most_around_accesses * n.high * each_s), part_of_cost(loop, loop.cost_s),
            part_of_cost(loop, loop.cost_s - *loop.iterations * each_s)};
  }
  if (!loop.local) {
    return {};
  }
  return {part_of_cost(loop, loop.self_s - n.high * loop.local->most * cycle_s),
          part_of_cost(loop, loop.self_s - n.low * loop.local->least * cycle_s),
          part_of_cost(loop, loop.self_s - *loop.iterations * loop.local->likely * cycle_s)};
}

GainPart gain_of_waiting(symbolizer::Waiting waiting, const GainPart& of_loop) {
  switch (waiting) {
    case symbolizer::Waiting::surely:
      return {0, 0, 0};
    case symbolizer::Waiting::perhaps:
      return {0, 1, 0};
    case symbolizer::Waiting::no:
      break;
  }
  return of_loop;
}

GainPart gain_between(profile::Nearness nearness, const GainPart& of_loop) {
  switch (nearness) {
    case profile::Nearness::same_cpu:
      return {0, 0, 0};
    case profile::Nearness::same_core: {
      GainPart part = of_loop;
      part.low = 0;
      part.high *= most_of_siblings;
      part.likely = std::min(part.likely.value_or(1) * likely_of_siblings, part.high);
      return part;
    }
    default:
      return of_loop;
  }
}

double false_only(double true_seen, double false_seen) {
  return false_seen > 0 ? std::clamp(1 - true_seen / false_seen, 0.0, 1.0) : 1;
}

GainPart gain_beside_true_sharing(double only, const GainPart& part) {
  GainPart rest = part;
  rest.low *= only;
  if (rest.likely) {
    *rest.likely *= only;
  } else if (only == 0) {
    rest.likely = 0;
  }
  return rest;
}

Gains::Gains(const ProgramView& view, const StackTable& stacks, std::span<const LoopRow> loops,
             const profile::Session& session)
    : view_(view),
      stacks_(stacks),
      rows_(loops),
      core_(session.core),
      topology_(profile::Topology::parse(session.topology).value_or(profile::Topology())) {}

/// The innermost loop at `place`; null if there is none.
PayingLoop* Gains::loop_at(ModulePlace place, bool called) {
  const auto loop = innermost_loop(view_.code(), place);
  if (!loop) {
    return nullptr;
  }
  const LoopPlace key{place.file, loop->anatomy->header(loop->index)};
  const auto [entry, fresh] = loops_.try_emplace({key, called});
  if (fresh) {
    entry->second = read_loop(key);
  }
  return &entry->second;
}

/// Finds the loop in the access's own function, else in the innermost caller with a loop.
void Gains::find_payer(const AccessPoint& consumer, ModulePlace place, Payer& payer) {
  if ((payer.loop = loop_at(place, false)) != nullptr) {
    const auto loop = innermost_loop(view_.code(), place);
    payer.waiting = loop->anatomy->waits_at(loop->index, place.address);
    return;
  }
  const Moment moment = view_.moment(consumer.thread, consumer.time_ns);
  const auto stack = stacks_.addresses(consumer.stack);
  for (std::size_t i = 1; i < stack.size() && payer.loop == nullptr; ++i) {
    if (const auto caller = view_.spaces().find(moment, stack[i] - 1)) {
      payer.loop = loop_at(*caller, true);
    }
  }
  if (payer.loop != nullptr) {
    payer.loop->accesses_cycles = payer.loop->accesses_cycles.value_or(0) + cycles_of_access(place);
  }
}

const Gains::Payer& Gains::payer_of(const AccessPoint& consumer) {
  static const Payer nobody;
  const auto place = view_.spaces().find(view_.moment(consumer.thread, consumer.time_ns), consumer.instruction);
  if (!place) {
    return nobody;
  }
  Payer& payer = payers_[{place->file, place->address}];
  if (payer.loop == nullptr) {  // another of its accesses may have a stack with the loop
    find_payer(consumer, *place, payer);
  }
  return payer;
}

/// Cycles of one access with its line in the own cache.
double Gains::cycles_of_access(ModulePlace place) const {
  const symbolizer::CoreCycles cycles = cycles_of(core_);
  switch (update_at(view_.code(), place)) {
    case symbolizer::Update::none:
    case symbolizer::Update::plain:
      return 1 + cycles.forward;
    default:
      return cycles.locked;
  }
}

PayingLoop Gains::read_loop(const LoopPlace& place) const {
  PayingLoop loop;
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const LoopRow& r) {
    return r.module_file == place.file && r.header == place.header;
  });
  if (row != rows_.end()) {
    loop.self_s = row->self_s;
    const Rate& rate = row->rates.iterations;
    if (rate.per_s && rate.ci95 && row->rates.in_callees < 1) {
      const double time_s = row->cpu_s / (1 - row->rates.in_callees);  // rates are of the time in callees, too
      loop.iterations = *rate.per_s * time_s;
      loop.iterations_ci95 = {rate.ci95->low * time_s, rate.ci95->high * time_s};
    }
  }
  const auto code = innermost_loop(view_.code(), {place.file, place.header});
  if (code && core_.cycle_ps != 0) {
    loop.local = symbolizer::over_ways(code->anatomy->ways(code->index), cycles_of(core_));
  }
  return loop;
}

GainPart Gains::part_of(const Payer& payer, profile::Nearness nearness, double only_false) const {
  const GainPart of_loop = payer.loop != nullptr ? gain_of_loop(*payer.loop, core_) : GainPart{};
  const GainPart part = gain_between(nearness, gain_of_waiting(payer.waiting, of_loop));
  return gain_beside_true_sharing(only_false, part);
}

void Gains::find(std::span<Contribution> contributions, Expansion& expansion) {
  std::vector<const Payer*> payers;
  payers.reserve(contributions.size());
  std::map<std::pair<std::uint32_t, std::uint64_t>, Seen> lines;  // by consumer and line
  for (const Contribution& c : contributions) {
    const AccessPoint& consumer = c.seen->consumer;
    payers.push_back(&payer_of(consumer));
    Seen& seen = lines[{consumer.thread.value, consumer.line}];
    (c.seen->true_sharing ? seen.true_sharing : seen.false_sharing) += c.seen->weight;
  }
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    if (payers[i]->loop != nullptr && payers[i]->waiting != symbolizer::Waiting::surely) {
      payers[i]->loop->cost_s += cost_s(contributions[i], expansion.strata);
    }
  }
  constexpr double steps = 8;  // a few parts are enough, and there may be millions of contributions
  expansion.gains = {GainPart{}};
  std::map<std::tuple<const Payer*, profile::Nearness, long>, std::uint32_t> numbers;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const SeenCommunication& seen = *contributions[i].seen;
    const Seen& line = lines[{seen.consumer.thread.value, seen.consumer.line}];
    const double only_false = seen.true_sharing ? 1 : false_only(line.true_sharing, line.false_sharing);
    const long step = std::lround(only_false * steps);
    const profile::Nearness nearness = topology_.between(seen.producer.cpu, seen.consumer.cpu);
    const auto [number, fresh] =
        numbers.try_emplace({payers[i], nearness, step}, static_cast<std::uint32_t>(expansion.gains.size()));
    if (fresh) {
      expansion.gains.push_back(part_of(*payers[i], nearness, static_cast<double>(step) / steps));
    }
    contributions[i].gain = number->second;
  }
}

void limit_to_cpu_time(std::span<Contribution> contributions, std::span<const Stratum> strata,
                       std::span<const profile::ThreadRow> threads) {
  const std::size_t all_brief = threads.size();
  const auto payer_of = [&](std::size_t thread) { return is_brief(threads[thread]) ? all_brief : thread; };
  struct Payer {
    double has_s = 0, charged_s = 0;
  };
  std::vector<Payer> payers(threads.size() + 1);
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    payers[payer_of(thread)].has_s += static_cast<double>(threads[thread].cpu_ns) / ns_per_s;
  }
  const auto knows = [&](const Contribution& c) { return c.seen->consumer.thread.value < threads.size(); };
  for (const Contribution& c : contributions) {
    if (knows(c)) {
      payers[payer_of(c.seen->consumer.thread.value)].charged_s += cost_s(c, strata);
    }
  }
  for (Contribution& c : contributions) {
    if (knows(c)) {
      const Payer& payer = payers[payer_of(c.seen->consumer.thread.value)];
      c.cost *= payer.has_s > 0 && payer.charged_s > payer.has_s ? payer.has_s / payer.charged_s : 1;
    }
  }
}

}  // namespace crosstalk::attribution
