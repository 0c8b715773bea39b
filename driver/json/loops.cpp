// SPDX-License-Identifier: Apache-2.0
#include "driver/json/loops.h"

#include <utility>

#include "driver/json/loop_figures.h"
#include "driver/json/values.h"

namespace crosstalk::driver {
namespace {

Json rates(const attribution::LoopRates& rates) {
  const std::pair<const char*, const attribution::Rate*> all[] = {
      {"iterations_per_s", &rates.iterations}, {"instructions_per_s", &rates.instructions},
      {"flops_per_s", &rates.flops},           {"loads_per_s", &rates.loads},
      {"stores_per_s", &rates.stores},         {"bytes_per_s", &rates.bytes}};
  Json object = Json::object();
  Json intervals = Json::object();
  Json reasons = Json::object();
  Json looked_ahead = Json::array();
  Json counted = Json::array();
  std::uint64_t lookaheads = 0;
  for (const auto& [name, rate] : all) {
    object[name] = known(rate->per_s);
    if (rate->per_s) {
      intervals[name] = interval(rate->ci95);
      if (rate->counted) {
        counted.push_back(name);
      }
      if (rate->lookaheads != 0) {
        looked_ahead.push_back(name);
        lookaheads = rate->lookaheads;
      }
    } else {
      reasons[name] = known_text(rate->unknown);
    }
  }
  object["ci95"] = std::move(intervals);
  object["reasons"] = std::move(reasons);
  object["steps"] = rates.steps;
  object["basis"] = !rates.iterations.per_s ? Json(nullptr) : Json(rates.through_outer ? "outer_counter" : "counter");
  object["walked"] = std::move(looked_ahead);
  object["walks"] = lookaheads;
  object["counted"] = std::move(counted);
  return object;
}

/// True if the library in the thread's process has timed its waits, so that samples say which of its time is in them.
bool are_waits_timed(const attribution::Analysis& analysis, std::uint32_t thread) {
  const std::size_t process =
      thread < analysis.threads.size() ? analysis.threads[thread].process.value : analysis.processes.size();
  const bool outside =
      process < analysis.processes.size() && analysis.processes[process].observation == profile::Observation::outside;
  return analysis.session.config.measure_waits != 0 && !outside;
}

}  // namespace

Json loops_json(const attribution::Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::LoopRow& row : analysis.loops) {
    Json by_thread = Json::array();
    for (const attribution::LoopThread& thread : row.threads) {
      const bool timed = are_waits_timed(analysis, thread.thread);
      by_thread.push_back({{"thread", thread.thread},
                           {"cpu_s", seconds(analysis, thread.cpu_s)},
                           {"self_s", seconds(analysis, thread.self_s)},
                           {"waiting_s", timed ? seconds(analysis, thread.waiting_s) : Json(nullptr)},
                           {"kernel_s", seconds(analysis, thread.kernel_s)}});
    }
    list.push_back({{"id", row.id},
                    {"parent", known(row.parent)},
                    {"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line_begin", known_line(row.line_begin)},
                    {"line_end", known_line(row.line_end)},
                    {"depth", row.depth},
                    {"module", known_text(row.module)},
                    {"cpu_s", seconds(analysis, row.cpu_s)},
                    {"self_s", seconds(analysis, row.self_s)},
                    {"share", number(row.share)},
                    {"share_ci95", interval(row.share_ci95)},
                    {"kernel_s", seconds(analysis, row.kernel_s)},
                    {"samples", row.samples},
                    {"compiled_into", known_text(row.compiled_into)},
                    {"rates", rates(row.rates)},
                    {"threads", by_thread}});
    add_figures(list.back(), row);
  }
  return list;
}

}  // namespace crosstalk::driver
