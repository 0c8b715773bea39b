// SPDX-License-Identifier: Apache-2.0
// Common start of every subcommand: refuses a bad command line, prints help, or serves the request.
#pragma once

#include <cstdio>
#include <utility>

#include "base/result.h"
#include "driver/options/command_line.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {

/// Returns the exit status. `with_request`: (Request&) -> an exit status.
template <class Request, class Function>
int serve(Result<Parsed<Request>> parsed, Function with_request) {
  if (!parsed) {
    log_error(parsed.error().message);
    return exit_refused;
  }
  if (!parsed->request) {
    std::fputs(parsed->text.c_str(), stdout);
    return exit_ok;
  }
  return with_request(*parsed->request);
}

}  // namespace crosstalk::driver
