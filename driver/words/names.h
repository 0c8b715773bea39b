// SPDX-License-Identifier: Apache-2.0
// Words for enumerations, the same in every format of a report.
#pragma once

#include <array>
#include <cstddef>

#include "attribution/groups.h"
#include "attribution/model/model.h"
#include "models/busy_time.h"

namespace crosstalk::driver {

/// "global", "heap", "stack", "tls", "shared"; empty: unknown.
[[nodiscard]] constexpr const char* object_kind_name(attribution::ObjectKind kind) {
  switch (kind) {
    case attribution::ObjectKind::global:
      return "global";
    case attribution::ObjectKind::heap:
      return "heap";
    case attribution::ObjectKind::stack:
      return "stack";
    case attribution::ObjectKind::tls:
      return "tls";
    case attribution::ObjectKind::shared:
      return "shared";
    case attribution::ObjectKind::unknown:
      break;
  }
  return "";
}

/// Returns the word that `--by` takes.
[[nodiscard]] constexpr const char* group_by_name(attribution::GroupBy by) {
  switch (by) {
    case attribution::GroupBy::name:
      return "name";
    case attribution::GroupBy::process:
      return "process";
    case attribution::GroupBy::start_routine:
      return "start-routine";
    case attribution::GroupBy::core:
      return "core";
    case attribution::GroupBy::socket:
      break;
  }
  return "socket";
}

/// "preloaded", "outside", "injected", "none"; empty: unknown.
[[nodiscard]] constexpr const char* observation_name(profile::Observation observation) {
  switch (observation) {
    case profile::Observation::preloaded:
      return "preloaded";
    case profile::Observation::outside:
      return "outside";
    case profile::Observation::injected:
      return "injected";
    case profile::Observation::none:
      return "none";
    case profile::Observation::unknown:
      break;
  }
  return "";
}

[[nodiscard]] constexpr const char* role_name(attribution::Role role) {
  return role == attribution::Role::producer ? "producer" : "consumer";
}

[[nodiscard]] constexpr const char* unit_name(models::Unit unit) {
  constexpr std::array<const char*, models::unit_count> names = {"memory", "l3", "l2", "l1d", "fpu"};
  return names[static_cast<std::size_t>(unit)];
}

[[nodiscard]] constexpr const char* busy_class_name(models::BusyClass which) {
  constexpr std::array<const char*, models::busy_classes> names = {"in_memory", "in_l3",  "in_l2",
                                                                   "in_l2_fpu", "in_l1d", "under_tuned"};
  return names[static_cast<std::size_t>(which)];
}

}  // namespace crosstalk::driver
