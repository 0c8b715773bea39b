// SPDX-License-Identifier: Apache-2.0
#include "driver/options/export_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "driver/options/named_value.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {
namespace {

constexpr const char* export_examples =
    "Examples:\n"
    "  crosstalk export -o run.pb.gz                   for pprof and what reads its files\n"
    "  go tool pprof -http=: run.pb.gz                 opens it; so does speedscope, in a browser\n"
    "  crosstalk export --format collapsed | flamegraph.pl > run.svg\n"
    "  crosstalk export --format collapsed --value communication --by thread run.db\n"
    "\n"
    "The file has the CPU time and the cost of communication of each call stack. A recording copies the stacks\n"
    "of some samples; the others take the callers of those in the same function, unless --own-stacks is given.\n"
    "\n"
    "The exit status is 0, 1 when the profile cannot be read or the file cannot be written, 125 for a bad\n"
    "command line.\n"
    "More: man crosstalk-export\n";

constexpr std::array<std::pair<std::string_view, ExportFormat>, 2> export_formats = {
    {{"collapsed", ExportFormat::collapsed}, {"pprof", ExportFormat::pprof}}};
constexpr std::array<std::pair<std::string_view, StackValue>, 3> stack_values = {
    {{"communication", StackValue::communication}, {"cpu", StackValue::cpu}, {"gain", StackValue::gain}}};
constexpr std::array<std::pair<std::string_view, bool>, 1> roots = {{{"thread", true}}};
/// The formats by the ends of files' names.
constexpr std::array<std::pair<std::string_view, ExportFormat>, 4> ends = {{{".pb.gz", ExportFormat::pprof},
                                                                            {".pprof", ExportFormat::pprof},
                                                                            {".collapsed", ExportFormat::collapsed},
                                                                            {".folded", ExportFormat::collapsed}}};

struct Texts {
  std::string format, value, by, input, positional;
  bool own_stacks = false;
};

void add_options(CLI::App& app, ExportRequest& request, Texts& texts) {
  app.add_option("FILE", texts.positional, "Profile to read [crosstalk.db]");
  app.add_option("-i,--input", texts.input, "Profile to read, like FILE [crosstalk.db]")->type_name("FILE");
  app.add_option("-o,--output", request.output, "File to write; - is standard output [-]")->type_name("FILE");
  app.add_option("--format", texts.format, "Form: pprof, collapsed [by the end of the name of the file to write]")
      ->type_name("FORMAT");
  app.add_option("--value", texts.value, "Quantity of collapsed stacks: cpu, communication, gain [cpu]")
      ->type_name("VALUE");
  app.add_option("--by", texts.by, "Outermost frame of collapsed stacks: thread [none]")->type_name("WHAT");
  app.add_flag("--own-stacks", texts.own_stacks, "Leave samples without a stack at their innermost function");
  add_sysroot_option(app, request.sysroot);
  add_verbose_option(app, request.verbosity);
}

std::optional<ExportFormat> format_by_name(const std::string& file) {
  for (const auto& [end, format] : ends) {
    if (file.size() > end.size() && std::string_view(file).ends_with(end)) {
      return format;
    }
  }
  return std::nullopt;
}

Result<ExportFormat> format_of(const Texts& texts, const std::string& output) {
  if (!texts.format.empty()) {
    return named("--format", export_formats, texts.format);
  }
  if (const auto known = format_by_name(output)) {
    return *known;
  }
  return fail(ErrorCode::invalid_argument,
              output == "-" ? "the form is not known: name a file, as -o run.pb.gz, or add --format pprof or collapsed"
                            : "--output: '" + output +
                                  "' ends in none of .pb.gz, .pprof, .collapsed and .folded; add --format pprof or "
                                  "collapsed");
}

Result<void> judge(const Texts& texts, ExportRequest& request) {
  const auto format = format_of(texts, request.output);
  const auto value = named("--value", stack_values, texts.value.empty() ? "cpu" : texts.value);
  const auto root = texts.by.empty() ? Result<bool>(false) : named("--by", roots, texts.by);
  if (const auto checked = check_all(format, value, root); !checked) {
    return checked;
  }
  if (const auto chosen = choose_profile(texts.input, texts.positional, request.input); !chosen) {
    return chosen;
  }
  if (request.output.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--output: the name of the file is empty; name one, or - for standard output");
  }
  if (*format == ExportFormat::pprof && !(texts.value.empty() && texts.by.empty())) {
    return fail(ErrorCode::invalid_argument, std::string(texts.value.empty() ? "--by" : "--value") +
                                                 " is of --format collapsed; a file for pprof has all quantities, and "
                                                 "threads as labels (pprof -tagroot thread)");
  }
  request.format = *format;
  request.value = *value;
  request.by_thread = *root;
  request.lend = !texts.own_stacks;
  return {};
}

}  // namespace

Result<Parsed<ExportRequest>> parse_export(const Arguments& arguments) {
  CLI::App app(
      "Writes the call stacks of a profile, with their CPU time and cost of communication, in the form of other\n"
      "programs: pprof and what reads its files (speedscope, Pyroscope, Parca), or flame graphs.\n",
      "crosstalk export");
  describe(app, "crosstalk export [OPTION]... [[-i] FILE]", export_examples);
  ExportRequest request;
  Texts texts;
  add_options(app, request, texts);
  return parse_request(app, arguments, request, [&] { return judge(texts, request); });
}

}  // namespace crosstalk::driver
