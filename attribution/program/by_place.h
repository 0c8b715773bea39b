// SPDX-License-Identifier: Apache-2.0
// Caches values that depend on a place in the code alone: samples hit the same few places again and again.
#pragma once

#include <unordered_map>

#include "attribution/program/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

template <class Value>
class ByPlace {
 public:
  /// The value for the instruction that `sample` interrupted; `make` computes it from a ModulePlace. An empty one for
  /// code without a file. The reference stays valid.
  template <class Make>
  [[nodiscard]] const Value& at(const ProgramView& view, const profile::SampleRow& sample, Make make) {
    static const Value nowhere;
    const auto place = view.spaces().find(view.moment(sample.thread, sample.time_ns), sample.ip);
    return place ? of(*place, make) : nowhere;
  }
  template <class Make>
  [[nodiscard]] const Value& of(ModulePlace place, Make make) {
    const auto known = values_.find(place);
    return known != values_.end() ? known->second : values_.emplace(place, make(place)).first->second;
  }

 private:
  std::unordered_map<ModulePlace, Value, ModulePlaceHash> values_;
};

}  // namespace crosstalk::attribution
