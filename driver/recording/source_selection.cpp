// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/source_selection.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "collectors/pmu/named_event.h"
#include "driver/recording/memory_sampling.h"

namespace crosstalk::driver {
namespace {

using collectors::MemoryEvent;
using collectors::SourceStep;
using profile::SourceKind;

/// Returns the first periods; sampling adjusts them (collectors/observer/memory_sampler.h).
collectors::MemorySampling first_periods() {
  collectors::MemorySampling sampling;
  sampling.load_period = 500'000;
  sampling.store_period = 500'000;
  return sampling;
}

template <class Events>
SourceStep step_of(SourceKind source, Events events) {
  return events ? SourceStep{source, std::move(*events), ""}
                : SourceStep{source, {}, std::move(events.error().message)};
}

SourceStep step_of(SourceChoice source, const collectors::MachineDescription& machine) {
  switch (source) {
    case SourceChoice::pebs:
      return step_of(SourceKind::pebs, collectors::pebs_events(machine, first_periods()));
    case SourceChoice::ibs:
      return step_of(SourceKind::ibs, collectors::ibs_events(machine, first_periods()));
    case SourceChoice::ibs_kmod:
      return step_of(SourceKind::ibs_kmod, collectors::ibs_module_events(machine, first_periods()));
    case SourceChoice::clock:
    case SourceChoice::automatic:
      break;
  }
  return {};
}

/// Adds the clocks' events to the names that an error suggests.
collectors::EventLibrary with_clocks(collectors::EventLibrary library) {
  auto names = [known = std::move(library.names)] {
    std::vector<std::string> all = known();
    all.insert(all.end(), {"task-clock", "thread-timer"});
    return all;
  };
  library.names = std::move(names);
  return library;
}

Result<SourceStep> named_events(const RecordRequest& request, const collectors::MachineDescription& machine,
                                const collectors::EventLibrary& library) {
  SourceStep step{SourceKind::counter, {}, ""};
  for (const std::string& name : request.memory_events) {
    auto event = collectors::named_event(machine, with_clocks(library), name, first_periods());
    if (!event) {
      return fail(event.error().code, "--event: " + event.error().message);
    }
    const bool first = step.events.empty();
    if (!first && step.events.front().attr.sample_type != event->attr.sample_type) {
      return fail(ErrorCode::invalid_argument, "--event: " + name + " and " + step.events.front().name +
                                                   " are of units that cannot be sampled together");
    }
    step.source = event->source;
    step.events.push_back(std::move(*event));
  }
  return step;
}

Result<SourceSelection> insist(const SourceStep& step, std::string asked_by, const std::string& what,
                               const collectors::EventTrial& trial) {
  auto chosen = collectors::insist_on(step, trial);
  if (!chosen) {
    return fail(chosen.error().code, what + chosen.error().message + "; use --source clock");
  }
  return SourceSelection{std::move(*chosen), std::move(asked_by)};
}

bool is_of(SourceChoice wanted, SourceKind source) {
  return wanted == SourceChoice::automatic || (wanted == SourceChoice::pebs && source == SourceKind::pebs) ||
         (wanted == SourceChoice::ibs && source == SourceKind::ibs) ||
         (wanted == SourceChoice::ibs_kmod && source == SourceKind::ibs_kmod);
}

}  // namespace

Result<SourceSelection> select_source(const RecordRequest& request, const collectors::MachineDescription& machine,
                                      const collectors::EventLibrary& library, const collectors::EventTrial& trial) {
  if (!request.memory_events.empty()) {
    const auto step = named_events(request, machine, library);
    if (!step) {
      return tl::unexpected<Error>(step.error());
    }
    if (!is_of(request.source, step->source)) {
      return fail(ErrorCode::invalid_argument, "--event: " + request.memory_events.front() +
                                                   " is no event of the source " + source_name(request.source) +
                                                   " here; leave --source out");
    }
    auto selected = insist(*step, "--event", "--event: ", trial);
    if (selected) {
      selected->named_events = true;
    }
    return selected;
  }
  switch (request.source) {
    case SourceChoice::clock:
      return SourceSelection{{SourceKind::clock, {}, {{SourceKind::clock, "", false}}}, ""};
    case SourceChoice::automatic:
      return SourceSelection{collectors::choose_source(collectors::sources_of(machine, first_periods()), trial), ""};
    case SourceChoice::pebs:
    case SourceChoice::ibs:
    case SourceChoice::ibs_kmod:
      break;
  }
  const std::string name = source_name(request.source);
  return insist(step_of(request.source, machine), "--source " + name,
                "--source " + name + ": not available on this machine: ", trial);
}

std::string in_a_line(const SourceSelection& selected) {
  const collectors::ChosenSource& chosen = selected.chosen;
  const bool named = !selected.asked_by.empty() || (chosen.source == SourceKind::clock && chosen.verdicts.size() <= 1);
  return named ? "" : collectors::in_a_line(chosen);
}

std::string coarse_clock_in_a_line(const profile::SessionConfig& config, std::uint64_t tick_ns) {
  constexpr double ns_per_ms = 1e6;
  if (config.period_ns >= tick_ns || config.clock == profile::ClockKind::perf) {
    return {};
  }
  const bool only_timer = config.clock == profile::ClockKind::posix || config.perf_allowed == 0;
  return fmt::format(
      "samples come each {:.3g} ms of CPU time, not each {:.3g} ms,{} POSIX timers: the kernel looks at them "
      "once a tick{}",
      static_cast<double>(tick_ns) / ns_per_ms, static_cast<double>(config.period_ns) / ns_per_ms,
      only_timer ? " by" : " in threads whose clocks are",
      config.perf_allowed != 0 ? "; --event task-clock has none" : "");
}

std::uint64_t kernel_tick_ns() {
  timespec resolution{};
  return ::clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) == 0 && resolution.tv_sec == 0
             ? static_cast<std::uint64_t>(resolution.tv_nsec)
             : 0;
}

std::string obstacle_inside(const SourceSelection& selected) {
  return selected.named_events ? "is for what is watched from outside" : obstacle_inside(selected.chosen.events);
}

SourceSelection inside(SourceSelection selected) {
  for (collectors::SourceVerdict& verdict : selected.chosen.verdicts) {
    verdict.remediable = verdict.remediable && !verdict.from_outside;  // it would not have been used
  }
  const std::string obstacle = obstacle_inside(selected);
  if (obstacle.empty()) {
    return selected;
  }
  for (collectors::SourceVerdict& verdict : selected.chosen.verdicts) {
    if (verdict.reason.empty()) {
      verdict.reason = obstacle;
      verdict.is_there = true;
    }
  }
  selected.chosen = {SourceKind::clock, {}, std::move(selected.chosen.verdicts)};
  selected.chosen.verdicts.push_back({SourceKind::clock, "", false});
  return selected;
}

}  // namespace crosstalk::driver
