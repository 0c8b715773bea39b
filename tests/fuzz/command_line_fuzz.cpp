// SPDX-License-Identifier: Apache-2.0
// Command lines of all subcommands (arguments end at NUL bytes), and the text functions that show hostile names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "driver/commands/doctor.h"
#include "driver/csv/field.h"
#include "driver/files/output_file.h"
#include "driver/options/command_line.h"
#include "driver/options/diff_options.h"
#include "driver/options/export_options.h"
#include "driver/options/import_options.h"
#include "driver/options/record_options.h"
#include "driver/options/report_options.h"
#include "driver/options/top_options.h"
#include "driver/terminal/layout.h"
#include "driver/terminal/log.h"

namespace {

using namespace crosstalk::driver;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

Arguments arguments_of(std::string_view text) {
  Arguments arguments;
  while (!text.empty() && arguments.size() < 64) {
    const std::size_t end = text.find('\0');
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return arguments;
}

void parse_all(const Arguments& arguments) {
  if (const auto record = parse_record(arguments); record && record->request) {
    const RecordRequest& request = *record->request;
    require(request.config.budget > 0 && request.config.budget <= 1);
    require(request.config.period_ns >= 10'000 && request.config.period_ns <= 10'000'000'000);
    require(request.config.watchpoints <= 4);
    require(!request.command.empty() || !request.pids.empty());
    static_cast<void>(expand_name(request.output, NameFacts{}));
  } else if (!record) {
    require(!record.error().message.empty());
    require(printable(record.error().message).find('\n') == std::string::npos);
  }
  static_cast<void>(parse_report(arguments));
  if (const auto top = parse_top(arguments); top && top->request) {
    require(top->request->refresh_s > 0 && top->request->window_s >= top->request->refresh_s);
    require(!top->request->recorder.empty() || !top->request->command.empty() || !top->request->from.empty());
  }
  if (const auto diff = parse_diff(arguments); diff && diff->request) {
    require(!diff->request->before.empty() && !diff->request->after.empty());
    require(diff->request->comparison.run_to_run >= 0 && diff->request->comparison.run_to_run <= 1);
  }
  if (const auto exported = parse_export(arguments); exported && exported->request) {
    require(!exported->request->output.empty());
  }
  static_cast<void>(parse_doctor(arguments));
  if (const auto import = parse_import(arguments); import && import->request) {
    require(!import->request->input.empty() && !import->request->output.empty());
  }
}

void lay_out(std::string_view text, int width) {
  for (const Charset charset : {Charset::ascii, Charset::utf8}) {
    const std::string shown = clean(text, charset);
    require(shown.find('\x1b') == std::string::npos && shown.find('\n') == std::string::npos);
    require(display_width(fit_end(shown, width, charset)) <= width);
    require(display_width(fit_middle(shown, width, charset)) <= width);
    require(display_width(pad_right(shown, width)) >= width);
  }
  static_cast<void>(csv_field(std::string(text)));
  static_cast<void>(crosstalk::shell_quoted(std::string(text)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Arguments arguments = arguments_of(text);
  parse_all(arguments);
  lay_out(text, size == 0 ? 0 : data[0]);
  return 0;
}
