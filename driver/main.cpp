// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "daemon/own_limits.h"
#include "driver/subcommands.h"

namespace {

// Whoever started us may have closed standard streams. A file that is opened then, the profile say, would get the
// number of one and be written to as one. The command finds them closed, as it would have.
void occupy_closed_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0) {
      (void)::open("/dev/null", O_RDWR | O_CLOEXEC);  // the lowest free number: this one
    }
  }
}

int run(int count, char** words) {
  try {
    return crosstalk::driver::run(crosstalk::driver::Arguments(words + (count > 0 ? 1 : 0), words + count));
  } catch (const std::exception& error) {  // memory ran out, or a library let something through
    std::fprintf(stderr, "crosstalk: %s\n", error.what());
    return crosstalk::driver::exit_refused;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  crosstalk::daemon::widen_own_limits();
  return crosstalk::daemon::with_enough_stack(run, argc, argv);
}
