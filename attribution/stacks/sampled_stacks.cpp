// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/sampled_stacks.h"

namespace crosstalk::attribution {

void SampledStacks::add(const profile::SampleRow& sample, std::uint64_t weight) {
  if (!view_.knows(sample.thread) || (sample.stack.value == 0 && sample.call_chain.value == 0)) {
    return;
  }
  const bool in_kernel = (sample.flags & profile::sample_in_kernel) != 0;
  const std::uint64_t ip = in_kernel && sample.ip != 0 ? sample.ip - 1 : sample.ip;
  samples_.push_back({sample.thread, sample.stack, sample.call_chain, in_kernel, sample.time_ns, ip, weight});
}

void SampledStacks::want(StackTable& stacks) const {
  for (const Sample& sample : samples_) {
    stacks.want(sample.stack, view_.moment(sample.thread, sample.time_ns));
  }
}

Result<void> SampledStacks::read_chains(const profile::ProfileReader& profile, StackTable& stacks) {
  std::unordered_map<profile::CallChainId, StackId> wanted;
  for (const Sample& sample : samples_) {
    if (sample.stack.value == 0) {
      wanted.try_emplace(sample.chain);
    }
  }
  if (wanted.empty()) {
    return {};
  }
  auto read = profile.for_each_call_chain([&](const profile::CallChainRow& row) {
    if (const auto chain = wanted.find(row.id); chain != wanted.end() && !row.addresses.empty()) {
      chain->second = stacks.enter(row.addresses);
    }
  });
  for (Sample& sample : samples_) {
    sample.stack = sample.stack.value == 0 ? wanted[sample.chain] : sample.stack;
  }
  return read;
}

}  // namespace crosstalk::attribution
