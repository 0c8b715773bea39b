// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/time_stacks.h"

#include <algorithm>

#include "attribution/loops/code_time.h"
#include "attribution/loops/kernel_entry.h"
#include "base/units.h"

namespace crosstalk::attribution {

void TimeStacks::read() {
  for (const SampledStacks::Sample& sample : inputs_.samples.samples()) {
    const std::uint32_t callers = inputs_.stacks.callers(sample.stack);
    if (callers == StackTable::unknown) {
      continue;
    }
    const Moment moment = inputs_.view.moment(sample.thread, sample.time_ns);
    const LeafPlace leaf = leaf_of(sample.thread.value, inputs_.view.spaces().find(moment, sample.ip), sample.ip);
    const CallerStack stack{callers, sample.stack, moment};
    Own& own = own_[{leaf, sample.in_kernel}].try_emplace(callers, Own{{}, stack}).first->second;
    ++own.sum.samples;
    own.sum.weight += sample.weight;
  }
  for (const auto& [leaf, stacks] : own_) {
    for (const auto& [callers, own] : stacks) {
      lenders_.add(leaf.first, own.callers, static_cast<double>(own.sum.weight));
    }
  }
}

std::vector<std::uint32_t> TimeStacks::innermost_of(const TimeLeaf& leaf) {
  const auto& [place, in_kernel] = leaf;
  if (!in_kernel) {
    return {writer_.place_of(place)};
  }
  CodeTotal total;
  total.thread = ThreadId{place.thread};
  total.place = place.file != 0 ? std::optional(ModulePlace{place.file - 1, place.address}) : std::nullopt;
  total.address = place.address;
  total.in_kernel = total.system_call = true;
  total = code_totals({total}, inputs_.view).front();
  const std::uint32_t entry = writer_.places().of(kernel_entry(inputs_.view, total));
  return {entry, writer_.place_of(leaf_of(place.thread, total.place, total.address))};
}

void TimeStacks::put_leaf(const TimeLeaf& leaf, StackSum sum, bool lend) {
  const std::vector<std::uint32_t> innermost = innermost_of(leaf);
  if (const auto stacks = own_.find(leaf); stacks != own_.end()) {
    for (const auto& [number, own] : stacks->second) {
      std::vector<std::uint32_t> places = innermost;
      writer_.append(own.callers, places);
      put(leaf, std::move(places), CallersFrom::sample, own.sum);
      sum.samples -= std::min(sum.samples, own.sum.samples);
      sum.weight -= std::min(sum.weight, own.sum.weight);
    }
  }
  put_lent(leaf, innermost, sum, lend);
}

void TimeStacks::put_lent(const TimeLeaf& leaf, const std::vector<std::uint32_t>& innermost, StackSum rest, bool lend) {
  const std::vector<Lenders::Loan> loans = lend ? lenders_.of(leaf.first) : std::vector<Lenders::Loan>{};
  if (loans.empty()) {
    put(leaf, innermost, CallersFrom::unknown, rest);
    return;
  }
  std::vector<double> weights(loans.size());
  std::transform(loans.begin(), loans.end(), weights.begin(), [](const auto& loan) { return loan.weight; });
  const std::vector<std::uint64_t> samples = split(rest.samples, weights);
  const std::vector<std::uint64_t> weight = split(rest.weight, weights);
  for (std::size_t i = 0; i < loans.size(); ++i) {
    std::vector<std::uint32_t> places = innermost;
    writer_.append(loans[i].callers, places);
    put(leaf, std::move(places), CallersFrom::alike, {samples[i], weight[i]});
  }
}

void TimeStacks::put_unsampled() {
  const std::vector<std::uint64_t> unsampled = unsampled_ns(inputs_.threads, inputs_.totals);
  for (std::uint32_t thread = 0; thread < unsampled.size(); ++thread) {
    if (unsampled[thread] != 0) {
      rows_.push_back({thread, {writer_.places().unsampled()}, CallersFrom::unknown, 0, unsampled[thread]});
    }
  }
}

std::vector<TimeStack> TimeStacks::finish(bool lend) {
  std::map<TimeLeaf, StackSum> leaves;  // of all regions
  for (const CodeTotal& total : inputs_.code) {
    if (inputs_.view.knows(total.thread)) {
      StackSum& sum = leaves[{leaf_of(total.thread.value, total.place, total.address), total.in_kernel}];
      sum.samples += total.samples;
      sum.weight += whole(total.ns);
    }
  }
  for (const auto& [leaf, sum] : leaves) {
    put_leaf(leaf, sum, lend);
  }
  put_unsampled();
  return std::move(rows_);
}

std::vector<std::uint64_t> unsampled_ns(std::span<const ThreadSummary> threads, std::span<const ThreadTotal> totals) {
  std::vector<double> lacking(threads.size());
  double all = 0;
  for (std::size_t i = 0; i < threads.size() && i < totals.size(); ++i) {
    const double cpu_ns = threads[i].cpu_s.value_or(0) * ns_per_s;
    lacking[i] = std::max(cpu_ns - totals[i].ns, 0.0);
    all += cpu_ns - totals[i].ns;
  }
  if (!(all >= 1)) {
    return std::vector<std::uint64_t>(threads.size());
  }
  return split(whole(all), lacking);
}

}  // namespace crosstalk::attribution
