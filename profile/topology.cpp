// SPDX-License-Identifier: Apache-2.0
#include "profile/topology.h"

#include <algorithm>
#include <utility>

#include "base/number.h"

namespace crosstalk::profile {
namespace {

std::optional<std::int32_t> number(std::string_view& text) {
  const auto value = take_leading<std::int32_t>(text);
  text.remove_prefix(value && text.starts_with(' ') ? 1 : 0);
  return value;
}

std::optional<CpuPlace> place(std::string_view text) {
  std::int32_t values[6];
  for (std::int32_t& value : values) {
    const auto read = number(text);
    if (!read || *read < -1) {
      return std::nullopt;
    }
    value = *read;
  }
  if (!text.empty() || values[0] < 0) {
    return std::nullopt;
  }
  return CpuPlace{static_cast<std::uint32_t>(values[0]), values[1], values[2], values[3], values[4], values[5]};
}

bool both(std::int32_t a, std::int32_t b) { return a >= 0 && a == b; }

}  // namespace

Topology::Topology(std::vector<CpuPlace> cpus) : cpus_(std::move(cpus)) {
  std::sort(cpus_.begin(), cpus_.end(), [](const CpuPlace& a, const CpuPlace& b) { return a.cpu < b.cpu; });
}

std::optional<Topology> Topology::parse(std::string_view text) {
  std::vector<CpuPlace> cpus;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const auto one = place(text.substr(0, end));
    if (!one) {
      return std::nullopt;
    }
    cpus.push_back(*one);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return Topology(std::move(cpus));
}

std::string Topology::text() const {
  std::string text;
  for (const CpuPlace& cpu : cpus_) {
    text += (text.empty() ? "" : ";") + std::to_string(cpu.cpu);
    for (const std::int32_t value : {cpu.core, cpu.package, cpu.l2, cpu.l3, cpu.node}) {
      text += " " + std::to_string(value);
    }
  }
  return text;
}

const CpuPlace* Topology::find(std::uint32_t cpu) const {
  const auto found = std::lower_bound(cpus_.begin(), cpus_.end(), cpu,
                                      [](const CpuPlace& place, std::uint32_t wanted) { return place.cpu < wanted; });
  return found != cpus_.end() && found->cpu == cpu ? &*found : nullptr;
}

Nearness Topology::between(std::uint32_t a, std::uint32_t b) const {
  if (a == b) {
    return Nearness::same_cpu;
  }
  const CpuPlace* one = find(a);
  const CpuPlace* other = find(b);
  if (one == nullptr || other == nullptr || one->package < 0 || other->package < 0) {
    return Nearness::unknown;
  }
  if (one->package != other->package) {
    return Nearness::other_package;
  }
  if (both(one->core, other->core)) {
    return Nearness::same_core;
  }
  return both(one->l2, other->l2)   ? Nearness::same_l2
         : both(one->l3, other->l3) ? Nearness::same_l3
                                    : Nearness::same_package;
}

}  // namespace crosstalk::profile
