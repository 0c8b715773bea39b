// SPDX-License-Identifier: Apache-2.0
// The subcommands, one a file. Each parses its arguments, prints its output, and returns the exit status.
#pragma once

#include "driver/options/command_line.h"

namespace crosstalk::driver {

int run_record(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_import(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_diff(const Arguments& arguments);
int run_calibrate(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_roofline(const Arguments& arguments);
int run_service(const Arguments& arguments);
int run_top(const Arguments& arguments);

/// Runs the whole program; `arguments` is argv without its first element.
int run(const Arguments& arguments);

}  // namespace crosstalk::driver
