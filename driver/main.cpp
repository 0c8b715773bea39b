// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "driver/subcommands.h"

int main(int argc, char** argv) {
  try {
    return crosstalk::driver::run(crosstalk::driver::Arguments(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& error) {  // memory ran out, or a library let something through
    std::fprintf(stderr, "crosstalk: %s\n", error.what());
    return crosstalk::driver::exit_refused;
  }
}
