// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>

#include "daemon/own_limits.h"
#include "driver/commands/subcommands.h"

namespace {

// The caller may have closed standard streams. The next file to be opened, a profile for example, would take such a
// stream's number and receive its output. The command still finds them closed.
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
  } catch (const std::bad_alloc&) {
    std::fputs("crosstalk: there is not enough memory; a limit is shown by ulimit -v\n", stderr);
  } catch (const std::exception& error) {  // of a library
    std::fprintf(stderr, "crosstalk: %s\n", error.what());
  }
  return crosstalk::driver::exit_refused;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  crosstalk::daemon::widen_own_limits();
  return crosstalk::daemon::with_enough_stack(run, argc, argv);
}
