// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/sampled_uses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "attribution/timeline/line_bytes.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

/// Turns between threads that an object needs: a thread that only fills data for others comes once.
constexpr std::uint64_t least_turns = 8;

struct ObjectUses {
  std::map<std::uint32_t, std::uint64_t> time_ns;               // by thread, on all of its lines
  std::vector<std::pair<std::uint64_t, std::uint32_t>> shared;  // of lines that are: time and thread
};

std::uint64_t line_number(std::uint64_t address) { return address / LineBytes::line_bytes; }

/// nullopt if the threads did not come back after each other.
std::optional<SampledUse> use_of(const std::string& name, ObjectUses& object) {
  std::sort(object.shared.begin(), object.shared.end());
  std::uint64_t turns = 0;
  SampledUse found{name, {}, 0, object.shared.size()};
  for (std::size_t i = 0; i < object.shared.size(); ++i) {
    found.threads.insert(object.shared[i].second);
    turns += i > 0 && object.shared[i].second != object.shared[i - 1].second ? 1 : 0;
  }
  if (turns < least_turns) {
    return std::nullopt;
  }
  for (const std::uint32_t thread : found.threads) {
    found.time_s += static_cast<double>(object.time_ns[thread]) / ns_per_s;
  }
  return found;
}

}  // namespace

bool LineUses::Use::same_line(const Use& other) const {
  return process == other.process && line_number(address) == line_number(other.address);
}

void LineUses::add(const profile::SampleRow& sample) {
  if (sample.address == 0 || sample.access == AccessKind::none || sample.thread.value >= threads_.size()) {
    return;
  }
  uses_.push_back({sample.address, sample.time_ns, sample.cpu_ns, sample.thread.value,
                   threads_[sample.thread.value].process.value, code_.stores(sample)});
}

/// Groups the uses by line.
std::vector<LineUses::Line> LineUses::lines() {
  std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
    return std::tuple(a.process, line_number(a.address), a.time_ns) <
           std::tuple(b.process, line_number(b.address), b.time_ns);
  });
  std::vector<Line> lines;
  for (auto begin = uses_.cbegin(); begin != uses_.cend();) {
    const auto end = std::find_if(begin, uses_.cend(), [&](const Use& use) { return !use.same_line(*begin); });
    const bool stored = std::any_of(begin, end, [](const Use& use) { return use.stores; });
    const bool by_several = std::any_of(begin, end, [&](const Use& use) { return use.thread != begin->thread; });
    lines.push_back({{begin, end}, stored && by_several});
    begin = end;
  }
  return lines;
}

std::vector<SampledUse> LineUses::in_turn(const NameAt& name_at) {
  const std::vector<Line> all = lines();
  if (std::none_of(all.begin(), all.end(), [](const Line& line) { return line.shared; })) {
    return {};
  }
  std::map<std::string, ObjectUses> by_object;
  for (const Line& line : all) {
    const Use& first = line.uses.front();
    ObjectUses& object = by_object[name_at(ThreadId{first.thread}, first.time_ns, first.address)];
    for (const Use& use : line.uses) {
      object.time_ns[use.thread] += use.cpu_ns;
      if (line.shared) {
        object.shared.emplace_back(use.time_ns, use.thread);
      }
    }
  }
  std::vector<SampledUse> result;
  for (auto& [name, object] : by_object) {
    if (auto found = use_of(name, object)) {
      result.push_back(std::move(*found));
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const SampledUse& a, const SampledUse& b) { return a.time_s > b.time_s; });
  return result;
}

}  // namespace crosstalk::attribution
