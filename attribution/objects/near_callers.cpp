// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/near_callers.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "attribution/program/own_code.h"

namespace crosstalk::attribution {

bool NearCallers::all_library(Moment moment, std::uint64_t address) {
  const auto place = view_.spaces().find(moment, address);
  if (!place) {
    return false;
  }
  const auto [known, fresh] = all_library_.try_emplace(*place);
  if (fresh) {
    known->second = is_all_library(view_, moment, address);
  }
  return known->second;
}

const std::vector<MappedModule>& NearCallers::mapped(Moment moment) {
  Mapped& now = mapped_[moment.process];
  if (now.to_ns == 0 || moment.time_ns < now.from_ns || moment.time_ns >= now.to_ns) {
    now = {0, std::numeric_limits<std::uint64_t>::max(), view_.spaces().mapped(moment)};
    for (const MappedModule& module : view_.spaces().all(moment.process)) {
      for (const std::uint64_t change_ns : {module.loaded_ns, module.unloaded_ns}) {
        if (change_ns <= moment.time_ns) {
          now.from_ns = std::max(now.from_ns, change_ns);
        } else {
          now.to_ns = std::min(now.to_ns, change_ns);
        }
      }
    }
  }
  return now.modules;
}

StackId NearCallers::of(const profile::TrapRow& trap) {
  const Moment moment = view_.moment(trap.thread, trap.time_ns);
  if (trap.stack.value != 0 || !trap.frame || !all_library(moment, trap.ip - 1)) {
    return {};
  }
  profile::StackRow words;
  words.registers = trap.registers;
  words.bytes.resize(sizeof *trap.frame);
  std::memcpy(words.bytes.data(), trap.frame->data(), words.bytes.size());
  std::vector<std::uint64_t> addresses;
  for (const symbolizer::StackFrame& frame : view_.code().unwind(words, mapped(moment))) {
    addresses.push_back(frame.address);
    // A caller's address is the one after its call.
    if (addresses.size() > 1 && !all_library(moment, frame.address - 1)) {
      return view_.spaces().find(moment, frame.address - 1) ? stacks_.enter(std::move(addresses)) : StackId{};
    }
  }
  return {};
}

}  // namespace crosstalk::attribution
