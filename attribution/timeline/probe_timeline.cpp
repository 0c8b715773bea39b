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
OwnershipTimeline tell(const profile::WatchRow& watch, LineBytes changed, double weight, const ProbedLines& lines) {
  OwnershipTimeline timeline;
  AccessPoint consumer = sampled_access(watch);
  consumer.sampled = false;  // it is seen itself, and not expected to come back
  const bool same_bytes = changed.overlaps(consumer.bytes);
  const std::vector<const ProbedLines::Use*> users = lines.who_stored(watch, changed);
  double samples = 0;
  for (const ProbedLines::Use* use : users) {
    samples += use->samples;
  }
  for (const ProbedLines::Use* use : users) {
    AccessPoint store = use->point;
    store.line = watch.line;
    store.time_ns = watch.time_ns;
    const bool known_to_store = use->evidence != ProbedLines::Evidence::loads;
    store.kind = known_to_store ? store.kind : AccessKind::load_store;
    const double share = use->samples / samples;
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
                         SampledCode& code)
    : watches_(watches), threads_(threads), code_(code), changed_(watches.size()) {
  std::map<Line, std::uint32_t> probes;
  for (const profile::WatchRow& watch : watches) {
    if (const auto process = process_of(watch.thread); process && watch.probe) {
      ++probes[{*process, watch.line}];
    }
  }
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    const auto process = process_of(watch.thread);
    // A waiting thread is sampled repeatedly, so values are compared only on lines that were probed twice.
    if (!process || !may_have_seen_store(watch) || (watch.probe->changed == 0 && probes[{*process, watch.line}] < 2)) {
      continue;
    }
    lines_[{*process, watch.line}];
    pages_[{*process, page_of(watch.line)}];
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

std::optional<std::uint32_t> ProbedLines::process_of(ThreadId thread) const {
  return thread.value < threads_.size() ? std::optional(threads_[thread.value].process.value) : std::nullopt;
}

bool ProbedLines::are_alone(std::uint32_t process, ThreadId a, ThreadId b) const {
  constexpr std::uint64_t hardly = 50;  // one in so many samples
  const auto found = samples_.find(process);
  if (found == samples_.end()) {
    return false;
  }
  std::uint64_t all = 0;
  std::uint64_t others = 0;
  for (const auto& [thread, samples] : found->second) {
    all += samples;
    others += thread != a.value && thread != b.value ? samples : 0;
  }
  return others * hardly < all;
}

void ProbedLines::note(std::uint32_t process, AccessPoint point, std::uint64_t address, std::uint8_t width,
                       Evidence evidence) {
  const std::uint64_t line = line_of(address);
  const auto found = lines_.find({process, line});
  const auto page = evidence != Evidence::loads ? pages_.find({process, page_of(address)}) : pages_.end();
  point.line = line;
  point.bytes = LineBytes::range(static_cast<std::int64_t>(address - line), std::max<std::int64_t>(width, 1));
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

bool ProbedLines::is_on_page(std::uint32_t process, std::uint64_t address) const {
  return pages_.contains({process, page_of(address)});
}

void ProbedLines::add(const profile::SampleRow& sample) {
  const auto process = lines_.empty() ? std::nullopt : process_of(sample.thread);
  if (!process) {
    return;
  }
  ++samples_[*process][sample.thread.value];
  AccessPoint point;
  point.thread = sample.thread;
  point.time_ns = sample.time_ns;
  point.stack = sample.stack;
  point.cpu = sample.cpu;
  if (sample.access != AccessKind::none && is_on_page(*process, sample.address)) {
    compare_value(sample);
    point.instruction = SampledCode::instruction_of(sample);
    const bool stores = code_.stores(sample);
    point.kind = stores && sample.access == AccessKind::load ? AccessKind::load_store : sample.access;
    note(*process, point, sample.address, sample.width, stores ? Evidence::stores : Evidence::loads);
  }
  for (const PossibleStore& store : code_.stores_ahead(sample)) {
    point.instruction = store.instruction;
    point.kind = store.kind;
    note(*process, point, store.address, store.width, Evidence::is_about_to_store);
  }
}

/// Returns none if several threads store to such bytes on the page: an element without samples may be anybody's.
std::vector<const ProbedLines::Use*> ProbedLines::who_stores_nearby(const profile::WatchRow& watch,
                                                                    LineBytes changed) const {
  constexpr double least = 6;  // samples: of two equally busy threads, the chance that one has all of so many is 3 %
  std::vector<const Use*> uses;
  const auto process = process_of(watch.thread);
  const auto page = process ? pages_.find({*process, page_of(watch.line)}) : pages_.end();
  double samples = 0;
  if (page != pages_.end()) {
    for (const Use& use : page->second) {
      if (use.point.thread != watch.thread && use.point.bytes.overlaps(changed)) {
        uses.push_back(&use);
        samples += use.samples;
      }
    }
  }
  const bool several = std::any_of(uses.begin(), uses.end(),
                                   [&](const Use* use) { return use->point.thread != uses.front()->point.thread; });
  return several || samples < least ? std::vector<const Use*>() : uses;
}

std::vector<const ProbedLines::Use*> ProbedLines::who_stored(const profile::WatchRow& watch, LineBytes changed) const {
  std::vector<const Use*> best;
  const auto process = process_of(watch.thread);
  const auto found = process ? lines_.find({*process, watch.line}) : lines_.end();
  if (found == lines_.end()) {
    return best;
  }
  int best_rank = 0;
  for (const Use& use : found->second) {
    const bool there = use.point.bytes.overlaps(changed);
    const int rank = use.point.thread == watch.thread                       ? 0
                     : there && use.evidence == Evidence::stores            ? 4
                     : there && use.evidence == Evidence::is_about_to_store ? 3
                     : !are_alone(*process, use.point.thread, watch.thread) ? 0
                     : there && use.evidence == Evidence::loads             ? 2
                                                                            : 1;
    if (rank > best_rank) {
      best.clear();
      best_rank = rank;
    }
    if (rank == best_rank && rank > 0) {
      best.push_back(&use);
    }
  }
  return best.empty() ? who_stores_nearby(watch, changed) : best;
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
      timelines[i] = tell(watches[i], lines.changed(i), 1 / rates.rates[rates.of_watch[i]].detection, lines);
    }
  }
  return rates;
}

}  // namespace crosstalk::attribution
