// SPDX-License-Identifier: Apache-2.0
// Chains of calls, each written once: a loop's samples share a few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "profile/writer.h"

namespace crosstalk::perf_import {

class CallChains {
 public:
  /// The id of a chain that is written to `writer`, now or before; 0 for no calls.
  [[nodiscard]] Result<profile::CallChainId> put(const std::vector<std::uint64_t>& calls,
                                                 profile::ProfileWriter& writer);

 private:
  std::unordered_map<std::string, profile::CallChainId> known_;  // by their bytes
  std::size_t known_bytes_ = 0;
  std::uint32_t written_ = 0;
};

}  // namespace crosstalk::perf_import
