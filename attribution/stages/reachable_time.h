// SPDX-License-Identifier: Apache-2.0
// Limits the time in which threads may have communicated with others: in user mode, while another thread lived that has
// memory in common with them. Of it, the time of samples that could be neither watched nor probed is out of reach.
//
// Threads of several processes count as having memory in common if a sample lay in memory that processes can share. If
// none did, the number of samples that lay elsewhere limits how much of their time such memory may have taken.
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

  /// An upper limit, with 97.5 % confidence.
  [[nodiscard]] double reachable_s() const;
  /// The same of time out of reach. Both are 0 only if no two threads lived at the same time, or without any sample.
  [[nodiscard]] double out_of_reach_s() const;
  /// The time of as many samples as may go without one, with 97.5 % confidence.
  [[nodiscard]] double least_s() const;
  /// Several threads lived at some time.
  [[nodiscard]] bool any_company() const;
  /// A sample showed a thread in user mode while another one with memory in common lived.
  [[nodiscard]] bool met() const { return reachable_.ns > 0; }

 private:
  using Living = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // from a time on, so many threads; by time
  /// Time of samples.
  struct Sum {
    double ns = 0, ns2 = 0;
    void add(double more_ns) {
      ns += more_ns;
      ns2 += more_ns * more_ns;
    }
  };
  [[nodiscard]] std::uint32_t group_of(std::size_t thread) const;
  [[nodiscard]] double one_sample_ns() const;
  [[nodiscard]] double strange_most_ns() const;

  std::span<const profile::ThreadRow> threads_;
  bool common_memory_;
  std::map<std::uint32_t, Living> groups_;  // by process, or one for all
  Living everyone_;
  std::uint64_t samples_ = 0;
  double all_ns_ = 0;
  Sum reachable_, out_of_reach_, beyond_;  // beyond: the rest of all time
  // The part of `beyond_` in user mode, while all other living threads were in other processes.
  double strange_ns_ = 0;
  std::uint64_t elsewhere_ = 0;  // its samples whose address is known
};

}  // namespace crosstalk::attribution
