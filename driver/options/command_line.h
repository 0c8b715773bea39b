// SPDX-License-Identifier: Apache-2.0
// Parts that the command lines of all subcommands share. Parsing is pure: it prints nothing, never exits and changes
// nothing, so it can be tested and fuzzed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/shell_quoted.h"

namespace CLI {
class App;
}

namespace crosstalk::driver {

using Arguments = std::vector<std::string>;  // without the names of the program and the subcommand

/// crosstalk's own exit statuses; `record` passes the command's on otherwise (contract in crosstalk-record(1)).
enum ExitStatus : int {
  exit_ok = 0,
  exit_failed = 1,     // a report could not be made
  exit_refused = 125,  // crosstalk declined before the command started, or a bad command line
  exit_not_executable = 126,
  exit_not_found = 127,
};

/// Returns the exit status for an error before a command starts.
[[nodiscard]] int exit_status_of(ErrorCode code);

/// Result of a command line: either a request, or text (of --help) to print to standard output.
template <class Request>
struct Parsed {
  std::optional<Request> request;
  std::string text;
};

/// Gives all subcommands the same help layout. `usage` follows "Usage: "; `examples` is printed as it is at the end.
void describe(CLI::App& app, const std::string& usage, const std::string& examples);

struct ParseOutcome {
  bool help = false;
  std::string text;  // when help
};
/// Runs the parser. An error holds the parser's complaint and a hint at --help.
[[nodiscard]] Result<ParseOutcome> parse(CLI::App& app, const Arguments& arguments);

/// Returns the command to run, which is the rest of the arguments: after an optional "--", or from the first word on.
/// The parser's options must end there (prefix_command).
[[nodiscard]] Result<std::vector<std::string>> command_in(const CLI::App& app);

/// Runs the parser, whose options write to `request`, then `judge`: () -> Result<void>, which checks and completes it.
template <class Request, class Judge>
[[nodiscard]] Result<Parsed<Request>> parse_request(CLI::App& app, const Arguments& arguments, Request& request,
                                                    Judge judge) {
  const auto outcome = parse(app, arguments);
  if (!outcome) {
    return tl::unexpected<Error>(outcome.error());
  }
  if (outcome->help) {
    return Parsed<Request>{std::nullopt, outcome->text};
  }
  if (const Result<void> judged = judge(); !judged) {
    return tl::unexpected<Error>(judged.error());
  }
  return Parsed<Request>{std::move(request), ""};
}

/// A check of an option: rejects negative text, because the parser would read -1 as the largest number.
[[nodiscard]] std::string refuse_negative(const std::string& text);

/// "4000000", "4000000ns", "4000us", "4ms", "1s" -> nanoseconds. Refused: 0, less than 10 us (a clock cannot keep
/// up), more than 10 s, anything else.
[[nodiscard]] Result<std::uint64_t> parse_period(const std::string& text);

/// "500ms", "2s", "5m", "1h" -> nanoseconds. Refused: less than 10 ms, more than 24 hours, anything else. `option`:
/// named in the error.
[[nodiscard]] Result<std::uint64_t> parse_interval(const std::string& option, const std::string& text);

}  // namespace crosstalk::driver
