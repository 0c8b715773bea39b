// SPDX-License-Identifier: Apache-2.0
// Groups threads, or the processors that they ran on. Hundreds of threads are easier to read by their roles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "base/result.h"

namespace crosstalk::attribution {

enum class GroupBy : std::uint8_t { name, process, start_routine, core, socket };

struct Group {
  std::string name;
  std::vector<std::uint32_t> members;  // indices of threads; with core and socket, numbers of processors
  std::optional<double> cpu_s;
  std::uint64_t samples = 0;
  std::optional<double> kernel_share;     // of the samples; none: they stand for no time
  std::optional<double> communication_s;  // cost of communicating accesses, as consumer
};

struct Grouping {
  GroupBy by = GroupBy::name;
  std::vector<Group> groups;  // in the order of their first members
  /// By index of group. Equal producer and consumer: between members of that group. Groups by core and socket have no
  /// invalidations, because those are not known by processor.
  Matrix cells, invalidations;
  std::string note = {};  // a caveat for readers, a sentence; empty: none
  [[nodiscard]] bool of_processors() const { return by == GroupBy::core || by == GroupBy::socket; }
};

/// Fails if the profile lacks the data to group by.
[[nodiscard]] Result<Grouping> group(const Analysis& analysis, GroupBy by);

/// The common name of threads that differ only in a number at the end: "worker-12" -> "worker-*". Does not change a
/// name without such a number, or one that is only a number.
[[nodiscard]] std::string common_name(const std::string& thread_name);

/// The sum of two amounts. Adds intervals end by end, which makes them wider than necessary.
[[nodiscard]] Amount sum_amounts(const Amount& a, const Amount& b);

}  // namespace crosstalk::attribution
