// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/sampled_uses.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "attribution/timeline/line_bytes.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

/// So often must another thread come after one in an object: a thread that fills what others then use comes once.
constexpr std::uint64_t least_turns = 8;

struct ObjectUses {
  std::map<std::uint32_t, std::uint64_t> time_ns;               // by thread, on all of its lines
  std::vector<std::pair<std::uint64_t, std::uint32_t>> shared;  // of lines that are: time and thread
};

std::uint64_t line_number(std::uint64_t address) { return address / LineBytes::line_bytes; }

}  // namespace

bool LineUses::Use::same_line(const Use& other) const {
  return process == other.process && line_number(address) == line_number(other.address);
}

void LineUses::add(const profile::SampleRow& sample) {
  if (sample.address == 0 || sample.access == AccessKind::none || sample.thread.value >= threads_.size()) {
    return;
  }
  const std::uint64_t ip = sample.access_ip != 0 ? sample.access_ip : sample.ip;
  const bool stores = crosstalk::stores(sample.access) || code_.stores_back(sample.thread, sample.time_ns, ip);
  uses_.push_back({sample.address, sample.time_ns, sample.cpu_ns, sample.thread.value,
                   threads_[sample.thread.value].process.value, stores});
}

std::vector<SampledUse> LineUses::in_turn(const NameAt& name_at) {
  std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
    return std::tuple(a.process, line_number(a.address), a.time_ns) <
           std::tuple(b.process, line_number(b.address), b.time_ns);
  });
  std::map<std::string, ObjectUses> by_object;
  for (auto begin = uses_.begin(); begin != uses_.end();) {
    const auto end = std::find_if(begin, uses_.end(), [&](const Use& use) { return !use.same_line(*begin); });
    const bool stored = std::any_of(begin, end, [](const Use& use) { return use.stores; });
    const bool shared = std::any_of(begin, end, [&](const Use& use) { return use.thread != begin->thread; });
    ObjectUses& object = by_object[name_at(ThreadId{begin->thread}, begin->time_ns, begin->address)];
    for (; begin != end; ++begin) {
      object.time_ns[begin->thread] += begin->cpu_ns;
      if (stored && shared) {
        object.shared.emplace_back(begin->time_ns, begin->thread);
      }
    }
  }
  std::vector<SampledUse> result;
  for (auto& [name, object] : by_object) {
    std::sort(object.shared.begin(), object.shared.end());
    std::uint64_t turns = 0;
    SampledUse found{name, {}, 0, object.shared.size()};
    for (std::size_t i = 0; i < object.shared.size(); ++i) {
      found.threads.insert(object.shared[i].second);
      turns += i > 0 && object.shared[i].second != object.shared[i - 1].second ? 1 : 0;
    }
    if (turns >= least_turns) {
      for (const std::uint32_t thread : found.threads) {
        found.time_s += static_cast<double>(object.time_ns[thread]) / ns_per_s;
      }
      result.push_back(std::move(found));
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const SampledUse& a, const SampledUse& b) { return a.time_s > b.time_s; });
  return result;
}

}  // namespace crosstalk::attribution
