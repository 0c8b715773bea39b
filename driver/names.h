// SPDX-License-Identifier: Apache-2.0
// Words for enumerations, the same in every format of a report.
#pragma once

#include "attribution/model.h"

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

[[nodiscard]] constexpr const char* role_name(attribution::Role role) {
  return role == attribution::Role::producer ? "producer" : "consumer";
}

}  // namespace crosstalk::driver
