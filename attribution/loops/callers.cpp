// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/callers.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "attribution/loops/kernel_entry.h"
#include "attribution/program/own_code.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t most_kept = 1000;

using CallPlace = std::tuple<std::string, std::string, std::uint32_t>;  // function, file, line
using SumsByPlace = std::map<CallPlace, double>;

std::vector<CallerRow> caller_rows(const SumsByPlace& sums) {
  constexpr std::size_t most = 5;
  double all = 0;
  std::vector<CallerRow> rows;
  for (const auto& [place, ns] : sums) {
    rows.push_back({std::get<0>(place), std::get<1>(place), std::get<2>(place), ns});
    all += ns;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  rows.resize(std::min(rows.size(), most));
  for (CallerRow& row : rows) {
    row.share = all > 0 ? row.share / all : 0;
  }
  return rows;
}

}  // namespace

bool Callers::is_in_library(const Sample& sample, Moment moment) {
  const auto place = view_.spaces().find(moment, sample.ip);
  if (!place) {
    return false;
  }
  const auto [known, fresh] = library_code_.try_emplace(*place);
  if (fresh) {
    known->second = is_all_library(view_, moment, sample.ip);
  }
  return known->second;
}

void Callers::add(const profile::SampleRow& row) {
  if (!view_.knows(row.thread) || (row.stack.value == 0 && row.call_chain.value == 0) || !row.is_of_time()) {
    return;
  }
  const bool in_kernel = (row.flags & profile::sample_in_kernel) != 0;
  const std::uint64_t ip = in_kernel && row.ip != 0 ? row.ip - 1 : row.ip;
  Sample sample{row.thread, row.time_ns, ip, row.stack, row.call_chain, static_cast<double>(row.time_weight_ns()),
                in_kernel};
  sample.in_library = is_in_library(sample, view_.moment(row.thread, row.time_ns));
  if ((!in_kernel && !sample.in_library) || seen_++ % one_in_ != 0) {
    return;
  }
  kept_.push_back(sample);
  if (kept_.size() >= 2 * most_kept) {  // every other one, of what is to come, too
    for (std::size_t i = 0; i < most_kept; ++i) {
      kept_[i] = kept_[2 * i];
    }
    kept_.resize(most_kept);
    one_in_ *= 2;
  }
}

void Callers::want(StackTable& stacks) const {
  for (const Sample& sample : kept_) {
    stacks.want(sample.stack, view_.moment(sample.thread, sample.time_ns));
  }
}

Result<void> Callers::read_chains(const profile::ProfileReader& profile) {
  for (const Sample& sample : kept_) {
    if (sample.chain.value != 0) {
      chains_[sample.chain.value];
    }
  }
  return chains_.empty() ? Result<void>() : profile.for_each_call_chain([&](const profile::CallChainRow& row) {
    if (const auto wanted = chains_.find(row.id.value); wanted != chains_.end()) {
      wanted->second = row.addresses;
    }
  });
}

void Callers::fill(const StackTable& stacks, CodeTime& time) const {
  std::map<std::string, SumsByPlace> of_kernel;
  std::map<std::pair<std::string, std::string>, SumsByPlace> of_functions;  // function, module
  for (const Sample& sample : kept_) {
    const Moment moment = view_.moment(sample.thread, sample.time_ns);
    const auto chain = chains_.find(sample.chain.value);
    const std::span<const std::uint64_t> stack =
        chain != chains_.end() ? std::span<const std::uint64_t>(chain->second) : stacks.addresses(sample.stack);
    if (stack.empty()) {
      continue;
    }
    CodeTotal total{sample.thread, view_.spaces().find(moment, sample.ip), sample.ip, 1, sample.ns, 0};
    total.in_kernel = total.system_call = sample.in_kernel;
    total = code_totals({total}, view_).front();
    const OwnPlace own = own_place(view_, moment, sample.ip, stack);
    if (is_unknown(own.frame) || is_all_library(view_, moment, own.address)) {
      continue;
    }
    const CallPlace place{own.frame.function, own.frame.source.file, own.frame.source.line};
    if (sample.in_kernel) {
      of_kernel[kernel_entry(view_, total).name][place] += sample.ns;
    }
    if (total.place && sample.in_library) {
      const symbolizer::CodeLocation& code = view_.code().locate(*total.place);
      if (!code.frames.empty()) {
        of_functions[{code.frames.back().function, view_.spaces().files()[total.place->file].path}][place] += sample.ns;
      }
    }
  }
  for (KernelRow& row : time.kernel) {
    row.callers = caller_rows(of_kernel[row.name]);
  }
  for (FunctionRow& row : time.functions) {
    if (const auto found = of_functions.find({row.function, row.module}); found != of_functions.end()) {
      row.callers = caller_rows(found->second);
    }
  }
}

}  // namespace crosstalk::attribution
