// SPDX-License-Identifier: Apache-2.0
// Callers for samples without a stack. Stacks are copied from some samples only, drawn by time: they represent the
// callers of the others at the same place.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// The place of a stack's innermost code.
struct LeafPlace {
  std::uint32_t thread = 0;
  std::uint32_t file = 0;     // + 1; 0: in none
  std::uint64_t address = 0;  // the file's own, or at run time
  auto operator<=>(const LeafPlace&) const = default;
};

/// All of a stack but its innermost code.
struct CallerStack {
  std::uint32_t number = 0;  // StackTable::callers()
  StackId stack;             // one that has these callers
  Moment moment;
};

class Lenders {
 public:
  /// `view` must outlive this.
  explicit Lenders(const ProgramView& view);
  /// A stack that was seen. Weights need a common unit only; 0 counts as 1.
  void add(const LeafPlace& leaf, const CallerStack& callers, double weight);

  struct Loan {
    CallerStack callers;
    double weight = 0;
  };
  /// The callers that `leaf` may have, by their number: those seen in its thread at its address; else in its thread in
  /// its function; else in threads of its process with its start routine and name, in its function; else those of all
  /// stacks of its process in its function, if they are the same. Empty: none is known.
  [[nodiscard]] std::vector<Loan> of(const LeafPlace& leaf) const;

 private:
  enum class Level : std::uint8_t { address, function, kind, process };
  struct Key {
    Level level;
    std::uint32_t owner, file;  // owner: a thread, the first one of its kind, or a process
    std::uint64_t code;         // address, or where the function begins
    auto operator<=>(const Key&) const = default;
  };
  using Loans = std::map<std::uint32_t, Loan>;  // by number
  /// The keys of `leaf`, the closest first.
  [[nodiscard]] std::vector<Key> keys_of(const LeafPlace& leaf) const;

  const ProgramView& view_;
  std::vector<std::uint32_t> kinds_;  // by thread: the first one with its start routine and name
  std::map<Key, Loans> loans_;
};

/// A sum of weights as a whole number, at most 2^62: a damaged profile's may be any.
[[nodiscard]] std::uint64_t whole(double weight);

/// `total` in parts proportional to `weights`, which add up to it. Rounds down, and gives the rest to those that lost
/// most. Empty for no weights.
[[nodiscard]] std::vector<std::uint64_t> split(std::uint64_t total, const std::vector<double>& weights);

}  // namespace crosstalk::attribution
