// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/source_choice.h"

#include <algorithm>
#include <utility>

#include "profile/model.h"

namespace crosstalk::collectors {
namespace {

/// Opens the events; returns them as they were opened.
Result<std::vector<MemoryEvent>> open_all(const std::vector<MemoryEvent>& events, const EventTrial& trial) {
  std::vector<MemoryEvent> opened;
  for (const MemoryEvent& event : events) {
    auto fit = trial(event);
    if (!fit) {
      return tl::unexpected<Error>(fit.error());
    }
    opened.push_back(std::move(*fit));
  }
  return opened;
}

}  // namespace

ChosenSource choose_source(std::span<const SourceStep> steps, const EventTrial& trial) {
  ChosenSource chosen;
  for (const SourceStep& step : steps) {
    if (!step.reason.empty()) {
      chosen.verdicts.push_back({step.source, step.reason, false});
      continue;
    }
    auto events = open_all(step.events, trial);
    if (!events) {
      const bool from_outside =
          std::any_of(step.events.begin(), step.events.end(), [](const MemoryEvent& event) { return event.each_cpu; });
      chosen.verdicts.push_back({step.source, events.error().message, true, true, from_outside});
      continue;
    }
    chosen.source = step.source;
    chosen.events = std::move(*events);
    chosen.verdicts.push_back({step.source, "", false});
    return chosen;
  }
  return chosen;
}

Result<ChosenSource> insist_on(const SourceStep& step, const EventTrial& trial) {
  if (!step.reason.empty()) {
    return fail(ErrorCode::unsupported, step.reason);
  }
  auto events = open_all(step.events, trial);
  if (!events) {
    return tl::unexpected<Error>(events.error());
  }
  return ChosenSource{step.source, std::move(*events), {{step.source, "", false}}};
}

std::string in_words(std::span<const SourceVerdict> verdicts) {
  std::string text;
  std::string better;
  for (const SourceVerdict& verdict : verdicts) {
    const std::string name = name_of(verdict.source);
    const std::string chosen = better.empty() ? "chosen" : std::string(chosen_in_place_of) + better;
    text += (text.empty() ? "" : "; ") + name + ": " + (verdict.reason.empty() ? chosen : verdict.reason);
    better = better.empty() && verdict.is_there && !verdict.reason.empty() ? name : better;
  }
  return text;
}

std::string in_a_line(const ChosenSource& chosen) {
  const bool by_clock = chosen.source == profile::SourceKind::clock;
  const std::string by = std::string("samples by ") + (by_clock ? "a clock" : name_of(chosen.source));
  const auto refused = [](const SourceVerdict& verdict) { return !verdict.reason.empty(); };
  const auto is_there = [](const SourceVerdict& verdict) { return !verdict.reason.empty() && verdict.is_there; };
  auto better = std::find_if(chosen.verdicts.begin(), chosen.verdicts.end(), is_there);
  better = better == chosen.verdicts.end() ? std::find_if(chosen.verdicts.begin(), better, refused) : better;
  const std::string beside = by_clock ? "" : ", with a clock beside";
  if (better == chosen.verdicts.end()) {
    return by + beside;
  }
  const std::string name = name_of(better->source);
  if (better->remediable) {
    return by + " in place of " + name + beside;
  }
  return by_clock && !better->is_there ? by + ": this machine has no precise memory events (" + better->reason + ")"
                                       : by + beside + ", not by " + name + ": " + better->reason;
}

}  // namespace crosstalk::collectors
