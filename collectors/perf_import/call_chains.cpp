// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/call_chains.h"

namespace crosstalk::perf_import {

Result<profile::CallChainId> CallChains::put(const std::vector<std::uint64_t>& calls, profile::ProfileWriter& writer) {
  // If hardly any two samples share a chain, remembering all would take as much memory as the recording.
  constexpr std::size_t most_bytes = std::size_t{64} << 20U;
  if (calls.empty()) {
    return profile::CallChainId{};
  }
  const std::string key(reinterpret_cast<const char*>(calls.data()), calls.size() * sizeof calls.front());
  if (const auto found = known_.find(key); found != known_.end()) {
    return found->second;
  }
  const profile::CallChainId id{++written_};
  if (Result<void> put = writer.put(profile::CallChainRow{id, calls}); !put) {
    return tl::unexpected<Error>(put.error());
  }
  if (known_bytes_ + key.size() > most_bytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += key.size();
  known_.emplace(key, id);
  return id;
}

}  // namespace crosstalk::perf_import
