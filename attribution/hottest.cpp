// SPDX-License-Identifier: Apache-2.0
#include "attribution/hottest.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_told = 0.02;  // of the CPU time

/// "40 % of the CPU time", or of the event if no sample represents time.
std::string part_of_all(const Analysis& analysis, double share) {
  return percent(share) + (analysis.shares_of.empty() ? " of the CPU time" : " of the event " + analysis.shares_of);
}

/// ", called by main() at a.c:10", or mostly by two.
std::string in_words(const std::vector<CallerRow>& callers, const char* by) {
  constexpr double nearly_all = 0.9;
  constexpr double worth_saying = 0.1;
  if (callers.empty()) {
    return {};
  }
  const auto place = [](const CallerRow& row) { return place_in_words(row.function, row.file, row.line); };
  const std::string first = std::string(by) + " " + place(callers.front());
  if (callers.front().share >= nearly_all) {
    return ", " + first;
  }
  const bool second = callers.size() > 1 && callers[1].share >= worth_saying;
  return ", mostly " + first + (second ? " and " + place(callers[1]) : "");
}

/// A candidate for the hottest place, with its share.
struct Candidate {
  double share = 0;
  std::string kind, sentence;
  std::uint64_t samples = 0;
};

std::string lines_of(const LoopRow& loop) {
  const std::string at = source_name(loop.file, loop.line_begin);
  return at.empty() || loop.line_end <= loop.line_begin ? at : at + "-" + std::to_string(loop.line_end);
}

bool is_in(const LoopRow& loop, const FunctionRow& function) {
  return loop.module == function.module &&
         (loop.compiled_into.empty() ? loop.function : loop.compiled_into) == function.function;
}

/// "", or who calls the library's function that the loop is in.
std::string callers_of(const Analysis& analysis, const LoopRow& loop) {
  const auto found =
      std::ranges::find_if(analysis.functions, [&](const auto& function) { return is_in(loop, function); });
  return found == analysis.functions.end() ? std::string() : in_words(found->callers, "called by");
}

Candidate of_loop(const Analysis& analysis, const LoopRow& loop) {
  std::string place = place_in_words(loop.function, loop.file, loop.line_begin);
  const bool with_lines = !source_name(loop.file, loop.line_begin).empty();
  place += with_lines && loop.line_end > loop.line_begin ? "-" + std::to_string(loop.line_end) : "";
  const std::string into = loop.compiled_into.empty() ? "" : " (inlined into " + in_short(loop.compiled_into) + ")";
  return {loop.share, "loop",
          "The hottest loop, in " + (place.empty() ? module_name(analysis.processes, loop.module) : place) + into +
              ", takes " + part_of_all(analysis, loop.share) + callers_of(analysis, loop) + ".",
          loop.samples};
}

/// "work() of app", or only "app+0x40" of a function without a name.
std::string function_in_words(const Analysis& analysis, const FunctionRow& function) {
  const std::string module = module_name(analysis.processes, function.module);
  const std::string name = in_short(function.function);
  return module.empty() || name.starts_with(module + "+0x") ? name : name + " of " + module;
}

const LoopRow* hottest_loop_of(const Analysis& analysis, const FunctionRow& function) {
  const auto found = std::ranges::find_if(analysis.loops, [&](const auto& loop) { return is_in(loop, function); });
  return found == analysis.loops.end() ? nullptr : &*found;
}

/// The program's own function, with the share of its loop. A library's template in it has callers, as the library has.
Candidate of_function(const Analysis& analysis, const FunctionRow& function) {
  std::string text = "The hottest function, " + function_in_words(analysis, function) + ", takes " +
                     part_of_all(analysis, function.share);
  constexpr double much_of_it = 0.3;
  const LoopRow* loop = hottest_loop_of(analysis, function);
  if (loop != nullptr && loop->share >= much_of_it * function.share && !lines_of(*loop).empty()) {
    text += ", " + percent(loop->share) + " in its loop at " + lines_of(*loop);
  }
  text += in_words(function.callers, "called by");
  return {function.share, "function", text + ".", function.samples};
}

double in_user_mode(const FunctionRow& function) {
  const double in_kernel = function.self_s > 0 ? function.kernel_s / function.self_s : 0;
  return function.share * std::max(0.0, 1 - in_kernel);
}

Candidate of_library(const Analysis& analysis, const FunctionRow& function) {
  return {in_user_mode(function), "function",
          "The hottest function, " + function_in_words(analysis, function) + ", takes " +
              part_of_all(analysis, in_user_mode(function)) + in_words(function.callers, "called by") + ".",
          function.samples};
}

