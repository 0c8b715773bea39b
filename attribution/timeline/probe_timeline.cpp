// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/probe_timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "attribution/timeline/ownership_timeline.h"

namespace crosstalk::attribution {
namespace {

using LineKey = std::pair<std::uint32_t, std::uint64_t>;  // thread and address

LineBytes bytes_of_mask(std::uint64_t mask) {
  LineBytes bytes;
  for (std::int64_t byte = 0; byte < LineBytes::line_bytes; ++byte) {
    bytes |= (mask >> byte & 1U) != 0 ? LineBytes::range(byte, 1) : LineBytes();
  }
  return bytes;
}

std::uint64_t line_of(std::uint64_t address) { return address - address % LineBytes::line_bytes; }
std::uint64_t page_of(std::uint64_t address) { return address >> 12U; }
MemoryPlace line_of(MemoryPlace place) { return {place.space, line_of(place.address)}; }
MemoryPlace page_of(MemoryPlace place) { return {place.space, page_of(place.address)}; }

ProbeOutcome outcome_of(const profile::WatchRow& watch, LineBytes changed) {
  constexpr double any_gap = 1e9;  // earlier stores show at any gap
  const bool before = !changed.empty() && watch.probe->changed == 0;
  return {before ? any_gap : static_cast<double>(watch.probe->gap_ns), !changed.empty()};
}

/// Probes of one line by one thread, or at one instruction; their rate is fitted once.
struct AlikeProbes {
  ProbeOutcomes outcomes;
  std::uint32_t rate = ProbeRates::none;
};

/// The communications that a probe saw, each counted `weight` times to include unseen ones.
OwnershipTimeline tell(std::span<const profile::WatchRow> watches, std::size_t index, double weight,
                       const ProbedLines& lines) {
  const profile::WatchRow& watch = watches[index];
  OwnershipTimeline timeline;
  AccessPoint consumer = sampled_access(watch);
  consumer.sampled = false;  // it is seen itself, and not expected to come back
  const bool same_bytes = lines.changed(index).overlaps(consumer.bytes);
  const std::vector<ProbedLines::Use> users = lines.who_stored(index);
  double samples = 0;
  for (const ProbedLines::Use& use : users) {
    samples += use.samples;
  }
  for (const ProbedLines::Use& use : users) {
    AccessPoint store = use.point;
    store.line = watch.line;
    store.time_ns = watch.time_ns;
    const bool known_to_store = use.evidence != ProbedLines::Evidence::loads;
    store.kind = known_to_store ? store.kind : AccessKind::load_store;
    const double share = use.samples / samples;
    timeline.accesses.push_back(store);
    const bool true_sharing = same_bytes && (is_true_sharing(store, consumer) || !known_to_store);
    timeline.communications.push_back({store, consumer, true_sharing, weight * share, share});
  }
  if (users.empty()) {
    timeline.interrupted.push_back({consumer, consumer, same_bytes, weight});
  }
  return timeline;
}

LineKey line_key(const profile::WatchRow& watch) { return {watch.thread.value, watch.line}; }
LineKey page_key(const profile::WatchRow& watch) { return {watch.thread.value, page_of(watch.line)}; }

std::uint64_t instruction_of(const profile::WatchRow& watch) {
  return watch.sample_access_ip != 0 ? watch.sample_access_ip : watch.sample_ip;
}

/// Fits a rate to the probes of each line of a thread that saw many stores, and to those at each instruction for the
/// others.
ProbeRates probe_rates(std::span<const profile::WatchRow> watches, const ProbedLines& lines) {
  constexpr double least_hits_of_line = 30;
  std::map<LineKey, AlikeProbes> of_line;
  std::map<std::uint64_t, AlikeProbes> of_instruction;
  std::set<LineKey> pages;  // with a change: probes of others tell nothing of stores
  for (std::size_t i = 0; i < watches.size(); ++i) {
    if (watches[i].probe) {
      of_line[line_key(watches[i])].outcomes.add(outcome_of(watches[i], lines.changed(i)));
      if (!lines.changed(i).empty()) {
        pages.insert(page_key(watches[i]));
      }
    }
  }
  for (std::size_t i = 0; i < watches.size(); ++i) {
    if (watches[i].probe && pages.contains(page_key(watches[i]))) {
      of_instruction[instruction_of(watches[i])].outcomes.add(outcome_of(watches[i], lines.changed(i)));
    }
  }
  ProbeRates rates;
  rates.of_watch.assign(watches.size(), ProbeRates::none);
  for (std::size_t i = 0; i < watches.size(); ++i) {
    if (!watches[i].probe || lines.changed(i).empty()) {
      continue;
    }
    AlikeProbes& line = of_line[line_key(watches[i])];
    AlikeProbes& alike = line.outcomes.hits() >= least_hits_of_line ? line : of_instruction[instruction_of(watches[i])];
    if (alike.rate == ProbeRates::none) {
      alike.rate = static_cast<std::uint32_t>(rates.rates.size());
      rates.rates.push_back(store_rate(alike.outcomes));
    }
    rates.of_watch[i] = alike.rate;
  }
  return rates;
}

}  // namespace

bool may_have_seen_store(const profile::WatchRow& watch) {
  return watch.probe && (watch.probe->changed != 0 || watch.probe->value_bytes != 0);
}

ProbedLines::ProbedLines(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
                         const SharedIndex& shared, SampledCode& code)
    : watches_(watches), threads_(threads), shared_(shared), code_(code), changed_(watches.size()) {
  std::map<MemoryPlace, std::uint32_t> probes;
  for (const profile::WatchRow& watch : watches) {
    places_.push_back(place(watch.thread, watch.time_ns, watch.line));
    if (places_.back() && watch.probe) {
      ++probes[*places_.back()];
    }
  }
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    const auto& line = places_[i];
    // A waiting thread is sampled repeatedly, so values are compared only on lines that were probed twice.
    if (!line || !may_have_seen_store(watch) || (watch.probe->changed == 0 && probes[*line] < 2)) {
      continue;
    }
    lines_[*line];
    pages_[page_of(*line)];
    changed_[i] = bytes_of_mask(watch.probe->changed);
    if (watch.probe->value_bytes != 0) {
      probes_[{watch.thread.value, watch.time_ns}] = static_cast<std::uint32_t>(i);
    }
  }
}

