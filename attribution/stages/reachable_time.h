// SPDX-License-Identifier: Apache-2.0
// Sums the time in which threads may have communicated with others: in user mode, while another thread lived that has
// memory in common with them. Of it, the time of samples that could be neither watched nor probed is out of reach.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "profile/model.h"

namespace crosstalk::attribution {

class ReachableTime {
 public:
  /// `common_memory`: the processes share some, so that threads of any two may communicate. `threads` must outlive
  /// this.
  ReachableTime(std::span<const profile::ThreadRow> threads, bool common_memory);
  /// Takes every sample.
  void add(const profile::SampleRow& sample);

  [[nodiscard]] double reachable_s() const;
  /// An upper limit, with 97.5 % confidence.
  [[nodiscard]] double out_of_reach_s() const;
  /// Several threads with common memory lived at some time.
  [[nodiscard]] bool any_company() const;

 private:
  using Living = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // from a time on, so many threads; by time
  [[nodiscard]] std::uint32_t group_of(std::size_t thread) const;
  [[nodiscard]] bool in_company(const profile::SampleRow& sample) const;

  std::span<const profile::ThreadRow> threads_;
  bool common_memory_;
  std::map<std::uint32_t, Living> groups_;  // by process, or one for all
  std::uint64_t samples_ = 0;
  double all_ns_ = 0, reachable_ns_ = 0, out_of_reach_ns_ = 0, out_of_reach_ns2_ = 0;
};

}  // namespace crosstalk::attribution
