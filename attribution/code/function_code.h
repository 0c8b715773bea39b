// SPDX-License-Identifier: Apache-2.0
// Time and communication by instruction, beside the machine code of functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/code/code_choice.h"
#include "attribution/estimate/evidence.h"
#include "attribution/model/model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Call add() for each sample, then list(). A clock's interrupt arrives after the instruction that took the time: if
/// that was a memory access, it gets the sample's time, otherwise the instruction that was to come next does.
class InstructionFigures {
 public:
  explicit InstructionFigures(const ProgramView& view) : view_(view) {}
  /// The sample must have all parts: `from` tells which instruction it belongs to.
  void add(const profile::SampleRow& sample);

  /// The requested functions, those with the most time or cost first. `uncovered_s`: CPU time that no sample
  /// represents. Fails if no function matches, or its code cannot be read.
  [[nodiscard]] Result<std::vector<FunctionCode>> list(const CodeWanted& wanted,
                                                       std::span<const Contribution> contributions,
                                                       const Expansion& expansion, double uncovered_s);

 private:
  struct Function {
    ModulePlace begin;
    CodeCandidate facts;
    double ns = 0, cost_s = 0;
    std::map<std::uint64_t, double> times;  // by address, ns
  };
  struct Elsewhere {
    std::uint64_t time_ns = 0;  // of the first sample
    double ns = 0;
  };
  [[nodiscard]] std::optional<ModulePlace> place_of(const AccessPoint& point) const;
  Function& function_of(ModulePlace place);
  Function& function_without_file(Moment moment, std::uint64_t address);
  void gather_functions();
  void charge(std::span<const Contribution> contributions, const Expansion& expansion);
  /// By the greater of the time in a function and the cost of communication at its ends: neither much time nor a
  /// producer of costly lines comes behind a function with a trace of the other.
  [[nodiscard]] std::vector<Function*> by_weight();
  [[nodiscard]] FunctionCode code_of(const Function& function, const symbolizer::CodeListing& listing,
                                     double whole_ns) const;
  /// The code of the functions with the requested line; removes the others from `chosen`.
  [[nodiscard]] Result<std::vector<FunctionCode>> listed(std::vector<Function*>& chosen, const CodeWanted& wanted,
                                                         double whole_ns) const;
  void fill_amounts(const std::vector<Function*>& chosen, std::span<const Contribution> contributions,
                    const Expansion& expansion, std::vector<FunctionCode>& code);

  const ProgramView& view_;
  double ns_ = 0;
  std::unordered_map<ModulePlace, double, ModulePlaceHash> times_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Elsewhere> elsewhere_;  // by process and run-time address
  std::map<std::pair<std::uint32_t, std::uint64_t>, Function> functions_;   // by file and begin
  std::map<std::string, Function> without_file_;                            // by name
  std::unordered_map<ModulePlace, Function*, ModulePlaceHash> function_of_;
};

}  // namespace crosstalk::attribution