LineBytes ProbedLines::changed(std::size_t watch) const { return changed_[watch]; }

/// Compares the value that a probe read with its thread's last loaded one, and notes bytes that differ.
void ProbedLines::compare_value(const profile::SampleRow& sample) {
  const auto found = probes_.find({sample.thread.value, sample.time_ns});
  const auto loaded = found != probes_.end() ? code_.last_loaded(sample) : std::nullopt;
  if (!loaded) {
    return;
  }
  const profile::ProbedLine& probe = *watches_[found->second].probe;
  const unsigned bits = 8U * std::min<unsigned>(loaded->bytes, probe.value_bytes);
  const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t difference = (loaded->value ^ probe.value) & mask;
  const auto offset = static_cast<std::int64_t>(sample.address % LineBytes::line_bytes);
  for (unsigned byte = 0; 8 * byte < bits; ++byte) {
    if ((difference >> (8 * byte) & 0xffU) != 0) {
      changed_[found->second] |= LineBytes::range(offset + byte, 1);
    }
  }
}

std::optional<MemoryPlace> ProbedLines::place(ThreadId thread, std::uint64_t time_ns, std::uint64_t address) const {
  return thread.value < threads_.size()
             ? std::optional(shared_.place({threads_[thread.value].process, time_ns}, address))
             : std::nullopt;
}

std::optional<ProbedLines::OnlyOther> ProbedLines::only_other(MemoryPlace line, ThreadId self) const {
  constexpr std::uint64_t hardly = 50;  // one in so many samples
  std::uint64_t all = 0;
  std::uint64_t most = 0;
  std::uint64_t others = 0;
  std::optional<ThreadId> busiest;
  for (const auto& [thread, samples] : samples_) {
    if (line.is_shared() ? !sharers_.contains({line.space, thread}) : threads_[thread].process.value != line.space) {
      continue;
    }
    all += samples;
    if (thread != self.value) {
      others += samples;
      busiest = samples > most ? ThreadId{thread} : busiest;
      most = std::max(most, samples);
    }
  }
  return busiest && (others - most) * hardly < all ? std::optional(OnlyOther{*busiest, most * hardly >= all})
                                                   : std::nullopt;
}

void ProbedLines::note(AccessPoint point, MemoryPlace place, std::uint8_t width, Evidence evidence) {
  const MemoryPlace line = line_of(place);
  const auto found = lines_.find(line);
  const auto page = evidence != Evidence::loads ? pages_.find(page_of(place)) : pages_.end();
  point.line = line.address;
  point.bytes =
      LineBytes::range(static_cast<std::int64_t>(place.address - line.address), std::max<std::int64_t>(width, 1));
  if (found != lines_.end()) {
    note(found->second, point, evidence);
  }
  if (page != pages_.end()) {
    note(page->second, point, evidence);
  }
}

