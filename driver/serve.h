// SPDX-License-Identifier: Apache-2.0
// How every subcommand begins: a command line that is not understood is refused, help is printed, a request is served.
#pragma once

#include <cstdio>
#include <utility>

#include "base/result.h"
#include "driver/command_line.h"
#include "driver/log.h"

namespace crosstalk::driver {

/// The exit status. `with_request`: (Request&) -> an exit status.
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
