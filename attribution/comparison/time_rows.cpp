// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/time_rows.h"

#include <map>
#include <string>
#include <utility>

#include "attribution/loops/code_time.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

using Times = std::map<std::pair<TimeRow::Kind, std::string>, Figure>;

/// A share of samples, with the interval that their number gives.
Figure sampled(double seconds, const Analysis& analysis) {
  if (!(analysis.cpu_s > 0)) {
    return {seconds, std::nullopt};
  }
  const Interval share = share_interval(seconds / analysis.cpu_s, static_cast<double>(analysis.sampling.samples));
  return {seconds, Interval{share.low * analysis.cpu_s, share.high * analysis.cpu_s}};
}

class TimeReader {
 public:
  explicit TimeReader(const Analysis& analysis) : analysis_(analysis) {}

  [[nodiscard]] Times read() {
    for (const LoopRow& loop : analysis_.loops) {
      const std::string at = source_name(loop.file, loop.line_begin);
      add(TimeRow::Kind::loop, at.empty() ? loop.function : at,
          {loop.cpu_s, Interval{loop.share_ci95.low * analysis_.cpu_s, loop.share_ci95.high * analysis_.cpu_s}});
    }
    for (const FunctionRow& function : analysis_.functions) {
      add(TimeRow::Kind::function, function.function, sampled(function.self_s, analysis_));
    }
    for (const CodeLineRow& line : analysis_.code_lines) {
      add(TimeRow::Kind::line, source_name(line.file, line.line), sampled(line.self_s, analysis_));
    }
    for (const ThreadSummary& thread : analysis_.threads) {
      add(TimeRow::Kind::thread, thread.name, thread.cpu_s ? exactly(*thread.cpu_s) : Figure{});
    }
    for (const RegionSummary& region : analysis_.regions) {
      add(TimeRow::Kind::region, region.path, region.cpu_s ? Figure{region.cpu_s, region.cpu_ci95} : Figure{});
    }
    return std::move(times_);
  }

 private:
  void add(TimeRow::Kind kind, const std::string& name, const Figure& seconds) {
    if (!name.empty()) {
      const auto [row, fresh] = times_.try_emplace({kind, name}, seconds);
      row->second = fresh ? seconds : sum_of(row->second, seconds);
    }
  }

  const Analysis& analysis_;
  Times times_;
};

Figure not_seen(TimeRow::Kind kind, const Analysis& analysis) {
  return kind == TimeRow::Kind::thread || kind == TimeRow::Kind::region ? exactly(0) : sampled(0, analysis);
}

}  // namespace

std::vector<TimeRow> time_rows(const Analysis& before, const Analysis& after) {
  const Times was = TimeReader(before).read();
  const Times is = TimeReader(after).read();
  std::vector<TimeRow> rows;
  for (const auto& [key, seconds] : was) {
    const auto found = is.find(key);
    rows.push_back({key.first, key.second, seconds, found == is.end() ? not_seen(key.first, after) : found->second});
  }
  for (const auto& [key, seconds] : is) {
    if (!was.contains(key)) {
      rows.push_back({key.first, key.second, not_seen(key.first, before), seconds});
    }
  }
  return rows;
}

}  // namespace crosstalk::attribution::comparison
