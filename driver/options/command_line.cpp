// SPDX-License-Identifier: Apache-2.0
#include "driver/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number.h"
#include "driver/options/suggestion.h"

namespace crosstalk::driver {

namespace {

/// CLI11's layout, with a foot that is printed as it is and no environment or config notes.
class HelpLayout : public CLI::Formatter {
 public:
  explicit HelpLayout(std::string usage) : usage_(std::move(usage)) {
    column_width(26);
    label("OPTIONS", "options");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string& type = option->get_type_name();
    return option->get_type_size() == 0 || type.empty() ? "" : " " + type;
  }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: " + usage_ + "\n";
  }
  std::string make_positionals(const CLI::App* /*app*/) const override { return ""; }  // the usage shows them
  std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }

 private:
  std::string usage_;
};

/// Returns a hint for the first of `arguments` that looks like an option but is unknown.
std::string remedy_for_unknown(const CLI::App& app, const Arguments& arguments) {
  const std::vector<std::string> known = options_of(app);
  std::string unknown;
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name == "--" || !unknown.empty()) {
      break;
    }
    unknown = name.starts_with("--") && std::find(known.begin(), known.end(), name) == known.end() ? name : "";
  }
  return remedy_for(unknown, known, app.get_name() + " --help");
}

using Unit = std::pair<std::string_view, std::uint64_t>;

/// Returns a whole number with one of these units in the smallest one, at most 2^64 - 1; nullopt: it is none.
std::optional<std::uint64_t> in_units(const std::string& text, std::span<const Unit> units) {
  std::string_view suffix = text;
  const auto number = take_leading<std::uint64_t>(suffix);
  const auto unit =
      std::find_if(units.begin(), units.end(), [suffix](const Unit& known) { return known.first == suffix; });
  if (!number || unit == units.end()) {
    return std::nullopt;
  }
  return *number > UINT64_MAX / unit->second ? UINT64_MAX : *number * unit->second;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

int exit_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return exit_not_found;
    case ErrorCode::not_executable:
      return exit_not_executable;
    default:
      return exit_refused;
  }
}

void describe(CLI::App& app, const std::string& usage, const std::string& examples) {
  app.formatter(std::make_shared<HelpLayout>(usage));
  app.footer(examples);
  app.set_help_flag("-h,--help", "Show this help");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Result<ParseOutcome> parse(CLI::App& app, const Arguments& arguments) {
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForHelp&) {
    return ParseOutcome{true, app.help()};
  } catch (const CLI::ExtrasError& error) {
    return fail(ErrorCode::invalid_argument, one_line(error.what()) + remedy_for_unknown(app, arguments));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, one_line(error.what()) + "; see " + app.get_name() + " --help");
  }
  return ParseOutcome{};
}

Result<std::vector<std::string>> command_in(const CLI::App& app) {
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with('-')) {
    const std::string name = rest.front().substr(0, rest.front().find('='));
    return fail(ErrorCode::invalid_argument,
                "there is no option " + name + remedy_for(name, options_of(app), app.get_name() + " --help"));
  }
  return rest;
}

std::string refuse_negative(const std::string& text) {
  return text.starts_with('-') ? "'" + text + "' is negative; give a whole number from 0 on" : std::string();
}

Result<std::uint64_t> parse_period(const std::string& text) {
  constexpr std::array<Unit, 5> units = {{{"", 1}, {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  const auto ns = in_units(text, units);
  if (!ns) {
    return fail(ErrorCode::invalid_argument,
                "--period: '" + text + "' is no time; write a whole number with ns, us, ms or s, like 4ms");
  }
  constexpr std::uint64_t least = 10'000;
  constexpr std::uint64_t most = 10'000'000'000;
  if (*ns < least || *ns > most) {
    return fail(ErrorCode::invalid_argument, "--period: '" + text + "' is out of range; choose 10us to 10s");
  }
  return *ns;
}

Result<std::uint64_t> parse_interval(const std::string& option, const std::string& text) {
  constexpr std::uint64_t s = 1'000'000'000;
  constexpr std::array<Unit, 4> units = {{{"ms", 1'000'000}, {"s", s}, {"m", 60 * s}, {"h", 3600 * s}}};
  const auto ns = in_units(text, units);
  if (!ns) {
    return fail(ErrorCode::invalid_argument,
                option + ": '" + text + "' is no time; write a whole number with ms, s, m or h, like 60s");
  }
  constexpr std::uint64_t least = 10'000'000;
  constexpr std::uint64_t most = 24 * 3600 * s;
  if (*ns < least || *ns > most) {
    return fail(ErrorCode::invalid_argument, option + ": '" + text + "' is out of range; choose 10ms to 24h");
  }
  return *ns;
}

}  // namespace crosstalk::driver
