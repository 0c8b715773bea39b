// SPDX-License-Identifier: Apache-2.0
// Cost of communication by call stack.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attribution/model/stack_model.h"
#include "attribution/stacks/lenders.h"
#include "attribution/stacks/stack_inputs.h"
#include "attribution/stacks/stack_writer.h"

namespace crosstalk::attribution {

/// Cost of communication by stack.
class CommunicationStacks {
 public:
  CommunicationStacks(const StackInputs& inputs, StackWriter& writer, const Lenders& of_samples)
      : inputs_(inputs), writer_(writer), lenders_(inputs.view), of_samples_(of_samples) {}
  void read();
  [[nodiscard]] std::vector<CommunicationStack> finish(bool lend, std::vector<std::string>& objects);

 private:
  struct Key {
    LeafPlace leaf;
    std::uint32_t callers = StackTable::unknown, producer = 0, object = 0;
    bool true_sharing = false;
    auto operator<=>(const Key&) const = default;
  };
  struct Cost {
    double cost_s = 0, gain_s = 0;
    CallerStack callers;
  };
  [[nodiscard]] bool gain_known(bool true_sharing) const {
    const Communication& all = inputs_.communication;
    return !inputs_.expansion.gains.empty() && (true_sharing ? all.true_sharing : all.false_sharing).gain_s.has_value();
  }
  [[nodiscard]] double gain_of(const Contribution& contribution, double cost_s) const;
  [[nodiscard]] CommunicationStack row(const Key& key, CallersFrom from) const {
    return {key.leaf.thread, key.producer, {}, from, key.object, key.true_sharing, 0, 0, gain_known(key.true_sharing)};
  }
  void put(const Key& key, const Cost& cost, bool lend);
  void put_part(const Key& key, const CallerStack* callers, CallersFrom from, const Cost& cost, double part);

  const StackInputs& inputs_;
  StackWriter& writer_;
  Lenders lenders_;
  const Lenders& of_samples_;
  std::map<Key, Cost> costs_;
  std::vector<CommunicationStack> rows_;
};

}  // namespace crosstalk::attribution
