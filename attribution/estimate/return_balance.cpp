// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/return_balance.h"

#include <cmath>

#include "attribution/estimate/cost_attribution.h"
#include "attribution/timeline/ownership_timeline.h"

namespace crosstalk::attribution {

void ReturnBalance::add(const Evidence& evidence, double expansion) {
  const auto own = own_return(evidence);
  if (!is_count(evidence.unit) || evidence.watch == nullptr || own == evidence.accesses.end()) {
    return;
  }
  const double weight = evidence.weight * expansion;
  Weight& of_both = returns_[sampled_access(*evidence.watch).instruction][own->instruction];
  of_both.sum += weight;
  of_both.squares += weight * weight;
}

/// Returns to an instruction that is never sampled say nothing about the others: it may be one of them, by an address
/// inside it.
void ReturnBalance::finish() {
  constexpr double deviations = 3;
  struct Balance {
    double samples = 0, returns = 0;
    double squares = 0;  // of the weights that are in one of them only
  };
  std::map<std::uint64_t, Balance> balances;
  for (const auto& [sampled, returns] : returns_) {
    for (const auto& [returned, weight] : returns) {
      if (returns_.contains(returned)) {
        balances[sampled].samples += weight.sum;
        balances[returned].returns += weight.sum;
        balances[sampled].squares += sampled != returned ? weight.squares : 0;
        balances[returned].squares += sampled != returned ? weight.squares : 0;
      }
    }
  }
  for (const auto& [instruction, balance] : balances) {
    if (balance.samples - balance.returns > deviations * std::sqrt(balance.squares)) {
      parts_[instruction] = balance.returns / balance.samples;
    }
  }
}

double ReturnBalance::part(const Evidence& evidence) const {
  if (!is_count(evidence.unit) || evidence.watch == nullptr) {
    return 1;
  }
  const auto found = parts_.find(sampled_access(*evidence.watch).instruction);
  return found != parts_.end() ? found->second : 1;
}

}  // namespace crosstalk::attribution
