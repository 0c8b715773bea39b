// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/code_sites.h"

#include "attribution/program/own_code.h"

namespace crosstalk::attribution {
namespace {

constexpr std::uint32_t no_file = UINT32_MAX;

}  // namespace

SiteTable::Instruction& SiteTable::instruction_of(Moment moment, const AccessPoint& point) {
  const auto place = view_.spaces().find(moment, point.instruction);
  const Key key =
      place ? Key{no_file, place->file, place->address} : Key{moment.process.value, no_file, point.instruction};
  const auto [known, fresh] = instructions_.try_emplace(key);
  if (fresh) {
    if (is_all_library(view_, moment, point.instruction)) {
      const std::vector<symbolizer::Frame> frames = view_.frames(moment, point.instruction);
      known->second.function = frames.empty() ? std::string() : frames.back().function;
    } else {
      known->second.spot = look_up(moment, point, {});
    }
  }
  return known->second;
}

void SiteTable::learn(const AccessPoint& point) {
  if (stacks_.addresses(point.stack).empty()) {
    return;
  }
  const Moment moment = view_.moment(point.thread, point.time_ns);
  Instruction& instruction = instruction_of(moment, point);
  if (!instruction.spot) {
    const Spot spot = with_stack(instruction, moment, point);
    instruction.by_line[point.line].spots.push_back(spot);
    by_function_[{instruction.function, point.line}].spots.push_back(spot);
    instruction.all.add(spot);
    instruction.by_thread[point.thread].add(spot);
  }
}

Spot SiteTable::of(const AccessPoint& point) {
  const Moment moment = view_.moment(point.thread, point.time_ns);
  Instruction& instruction = instruction_of(moment, point);
  if (instruction.spot) {
    return *instruction.spot;
  }
  if (stacks_.addresses(point.stack).empty()) {
    if (Seen* const others = seen_with_stack(instruction, point.line); others != nullptr) {
      return others->spots[others->taken++ % others->spots.size()];
    }
    if (const auto one = agreed(instruction, point.thread)) {
      return *one;
    }
  }
  return with_stack(instruction, moment, point);
}

SiteTable::Seen* SiteTable::seen_with_stack(Instruction& instruction, std::uint64_t line) {
  if (const auto here = instruction.by_line.find(line); here != instruction.by_line.end()) {
    return &here->second;
  }
  const auto near = by_function_.find({instruction.function, line});
  return instruction.function.empty() || near == by_function_.end() ? nullptr : &near->second;
}

std::optional<Spot> SiteTable::agreed(const Instruction& instruction, ThreadId thread) {
  const auto own = instruction.by_thread.find(thread);
  return own != instruction.by_thread.end() ? own->second.one() : instruction.all.one();
}

Spot SiteTable::with_stack(Instruction& instruction, Moment moment, const AccessPoint& point) {
  const auto [known, fresh] = instruction.by_callers.try_emplace(stacks_.callers(point.stack));
  if (fresh) {
    known->second = look_up(moment, point, stacks_.addresses(point.stack));
  }
  return known->second;
}

Spot SiteTable::look_up(Moment moment, const AccessPoint& point, std::span<const std::uint64_t> stack) {
  const OwnPlace own = own_place(view_, moment, point.instruction, stack);
  const CodeSite site{own.frame.source.file, own.frame.function, own.frame.source.line};
  const auto [id, fresh] = ids_.try_emplace(site, static_cast<std::uint32_t>(sites_.size()));
  if (fresh) {
    sites_.push_back(site);
    through_.push_back(own.through);
    callers_known_.push_back(!is_all_library(view_, moment, own.address));
    const auto place = view_.spaces().find(moment, own.address);
    modules_.push_back(place ? view_.spaces().files()[place->file].path : std::string());
  }
  return {id->second, purpose_of(view_, moment, point.instruction, stack)};
}

std::vector<std::uint32_t> SiteTable::ranks() const {
  std::vector<std::uint32_t> result(sites_.size());
  std::uint32_t rank = 0;
  for (const auto& [site, id] : ids_) {
    result[id] = rank++;
  }
  return result;
}

}  // namespace crosstalk::attribution
