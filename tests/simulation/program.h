// SPDX-License-Identifier: Apache-2.0
// The accesses of a simulated program's threads, visit by visit.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simulation/scenario.h"
#include "tests/simulation/shared_line.h"

namespace crosstalk::simulation {

/// SplitMix64 (Steele, Lea, Flood 2014): a fifth of a simulation's time went into a Mersenne twister.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};
/// Evenly from [0, 1).
[[nodiscard]] inline double unit(Random& random) {
  constexpr double two_to_minus_53 = 1.0 / 9007199254740992.0;
  return static_cast<double>(random() >> 11U) * two_to_minus_53;
}
/// Evenly from 0 .. below - 1.
[[nodiscard]] inline std::uint32_t below(Random& random, std::uint32_t below) {
  return static_cast<std::uint32_t>(unit(random) * below);
}

class Program {
 public:
  explicit Program(const Scenario& scenario);
  [[nodiscard]] std::uint32_t lines() const { return lines_; }
  /// Lines that several threads access come first.
  [[nodiscard]] std::uint32_t shared_lines() const { return first_private_; }
  /// Is the line one thread's alone?
  [[nodiscard]] bool is_private(std::uint32_t line) const { return line >= first_private_; }
  /// Appends the accesses of the thread's next visit.
  void visit(std::uint32_t thread, Random& random, std::vector<Access>& out) const;

 private:
  [[nodiscard]] std::uint32_t line_of(const Part& part, std::uint32_t first, std::uint32_t owner, Random& random) const;

  const Scenario& scenario_;
  std::vector<std::uint32_t> first_line_;  // by part
  std::uint32_t lines_ = 0, first_private_ = 0;
};

}  // namespace crosstalk::simulation
