// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace crosstalk::injector {

/// The error of a process that the collector is not brought into.
inline tl::unexpected<Error> refuse(pid_t pid, const std::string& why) {
  return fail(ErrorCode::refused, "-p " + std::to_string(pid) + " --inject: " + why);
}

}  // namespace crosstalk::injector
