// SPDX-License-Identifier: Apache-2.0
// `crosstalk service`: what crosstalkd watches, and its profiles.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/options/service_options.h"
#include "driver/service/connection.h"
#include "driver/terminal/layout.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {
namespace {

using Json = nlohmann::json;

service::Request request_for(const ServiceCommand& command) {
  service::Request request;
  request.kind = command.action == ServiceAction::profiles ? service::RequestKind::profiles
                 : command.action == ServiceAction::fetch  ? service::RequestKind::fetch
                                                           : service::RequestKind::status;
  request.service = command.service;
  request.profile = command.profile;
  return request;
}

std::string numbers_of(const Json& list) {
  std::string text;
  for (const Json& each : list) {
    text += (text.empty() ? "" : ", ") + each.dump();
  }
  return text.empty() ? "none" : text;
}

std::string text_of(const Json& value) {
  return clean(value.is_string() ? value.get<std::string>() : "?", Charset::utf8);
}

std::string status_text(const Json& status) {
  const Json services = status.value("services", Json::array());
  const Json sessions = status.value("sessions", Json::array());
  std::string text = fmt::format("crosstalkd {}\n\n", text_of(status.value("version", Json())));
  text += services.empty() ? "No service that you may see is watched (man crosstalkd.toml).\n" : "Services\n";
  for (const Json& service : services) {
    text += fmt::format("  {:<20} {} (processes: {}; budget {:g} %; a profile every {} s)\n",
                        text_of(service.value("name", Json())), text_of(service.value("state", Json())),
                        numbers_of(service.value("pids", Json::array())), 100 * service.value("budget", 0.0),
                        service.value("interval_s", 0));
  }
  text += sessions.empty() ? "\nNo session of yours runs.\n" : "\nSessions\n";
  for (const Json& session : sessions) {
    text += fmt::format("  {:<4} {:<7} processes {} for {} (user {}, budget {:g} %)\n", session.value("id", 0),
                        text_of(session.value("kind", Json())), numbers_of(session.value("pids", Json::array())),
                        seconds_text(session.value("for_s", 0.0)), session.value("user", 0),
                        100 * session.value("budget", 0.0));
  }
  return text;
}

std::string profiles_text(const Json& answer) {
  std::string text;
  for (const Json& profile : answer.value("profiles", Json::array())) {
    const std::time_t written = profile.value("written_unix_s", std::int64_t{0});
    std::tm at{};
    ::localtime_r(&written, &at);
    char when[32] = "";  // NOLINT: strftime's
    std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &at);
    text += fmt::format("{}  {:>10}  {}\n", static_cast<const char*>(when),
                        bytes_text(profile.value("bytes", std::uint64_t{0})), text_of(profile.value("name", Json())));
  }
  return text.empty() ? "There is no finished profile of it yet.\n" : text;
}

Result<void> act(const ServiceCommand& command) {
  const auto channel = service::Channel::connect(daemon_socket());
  const auto answer = channel ? ask(*channel, request_for(command)) : tl::unexpected<Error>(channel.error());
  if (!answer) {
    return tl::unexpected<Error>(answer.error());
  }
  if (command.action == ServiceAction::fetch) {
    auto saved = answer->descriptors.empty() ? fail(ErrorCode::corrupt, "crosstalkd sent no profile")
                                             : save_profile(answer->descriptors.front(), command.output);
    if (saved) {
      log_notice("wrote " + command.output + "; see it with: crosstalk report " + shell_quoted(command.output));
    }
    return saved;
  }
  const Json content = Json::parse(answer->reply.text, nullptr, false);
  if (!content.is_object()) {
    return fail(ErrorCode::corrupt, "crosstalkd's answer has no content");
  }
  const std::string text = command.format == Format::json              ? content.dump(2) + "\n"
                           : command.action == ServiceAction::profiles ? profiles_text(content)
                                                                       : status_text(content);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? Result<void>() : fail(ErrorCode::system, "standard output cannot be written");
}

int ask_service(const ServiceCommand& command) {
  try {
    if (auto acted = act(command); !acted) {
      log_error(acted.error().message);
      return exit_failed;
    }
  } catch (const Json::exception&) {  // a field of another type
    log_error("crosstalkd's answer is none that this version knows; are both of one version?");
    return exit_failed;
  }
  return exit_ok;
}

}  // namespace

int run_service(const Arguments& arguments) { return serve(parse_service(arguments), ask_service); }

}  // namespace crosstalk::driver
