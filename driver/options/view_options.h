// SPDX-License-Identifier: Apache-2.0
// Command-line options that all subcommands share that show profiles.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "attribution/filter.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace crosstalk::driver {

enum class Format { text, json, csv, svg };
enum class ColorChoice { automatic, always, never };

inline constexpr std::array<std::pair<std::string_view, Format>, 3> format_names = {
    {{"csv", Format::csv}, {"json", Format::json}, {"text", Format::text}}};
inline constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> color_names = {
    {{"always", ColorChoice::always}, {"auto", ColorChoice::automatic}, {"never", ColorChoice::never}}};

/// Option values as text.
struct ViewTexts {
  std::string format = "text", color = "auto";
  bool no_pager = false;
};

/// `forms`: the formats to list in the help.
void add_format_option(CLI::App& app, ViewTexts& texts, const std::string& forms = "text, json, csv");
/// --sysroot, which must be a directory.
void add_sysroot_option(CLI::App& app, std::string& sysroot);
/// -v, once or more.
void add_verbose_option(CLI::App& app, int& verbosity);
/// --color.
void add_color_option(CLI::App& app, std::string& color);
/// --sysroot, --no-pager, --color, --verbose.
void add_view_options(CLI::App& app, ViewTexts& texts, std::string& sysroot, int& verbosity);

/// Sets the profile to read to `input` or to `positional`, whichever is named, if any. Refuses two names.
[[nodiscard]] Result<void> choose_profile(const std::string& input, const std::string& positional, std::string& chosen);

/// Parses a value of --min-cost: "0.5s", "20ms", "5%".
[[nodiscard]] Result<attribution::MinCost> parse_min_cost(const std::string& text);

}  // namespace crosstalk::driver
