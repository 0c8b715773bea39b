// SPDX-License-Identifier: Apache-2.0
// The purpose of a line that threads exchange: a remedy for a falsely shared counter makes no lock faster.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// The purpose of an access, by the names of the functions around it, its instruction and its loop.
enum class Purpose : std::uint8_t {
  data,
  counter,    // adds to a word that another thread adds to as well
  fetch_add,  // and uses the value that was there
  exchange,   // compares and exchanges, or exchanges: a lock, or a structure without one
  lock,       // a library's
  barrier,
  condition,  // condition variable, semaphore, futex wait
  reference_count,
  allocator,  // the heap's own bookkeeping
  runtime,    // other insides of a run-time library
  waiting,    // a loop that looks until another thread stores
};
inline constexpr std::size_t purposes = 11;

/// The purpose of a function of a run-time library or of the standard library, by its name; nullopt: it does not tell.
[[nodiscard]] std::optional<Purpose> purpose_of_function(std::string_view function);

/// The purpose of the access at `instruction`. `stack` as for own_place().
[[nodiscard]] Purpose purpose_of(const ProgramView& view, Moment moment, std::uint64_t instruction,
                                 std::span<const std::uint64_t> stack);

/// The name in the JSON report.
[[nodiscard]] const char* sharing_kind_name(SharingKind kind);

/// Cost (or, if no cost is known, detections) by purpose.
struct PurposeSums {
  std::array<double, purposes> true_sharing{}, false_sharing{};
  void add(Purpose purpose, bool is_true, double amount) {
    (is_true ? true_sharing : false_sharing).at(static_cast<std::size_t>(purpose)) += amount;
  }
  void add(const PurposeSums& other);
  [[nodiscard]] double sum() const;
};

/// `indices`: two threads each store a word that the other loads (see object_rows).
[[nodiscard]] KindOf kind_of(const PurposeSums& sums, bool indices);

}  // namespace crosstalk::attribution
