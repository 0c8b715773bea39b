// SPDX-License-Identifier: Apache-2.0
// What depends on a place in the code alone: samples fall on the same few places again and again, so it is worked out
// once for each.
#pragma once

#include <unordered_map>

#include "attribution/objects/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

template <class Value>
class ByPlace {
 public:
  /// Of the instruction that `sample` interrupted; `make` gives it for a ModulePlace. An empty one for code that lies
  /// in no file. Stays where it is.
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
