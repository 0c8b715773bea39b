// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/counter_selection.h"

#include <utility>

namespace crosstalk::driver {

Result<CounterSelection> select_counters(const RecordRequest& request, const collectors::MachineDescription& machine,
                                         const collectors::EventLibrary& library, const collectors::GroupTrial& trial,
                                         bool nmi_watchdog) {
  CounterSelection selected;
  if (request.counters == CounterChoice::off) {
    return selected;
  }
  selected.asked = request.counters == CounterChoice::on;
  collectors::CounterWish wish;
  wish.names = request.counter_names;
  wish.nmi_watchdog = nmi_watchdog;
  auto plan = collectors::counter_groups(machine, library, wish);
  if (!plan && plan.error().code == ErrorCode::invalid_argument) {
    return fail(plan.error().code, "--counters: " + plan.error().message);
  }
  const bool there = plan.has_value();
  auto fit = there ? collectors::fit_groups(std::move(*plan), trial) : std::move(plan);
  if (!fit) {
    selected.refusal = fit.error().message;
    selected.remediable = there;
    return selected;
  }
  selected.groups = std::move(fit->groups);
  selected.lacking = std::move(fit->lacking);
  return selected;
}

CounterSelection no_counters_inside(CounterSelection selected) {
  selected.groups.clear();
  selected.lacking.clear();
  selected.remediable = false;
  return selected;
}

CounterWords words_of(const CounterSelection& selected) {
  CounterWords words;
  if (!selected.refusal.empty() && (selected.asked || selected.remediable)) {
    words.warnings.push_back({"counters_refused", "hardware counters are not read: " + selected.refusal});
  }
  for (const std::string& what : selected.lacking) {
    words.remarks.push_back({"counters_lacking", "hardware counters: no " + what});
  }
  return words;
}

}  // namespace crosstalk::driver
