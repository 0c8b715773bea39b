// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "daemon/session.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    return 125;
  }
  crosstalk::daemon::RecordOptions options;
  options.output = argv[1];
  options.command.assign(argv + 2, argv + argc);
  options.collector = EMPTY_COLLECTOR;
  options.warn = [](const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); };
  const auto outcome = crosstalk::daemon::record(options);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 125;
  }
  return outcome->exit_status;
}
