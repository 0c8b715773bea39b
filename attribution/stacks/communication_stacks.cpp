// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/communication_stacks.h"

#include <utility>

namespace crosstalk::attribution {

double CommunicationStacks::gain_of(const Contribution& contribution, double cost_s) const {
  if (!gain_known(contribution.seen->true_sharing) || contribution.gain >= inputs_.expansion.gains.size()) {
    return 0;
  }
  const GainPart& part = inputs_.expansion.gains[contribution.gain];
  return cost_s * part.likely.value_or((part.low + part.high) / 2);  // as GainSums
}

void CommunicationStacks::read() {
  for (std::size_t i = 0; i < inputs_.located.size() && !inputs_.expansion.unknown; ++i) {
    const LocatedContribution& located = inputs_.located[i];
    const Contribution& contribution = inputs_.contributions[i];
    const AccessPoint& point = contribution.seen->consumer;
    const std::uint32_t producer = contribution.seen->producer.thread.value;
    if (!(located.cost_s > 0) || producer == point.thread.value || !inputs_.view.knows(point.thread)) {
      continue;
    }
    const Moment moment = inputs_.view.moment(point.thread, point.time_ns);
    const auto place = inputs_.view.spaces().find(moment, point.instruction);
    const std::uint32_t callers = inputs_.stacks.callers(point.stack);
    const Key key{leaf_of(point.thread.value, place, point.instruction), callers, producer, located.object,
                  contribution.seen->true_sharing};
    Cost& cost = costs_.try_emplace(key, Cost{0, 0, {callers, point.stack, moment}}).first->second;
    cost.cost_s += located.cost_s;
    cost.gain_s += gain_of(contribution, located.cost_s);
  }
  for (const auto& [key, cost] : costs_) {
    if (key.callers != StackTable::unknown && !StackTable::is_beginning(cost.callers.stack)) {
      lenders_.add(key.leaf, cost.callers, cost.cost_s);
    }
  }
}

void CommunicationStacks::put_part(const Key& key, const CallerStack* callers, CallersFrom from, const Cost& cost,
                                   double part) {
  CommunicationStack stack = row(key, from);
  stack.places.push_back(writer_.place_of(key.leaf));
  if (callers != nullptr) {
    writer_.append(*callers, stack.places);
  }
  stack.cost_s = cost.cost_s * part;
  stack.gain_s = cost.gain_s * part;
  rows_.push_back(std::move(stack));
}

void CommunicationStacks::put(const Key& key, const Cost& cost, bool lend) {
  if (key.callers != StackTable::unknown) {
    put_part(key, &cost.callers, CallersFrom::sample, cost, 1);
    return;
  }
  std::vector<Lenders::Loan> loans = lend ? lenders_.of(key.leaf) : std::vector<Lenders::Loan>{};
  loans = lend && loans.empty() ? of_samples_.of(key.leaf) : loans;
  double sum = 0;
  for (const Lenders::Loan& loan : loans) {
    sum += loan.weight;
  }
  for (const Lenders::Loan& loan : loans) {
    put_part(key, &loan.callers, CallersFrom::alike, cost, loan.weight / sum);
  }
  if (loans.empty()) {
    put_part(key, nullptr, CallersFrom::unknown, cost, 1);
  }
}

std::vector<CommunicationStack> CommunicationStacks::finish(bool lend, std::vector<std::string>& objects) {
  for (const auto& [key, cost] : costs_) {
    put(key, cost, lend);
  }
  std::map<std::string, std::uint32_t> names;  // in their order
  for (const CommunicationStack& row : rows_) {
    names[inputs_.objects[row.object].name] = 0;
  }
  for (auto& [name, index] : names) {
    index = static_cast<std::uint32_t>(objects.size());
    objects.push_back(name);
  }
  for (CommunicationStack& row : rows_) {
    row.object = names[inputs_.objects[row.object].name];
  }
  return std::move(rows_);
}

}  // namespace crosstalk::attribution
