// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk export`.
#pragma once

#include <cstdint>
#include <string>

#include "driver/options/command_line.h"

namespace crosstalk::driver {

enum class ExportFormat : std::uint8_t { pprof, collapsed };
/// The quantities that stacks are weighted by.
enum class StackValue : std::uint8_t { cpu, communication, gain };

struct ExportRequest {
  std::string input = "crosstalk.db";
  std::string output = "-";  // "-": standard output
  std::string sysroot;
  ExportFormat format = ExportFormat::pprof;
  StackValue value = StackValue::cpu;  // of collapsed stacks; pprof has all
  bool by_thread = false;              // of collapsed stacks: the thread is the outermost frame
  bool lend = true;                    // samples without a stack take the callers of others at the same place
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<ExportRequest>> parse_export(const Arguments& arguments);

}  // namespace crosstalk::driver
