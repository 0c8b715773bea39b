// SPDX-License-Identifier: Apache-2.0
#include "models/busy_time.h"

#include <cmath>
#include <limits>
#include <vector>

#include "models/words.h"

namespace crosstalk::models {
namespace {

BusyTime busy_time(std::optional<double> amount, const Peak& peak, double elapsed_s) {
  BusyTime time;
  time.exists = peak.exists;
  const auto seconds_at = [amount](const std::optional<double>& rate) {
    if (amount && *amount == 0) {
      return std::optional(0.0);  // for any peak
    }
    return amount && rate && *rate > 0 ? std::optional(*amount / *rate) : std::nullopt;
  };
  const auto part_of = [elapsed_s](const std::optional<double>& seconds) {
    return seconds && elapsed_s > 0 ? std::optional(*seconds / elapsed_s) : std::nullopt;
  };
  if (peak.exists) {
    time.seconds = seconds_at(peak.effective);
    time.of_effective = part_of(time.seconds);
    time.of_theoretical = part_of(seconds_at(peak.theoretical));
    if (time.of_effective && peak.spread >= 0 && peak.spread < 1) {
      time.of_effective_most = *time.of_effective / (1 - peak.spread);
    }
  }
  return time;
}

BusyClass class_of(Unit unit) {
  switch (unit) {
    case Unit::memory:
      return BusyClass::in_memory;
    case Unit::l3:
      return BusyClass::in_l3;
    case Unit::l2:
      return BusyClass::in_l2;
    case Unit::l1d:
      return BusyClass::in_l1d;
    case Unit::fpu:
      break;
  }
  return BusyClass::in_l2_fpu;
}

/// "memory 51 %, L2 34 %": the known parts in the order of units, without `but`.
std::string parts_in_words(const BusyTimes& times, std::optional<Unit> but) {
  std::vector<std::string> parts;
  for (const Unit unit : all_units) {
    if (unit != but && times[unit].of_effective) {
      parts.push_back(std::string(unit_in_words(unit)) + " " + percent(*times[unit].of_effective));
    }
  }
  return enumerated(parts);
}

std::optional<Unit> busiest_at_most(const BusyTimes& times) {
  std::optional<Unit> busiest;
  for (const Unit unit : all_units) {
    const auto& most = times[unit].of_effective_most;
    if (most && (!busiest || *most > *times[*busiest].of_effective_most)) {
      busiest = unit;
    }
  }
  return busiest;
}

std::vector<std::string> unknown_units(const BusyTimes& times) {
  std::vector<std::string> names;
  for (const Unit unit : all_units) {
    if (times[unit].exists && !times[unit].of_effective) {
      names.emplace_back(unit_in_words(unit));
    }
  }
  return names;
}

/// The evidence for a tuned loop.
std::string tuned_in_words(const BusyTimes& times, Unit unit) {
  constexpr double implausible = 1.02;
  const double share = *times[unit].of_effective;
  std::string text = std::string(unit_in_words(unit)) + (unit == Unit::fpu ? " were" : " was") + " busy for " +
                     percent(share) + " of the time, measured against " + (unit == Unit::fpu ? "their" : "its") +
                     " calibrated peak";
  if (share < tuned_share) {
    text += " (for " + percent(times[unit].of_effective_most.value_or(share)) +
            " against the lower rate that a quarter of the calibration's tries reached: this machine's figures vary as "
            "much)";
  }
  text += share <= implausible ? "" : unit == Unit::fpu ? "; they are at their peak" : "; it is at its peak";
  const std::string others = parts_in_words(times, unit);
  text += others.empty() ? "" : "; " + others;
  const std::vector<std::string> unknown = unknown_units(times);
  text += unknown.empty() ? "" : "; not known: " + enumerated(unknown);
  text += share > implausible ? ". More than 100 % is impossible: the work is overestimated, or the calibration saw "
                                "less than the machine can do (crosstalk calibrate)."
                              : ".";
  text[0] = static_cast<char>(text[0] == 'm' ? 'M' : text[0] == 'f' ? 'F' : text[0]);
  return text;
}

}  // namespace

const char* unit_in_words(Unit unit) {
  static constexpr std::array<const char*, unit_count> names = {"memory", "L3", "L2", "L1D", "floating-point units"};
  return names[static_cast<std::size_t>(unit)];
}

BusyTimes busy_times(const LoopWork& work, const Peaks& peaks) {
  BusyTimes times;
  for (const Unit unit : all_units) {
    times[unit] = busy_time(work.amount[unit], peaks[unit], work.elapsed_s);
  }
  return times;
}

std::optional<Bound> bound_of(const BusyTimes& times) {
  std::optional<Bound> bound;
  for (const Unit unit : all_units) {
    const auto& seconds = times[unit].seconds;
    if (seconds && (!bound || *seconds > bound->seconds)) {
      bound = Bound{unit, *seconds};
    }
  }
  return bound;
}

std::optional<double> peak_ratio(const BusyTimes& times) {
  const auto bound = bound_of(times);
  const auto& fpu = times[Unit::fpu].seconds;
  return bound && fpu && bound->seconds > 0 ? std::optional(*fpu / bound->seconds) : std::nullopt;
}

std::optional<double> bytes_to_flops(const LoopWork& work) {
  const auto& bytes = work.amount[Unit::memory];
  const auto& flops = work.amount[Unit::fpu];
  if (!bytes || !flops || (*flops <= 0 && *bytes <= 0)) {
    return std::nullopt;
  }
  return *flops > 0 ? *bytes / *flops : std::numeric_limits<double>::infinity();
}

std::optional<double> machine_balance(const Peaks& peaks) {
  const auto& band = peaks[Unit::memory].effective;
  const auto& peak = peaks[Unit::fpu].effective;
  return band && peak && *peak > 0 ? std::optional(*band / *peak) : std::nullopt;
}

Classified classify(const BusyTimes& times) {
  const auto bound = bound_of(times);
  if (bound && times[bound->unit].of_effective.value_or(0) >= tuned_share) {
    return {class_of(bound->unit), tuned_in_words(times, bound->unit)};
  }
  if (const auto unit = busiest_at_most(times); unit && *times[*unit].of_effective_most >= tuned_share) {
    return {class_of(*unit), tuned_in_words(times, *unit)};
  }
  const std::vector<std::string> unknown = unknown_units(times);
  const std::string known = parts_in_words(times, std::nullopt);
  if (!unknown.empty()) {
    return {std::nullopt, (unknown.size() > 1 ? "The busy times of " : "The busy time of ") + enumerated(unknown) +
                              (unknown.size() > 1 ? " are unknown" : " is unknown") +
                              (known.empty() ? "." : "; the others were not busy enough to decide: " + known + ".")};
  }
  return {BusyClass::under_tuned, "No unit was busy for " + percent(tuned_share) + " of the time: " + known + "."};
}

}  // namespace crosstalk::models