/// Code of a file with unknown functions, or of no file.
Candidate of_nameless(const Analysis& analysis, const FunctionRow& function) {
  const std::string module = module_name(analysis.processes, function.module);
  return {in_user_mode(function), "function",
          part_of_all(analysis, in_user_mode(function)) + " is in code " +
              (module.empty() ? "that lies in no file and has no names"
                              : "of " + module + ", whose functions have no names here") +
              ": the warnings say why.",
          function.samples};
}

Candidate of_kernel(const Analysis& analysis, const KernelRow& row) {
  const bool named = row.system_call && row.name.front() != '[';
  const std::string what = named             ? "The system call " + call_name(row.name) + " takes "
                           : row.system_call ? std::string("System calls whose names are not known take ")
                                             : std::string("Page faults and interrupts take ");
  return {row.share, "kernel",
          what + part_of_all(analysis, row.share) + in_words(row.callers, row.system_call ? "called by" : "in") + ".",
          row.samples};
}

void keep_greater(Candidate& best, Candidate candidate) {
  if (candidate.share > best.share) {
    best = std::move(candidate);
  }
}

/// The function with the greatest share, described by the kind of its code.
Candidate hottest_function(const Analysis& analysis) {
  Candidate best;
  for (const FunctionRow& function : analysis.functions) {
    if (is_collector(function.module) || function.share <= best.share) {
      continue;
    }
    const bool nameless = function.function.empty() || function.function.front() == '[';
    keep_greater(best, nameless                              ? of_nameless(analysis, function)
                       : is_runtime_library(function.module) ? of_library(analysis, function)
                                                             : of_function(analysis, function));
  }
  return best;
}

/// "read() 40 %, write() 12 %, others 5 %", of `all`.
std::string calls_in_words(const std::vector<KernelRow>& rows, double all) {
  constexpr std::size_t most = 4;
  constexpr double worth_saying = 0.01;
  double others = all;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const KernelRow& row = rows[i];
    if (row.share >= worth_saying) {
      const bool named = row.name.front() != '[';
      text += (text.empty() ? "" : ", ") + (named ? call_name(row.name) : row.name.substr(1, row.name.size() - 2)) +
              " " + percent(row.share);
      others -= row.share;
    }
  }
  return text + (!text.empty() && others >= worth_saying ? ", others " + percent(others) : "");
}

}  // namespace

Finding hottest(const Analysis& analysis) {
  constexpr double as_much = 0.95;  // a loop says more than its function does
  Candidate best = hottest_function(analysis);
  const auto loop = std::find_if(analysis.loops.begin(), analysis.loops.end(),
                                 [](const LoopRow& row) { return !is_collector(row.module); });
  if (loop != analysis.loops.end() && loop->share >= as_much * best.share) {
    best = of_loop(analysis, *loop);
  }
  for (const KernelRow& row : analysis.kernel) {
    keep_greater(best, of_kernel(analysis, row));
  }
  if (best.share < least_told) {
    return {};
  }
  const std::uint64_t samples = best.samples != 0 ? best.samples : analysis.sampling.samples;
  if (samples < few_samples) {
    best.sentence += " This is a hint only: it rests on " + count_of(samples, "sample", "samples") + ".";
  }
  return {best.sentence, 0, best.kind};
}

Finding in_the_kernel(const Analysis& analysis, const Finding& first) {
  constexpr double worth_saying = 0.3;
  double kernel_s = 0;
  for (const ThreadSummary& thread : analysis.threads) {
    kernel_s += thread.kernel_share.value_or(0) * thread.cpu_s.value_or(0);
  }
  double of_rows = 0;  // those of threads without samples are unknown, and others stand for them
  for (const KernelRow& row : analysis.kernel) {
    of_rows += row.share;
  }
  const double share = std::max(analysis.cpu_s > 0 ? kernel_s / analysis.cpu_s : 0, of_rows);
  const bool said = first.kind == "kernel" && analysis.kernel.size() == 1;
  if (share < worth_saying || said) {
    return {};
  }
  const std::string calls = calls_in_words(analysis.kernel, share);
  return {"The kernel takes " + part_of_all(analysis, share) + (calls.empty() ? "" : ": " + calls) +
              ". crosstalk sees no data addresses in the kernel, so it cannot show communication there.",
          0, "kernel"};
}

}  // namespace crosstalk::attribution
