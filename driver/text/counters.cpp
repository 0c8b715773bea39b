// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a loop or a thread in words.
#include "driver/text/counters.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "attribution/counters/counter_rates.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

std::string counters_in_words(const attribution::CounterRates& rates) {
  if (!rates.unknown.empty()) {
    return "not known: " + rates.unknown;
  }
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto ipc = rates.ipc()) {
    add(fmt::format("{:.2f} instructions a cycle", *ipc));
  }
  for (const attribution::CountedRate& rate : rates.rates) {
    if (rate.quantity < profile::CounterQuantity::retiring || rate.quantity == profile::CounterQuantity::branches ||
        rate.quantity == profile::CounterQuantity::branch_misses) {
      const double half = (rate.ci95.high - rate.ci95.low) / 2;
      const std::string doubt = rate.per_s > 0 ? fmt::format(" ±{:.0f} %", 100 * half / rate.per_s) : "";
      add(rate.name + " " + count_text(rate.per_s) + "/s" + doubt);
    }
  }
  if (const auto slots = rates.top_down()) {
    add(fmt::format("slots: retiring {}, front end {}, wrong predictions {}, back end {}",
                    percent_text(slots->retiring), percent_text(slots->frontend), percent_text(slots->bad_speculation),
                    percent_text(slots->backend)));
  }
  if (const auto levels = rates.stalled()) {
    add(fmt::format("cycles stalled for L1D {}, L2 {}, L3 {}, memory {}", percent_text((*levels)[0]),
                    percent_text((*levels)[1]), percent_text((*levels)[2]), percent_text((*levels)[3])));
  }
  return text;
}

}  // namespace crosstalk::driver
