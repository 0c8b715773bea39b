// SPDX-License-Identifier: Apache-2.0
// Attributes CPU time to functions, source lines, and natural loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"

namespace crosstalk::attribution {

struct CodeTime {
  std::vector<LoopRow> loops;  // by share
  std::vector<FunctionRow> functions;
  std::vector<KernelRow> kernel;
  std::vector<CodeLineRow> lines;
  std::optional<double> unknown_frames;        // share of samples whose function is unknown; absent without samples
  double collector_s = 0;                      // in the collector's own functions, which are in no row
  std::map<std::uint32_t, double> fileless_s;  // by process: in code that lies in no file and has no name
};

/// The digest's sums; separates page faults from system calls by the interrupted code.
[[nodiscard]] std::vector<CodeTotal> code_totals(std::vector<CodeTotal> totals, const ProgramView& view);

/// A loop's time is that of the samples in it: `self_s` without, `cpu_s` with its inner loops; called functions do not
/// count. Functions are those of the machine code (inlined callees count for them), lines those of the innermost
/// inlined function that is the program's own, else of the innermost one. A line has the time of its memory accesses
/// (`accesses`), although the clock interrupts an instruction behind them, often of another line. A loop's id is a hash
/// of its module's file name and the address of its header: the same in every run of a program. Shares are of the
/// samples' time and `uncovered_s`, CPU time that no sample represents.
[[nodiscard]] CodeTime code_time(std::span<const CodeTotal> totals, const ProgramView& view, std::size_t max_rows,
                                 double uncovered_s = 0, std::span<const AccessTime> accesses = {});

/// Removes times that do not represent time: only shares are left.
void forget_times(CodeTime& time);

/// Wilson's 95 % interval of a share of `samples` equally weighted samples; weighted ones count by Kish's effective
/// size, (sum w)^2 / sum w^2. [0, 1] for no samples.
[[nodiscard]] Interval share_interval(double share, double samples);

}  // namespace crosstalk::attribution
