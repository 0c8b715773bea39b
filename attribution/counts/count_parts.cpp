// SPDX-License-Identifier: Apache-2.0
// Divides a group's communications by lines, all of which are exchanged equally often.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "attribution/counts/communication_counts.h"

namespace crosstalk::attribution {
namespace {

constexpr double prior_watches = 4;  // half of them of each outcome

}  // namespace

std::map<std::uint64_t, CountedLine> counted_lines(const ExchangeGroup& group) {
  std::map<std::uint64_t, CountedLine> lines;
  std::map<std::uint64_t, std::uint32_t> watches;  // the latest, by line
  auto latest = lines.end();
  auto latest_watch = watches.end();
  for (const SeenAt& at : group.seen) {
    bool first = false;
    if (latest == lines.end() || latest->first != at.seen->consumer.line) {
      latest = lines.try_emplace(at.seen->consumer.line).first;
      std::tie(latest_watch, first) = watches.try_emplace(at.seen->consumer.line, at.watch);
    }
    latest->second.seen += at.seen->weight;
    latest->second.watches += first || latest_watch->second != at.watch ? 1 : 0;
    latest_watch->second = at.watch;
  }
  const auto all = static_cast<double>(group.lines.last - group.lines.first + profile::cache_line);
  double begin = 0;
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    const auto next = std::next(line);
    const auto middle = next != lines.end() ? line->first / 2 + next->first / 2 + profile::cache_line / 2 : 0;
    const double end = next != lines.end() ? static_cast<double>(middle - group.lines.first) : all;
    line->second.part = (end - begin) / all;
    begin = end;
  }
  return lines;
}

/// Lines are visited in order, and the seen ones are nearly a random choice from equal parts: the differences of
/// neighbours give the variance between them.
CountGroup::Part CountGroup::part_of(const std::map<std::uint32_t, double>& seen) const {
  Part part;
  double between = 0;
  double within = 0;
  double watches = 0;
  double last = 0;
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    const CountedLine& line = lines[i];
    const auto found = seen.find(i);
    const double p = found != seen.end() && line.seen > 0 ? std::min(1.0, found->second / line.seen) : 0;
    part.value += line.part * p;
    within += line.part * line.part * p * (1 - p) / std::max(line.watches, 1.0);
    between += i > 0 ? std::pow((p - last) * (line.part + lines[i - 1].part) / 2, 2) / 2 : 0;
    watches += line.watches;
    last = p;
  }
  const double not_seen = std::max(0.0, 1 - static_cast<double>(lines.size()) / std::max(all_lines, 1.0));
  // A few watches may be alike by chance.
  const double n = watches + prior_watches;
  const double odd = prior_watches / 2 / n;
  part.variance = within + not_seen * between + odd * (1 - odd) * prior_watches / n / std::max(watches, 1.0);
  return part;
}

}  // namespace crosstalk::attribution
