// SPDX-License-Identifier: Apache-2.0
#include "driver/options/service_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/options/named_value.h"

namespace crosstalk::driver {
namespace {

constexpr const char* service_examples =
    "Actions:\n"
    "  status                   the services that crosstalkd watches, and your sessions [without an action]\n"
    "  profiles SERVICE         the service's profiles, oldest first\n"
    "  fetch SERVICE [PROFILE]  copies a profile here, the newest one unless you name one\n"
    "\n"
    "Examples:\n"
    "  crosstalk service\n"
    "  crosstalk service fetch redis -o redis.db && crosstalk report redis.db\n"
    "\n"
    "The exit status is 0, 1 when the daemon refuses or is not there, 125 for a bad command line.\n"
    "More: man crosstalk-service, man crosstalkd\n";

constexpr std::array<std::pair<std::string_view, ServiceAction>, 3> action_names = {
    {{"status", ServiceAction::status}, {"profiles", ServiceAction::profiles}, {"fetch", ServiceAction::fetch}}};
constexpr std::array<std::pair<std::string_view, Format>, 2> service_formats = {
    {{"json", Format::json}, {"text", Format::text}}};

Result<void> judge_service(const std::vector<std::string>& words, const std::string& format, ServiceCommand& command) {
  const auto form = named("--format", service_formats, format);
  const auto action = named("the action", action_names, words.empty() ? "status" : words.front());
  if (!form || !action) {
    return tl::unexpected<Error>(!form ? form.error() : action.error());
  }
  constexpr std::array<std::pair<std::size_t, std::size_t>, 3> counts = {{{0, 1}, {2, 2}, {2, 3}}};
  const auto [least, most] = counts.at(static_cast<std::size_t>(*action));
  if (words.size() < least || words.size() > most) {
    return fail(ErrorCode::invalid_argument, words.size() < least ? words.front() + ": name a service"
                                                                  : "there is no use for '" + words[most] + "'");
  }
  command.action = *action;
  command.format = *form;
  command.service = words.size() > 1 ? words[1] : "";
  command.profile = words.size() > 2 ? words[2] : "";
  return {};
}

}  // namespace

Result<Parsed<ServiceCommand>> parse_service(const Arguments& arguments) {
  CLI::App app("Asks crosstalkd for the services that it watches, and fetches their profiles.\n", "crosstalk service");
  describe(app, "crosstalk service [OPTION]... [ACTION [SERVICE [PROFILE]]]", service_examples);
  ServiceCommand command;
  std::vector<std::string> words;
  std::string format = "text";
  app.add_option("ACTION", words, "What to do");
  app.add_option("-o,--output", command.output, "With fetch: the file to write [crosstalk.db]")->type_name("FILE");
  app.add_option("--format", format, "Form: text, json [text]")->type_name("FORMAT");
  return parse_request(app, arguments, command, [&] { return judge_service(words, format, command); });
}

}  // namespace crosstalk::driver
