// SPDX-License-Identifier: Apache-2.0
#include "driver/json/counters.h"

#include <optional>
#include <utility>

#include "driver/json/values.h"

namespace crosstalk::driver {
namespace {

Json slots(const std::optional<attribution::TopDown>& parts) {
  return parts ? Json{{"retiring", parts->retiring},
                      {"frontend", parts->frontend},
                      {"bad_speculation", parts->bad_speculation},
                      {"backend", parts->backend}}
               : Json(nullptr);
}

}  // namespace

Json counter_rates(const attribution::CounterRates& rates) {
  Json list = Json::array();
  for (const attribution::CountedRate& rate : rates.rates) {
    list.push_back({{"name", rate.name},
                    {"per_s", number(rate.per_s)},
                    {"ci95", {number(rate.ci95.low), number(rate.ci95.high)}},
                    {"per_cycle", number(rate.per_cycle)}});
  }
  return {{"rates", std::move(list)},
          {"ipc", known(rates.ipc())},
          {"slots", slots(rates.top_down())},
          {"stalled", by_level(rates.stalled())},
          {"intervals", rates.intervals},
          {"seconds", rates.seconds},
          {"left", rates.left},
          {"elsewhere", rates.elsewhere},
          {"unknown", rates.unknown.empty() ? Json(nullptr) : Json(rates.unknown)}};
}

Json counters(const attribution::Analysis& analysis) {
  if (!analysis.counters) {
    return nullptr;
  }
  Json events = Json::array();
  for (const profile::CounterRow& row : analysis.counters->counters) {
    events.push_back(
        {{"name", row.name}, {"group", row.group}, {"unit", row.unit}, {"event", row.event}, {"each", row.each}});
  }
  Json threads = Json::array();
  for (const attribution::CounterSummary::Thread& thread : analysis.counters->threads) {
    Json one = {{"thread", thread.thread}};
    one.update(counter_rates(thread.rates));
    threads.push_back(std::move(one));
  }
  return {{"events", std::move(events)}, {"threads", std::move(threads)}};
}

}  // namespace crosstalk::driver
