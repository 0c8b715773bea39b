// SPDX-License-Identifier: Apache-2.0
#include "driver/options/view_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/number.h"

namespace crosstalk::driver {

void add_format_option(CLI::App& app, ViewTexts& texts, const std::string& forms) {
  app.add_option("--format", texts.format, "Form: " + forms + " [text]")->type_name("FORMAT");
}

void add_sysroot_option(CLI::App& app, std::string& sysroot) {
  const auto is_directory = [](const std::string& path) {
    std::error_code error;
    return path.empty() || std::filesystem::is_directory(path, error) ? std::string()
                                                                      : path + ": there is no such directory";
  };
  app.add_option("--sysroot", sysroot, "Directory to search first for program files and debug files")
      ->type_name("DIR")
      ->check(is_directory, "");
}

void add_color_option(CLI::App& app, std::string& color) {
  app.add_option("--color", color, "Colours: auto, always, never [auto]")->type_name("WHEN");
}

void add_verbose_option(CLI::App& app, int& verbosity) {
  app.add_flag("-v,--verbose", verbosity, "Print progress details on standard error")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_view_options(CLI::App& app, ViewTexts& texts, std::string& sysroot, int& verbosity) {
  add_sysroot_option(app, sysroot);
  app.add_flag("--no-pager", texts.no_pager, "Do not page text on a terminal");
  add_color_option(app, texts.color);
  add_verbose_option(app, verbosity);
}

Result<void> choose_profile(const std::string& input, const std::string& positional, std::string& chosen) {
  if (!input.empty() && !positional.empty()) {
    return fail(ErrorCode::invalid_argument, "two profiles are named, " + input + " and " + positional + "; name one");
  }
  chosen = !input.empty() ? input : !positional.empty() ? positional : chosen;
  return {};
}

Result<attribution::MinCost> parse_min_cost(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> units = {
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"%", 0.01}}};
  std::string_view suffix = text;
  const auto number = take_leading<double>(suffix);
  suffix.remove_prefix(std::min(suffix.find_first_not_of(' '), suffix.size()));
  const auto* const unit =
      std::find_if(units.begin(), units.end(), [suffix](const auto& candidate) { return candidate.first == suffix; });
  if (!number || unit == units.end() || !(*number >= 0) || std::isinf(*number)) {
    return fail(ErrorCode::invalid_argument, "--min-cost: '" + text +
                                                 "' is no cost; write seconds, like 0.5s or 20ms, or per cent of the "
                                                 "CPU time, like 5%");
  }
  return attribution::MinCost{*number * unit->second, suffix == "%", text};
}

}  // namespace crosstalk::driver