void ProbedLines::note(std::vector<Use>& uses, const AccessPoint& point, Evidence evidence) {
  constexpr std::size_t most = 512;  // threads by instructions
  const auto known = std::find_if(uses.begin(), uses.end(), [&](const Use& use) {
    return use.point.thread == point.thread && use.point.instruction == point.instruction &&
           use.point.bytes == point.bytes;
  });
  if (known != uses.end()) {
    known->samples += known->evidence == evidence ? 1 : 0;
    if (evidence > known->evidence) {
      *known = {point, evidence, 1};
    }
  } else if (uses.size() < most) {
    uses.push_back({point, evidence, 1});
  }
}

void ProbedLines::add(const profile::SampleRow& sample) {
  if (lines_.empty() || sample.thread.value >= threads_.size()) {
    return;
  }
  ++samples_[sample.thread.value];
  AccessPoint point;
  point.thread = sample.thread;
  point.time_ns = sample.time_ns;
  point.stack = sample.stack;
  point.cpu = sample.cpu;
  const MemoryPlace accessed = *place(sample.thread, sample.time_ns, sample.address);
  if (accessed.is_shared()) {
    sharers_.insert({accessed.space, sample.thread.value});
  }
  if (sample.access != AccessKind::none && pages_.contains(page_of(accessed))) {
    compare_value(sample);
    point.instruction = SampledCode::instruction_of(sample);
    const bool stores = code_.stores(sample);
    point.kind = stores && sample.access == AccessKind::load ? AccessKind::load_store : sample.access;
    note(point, accessed, sample.width, stores ? Evidence::stores : Evidence::loads);
  }
  for (const PossibleStore& store : code_.stores_ahead(sample)) {
    point.instruction = store.instruction;
    point.kind = store.kind;
    note(point, *place(sample.thread, sample.time_ns, store.address), store.width, Evidence::is_about_to_store);
  }
}

/// Returns none if several threads store to such bytes on the page: an element without samples may be anybody's.
std::vector<ProbedLines::Use> ProbedLines::who_stores_nearby(std::size_t watch) const {
  constexpr double least = 6;  // samples: of two equally busy threads, the chance that one has all of so many is 3 %
  std::vector<Use> uses;
  const auto& line = places_[watch];
  const auto page = line ? pages_.find(page_of(*line)) : pages_.end();
  double samples = 0;
  if (page != pages_.end()) {
    for (const Use& use : page->second) {
      if (use.point.thread != watches_[watch].thread && use.point.bytes.overlaps(changed_[watch])) {
        uses.push_back(use);
        samples += use.samples;
      }
    }
  }
  const bool several = std::any_of(uses.begin(), uses.end(),
                                   [&](const Use& use) { return use.point.thread != uses.front().point.thread; });
  return several || samples < least ? std::vector<Use>() : uses;
}

std::vector<ProbedLines::Use> ProbedLines::who_stored(std::size_t watch) const {
  std::vector<Use> best;
  const auto& line = places_[watch];
  const auto found = line ? lines_.find(*line) : lines_.end();
  if (found == lines_.end()) {
    return best;
  }
  const ThreadId self = watches_[watch].thread;
  const LineBytes changed = changed_[watch];
  const std::optional<OnlyOther> only = only_other(*line, self);
  int best_rank = 0;
  for (const Use& use : found->second) {
    const bool there = use.point.bytes.overlaps(changed);
    const int rank = use.point.thread == self                               ? 0
                     : there && use.evidence == Evidence::stores            ? 4
                     : there && use.evidence == Evidence::is_about_to_store ? 3
                     : !only || only->thread != use.point.thread            ? 0
                     : there && use.evidence == Evidence::loads             ? 2
                                                                            : 1;
    if (rank > best_rank) {
      best.clear();
      best_rank = rank;
    }
    if (rank == best_rank && rank > 0) {
      best.push_back(use);
    }
  }
  if (best.empty()) {
    best = who_stores_nearby(watch);
  }
  if (best.empty() && only && only->busy) {
    AccessPoint unknown;
    unknown.thread = only->thread;
    unknown.bytes = changed;
    best.push_back({unknown, Evidence::loads, 1});
  }
  return best;
}

std::uint64_t unknown_writers(std::span<const profile::WatchRow> watches,
                              std::span<const OwnershipTimeline> timelines) {
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < watches.size() && i < timelines.size(); ++i) {
    unknown += watches[i].probe && !timelines[i].interrupted.empty() ? 1 : 0;
  }
  return unknown;
}

ProbeRates tell_probes(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                       const ProbedLines& lines) {
  ProbeRates rates = probe_rates(watches, lines);
  for (std::size_t i = 0; i < watches.size() && i < timelines.size(); ++i) {
    if (watches[i].probe && !lines.changed(i).empty()) {
      timelines[i] = tell(watches, i, 1 / rates.rates[rates.of_watch[i]].detection, lines);
    }
  }
  return rates;
}

}  // namespace crosstalk::attribution
