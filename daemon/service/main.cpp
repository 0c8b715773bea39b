// SPDX-License-Identifier: Apache-2.0
// crosstalkd: the daemon.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "daemon/service/daemon.h"
#include "daemon/service/journal.h"
#include "daemon/service/messages.h"
#include "daemon/service/service_manager.h"

namespace crosstalk::service {
namespace {

constexpr const char* default_configuration = "/etc/crosstalk/crosstalkd.toml";
constexpr int exit_failed = 1;
constexpr int exit_refused = 125;

struct Options {
  std::string configuration, socket = default_socket, program;
  bool check = false, verbose = false;
};

/// Returns `crosstalk` beside this program, or in the bin directory beside its sbin directory.
std::string find_program() {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string path(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const std::string& candidate : {folder + "/crosstalk", folder + "/../bin/crosstalk"}) {
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

int refuse(const Error& error) {
  log_line(Level::error, error.message);
  return error.code == ErrorCode::invalid_argument ? exit_refused : exit_failed;
}

Result<Configuration> configured(Options& options) {
  if (options.configuration.empty()) {
    if (::access(default_configuration, F_OK) != 0) {
      return Configuration{};
    }
    options.configuration = default_configuration;
  }
  return read_configuration(options.configuration);
}

/// Completes the options with the program that records, if there is one.
Result<void> find_recorder(Options& options) {
  if (options.program.empty() && (options.program = find_program()).empty()) {
    return fail(ErrorCode::not_found, "there is no crosstalk beside crosstalkd; name it with --program");
  }
  if (::access(options.program.c_str(), X_OK) != 0) {
    return fail(ErrorCode::not_found, "--program " + options.program + " cannot be executed: " + std::strerror(errno));
  }
  return {};
}

int serve(Options options) {
  auto configuration = configured(options);
  if (!configuration) {
    return refuse(configuration.error());
  }
  if (options.check) {
    std::printf("crosstalkd: %s is valid: %zu services\n",
                options.configuration.empty() ? "the default configuration" : options.configuration.c_str(),
                configuration->services.size());
    return 0;
  }
  if (const auto found = find_recorder(options); !found) {
    return refuse(found.error());
  }
  ::umask(077);  // profiles are for this user alone
  UniqueFd listener = socket_of_manager();
  const bool own_socket = !listener.valid();
  if (own_socket) {
    auto own = listen_at(options.socket);
    if (!own) {
      return refuse(own.error());
    }
    listener = std::move(*own);
  }
  auto daemon = Daemon::start(std::move(*configuration), {options.configuration, options.program, std::move(listener)});
  if (!daemon) {
    return refuse(daemon.error());
  }
  (*daemon)->run();
  if (own_socket) {
    ::unlink(options.socket.c_str());
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Keeps services recorded, and records processes for users who may not do so themselves.\n"
      "Configuration: man crosstalkd.toml. Clients: crosstalk record, crosstalk top, crosstalk service.\n",
      "crosstalkd");
  Options options;
  app.set_version_flag("--version", "crosstalkd " CROSSTALK_VERSION);
  app.add_option("--config", options.configuration,
                 std::string("Configuration to read [") + default_configuration + "]")
      ->type_name("FILE");
  app.add_option("--socket", options.socket, std::string("Socket to listen at [") + default_socket + "]")
      ->type_name("PATH");
  app.add_option("--program", options.program, "The crosstalk program [beside this one]")->type_name("PATH");
  app.add_flag("--check", options.check, "Check the configuration, and exit");
  app.add_flag("-v,--verbose", options.verbose, "Log details");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "crosstalkd: %s; see crosstalkd --help\n", error.what());
    return exit_refused;
  }
  start_log(options.verbose);
  return serve(std::move(options));
}

}  // namespace
}  // namespace crosstalk::service

int main(int argc, char** argv) {
  try {
    return crosstalk::service::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "crosstalkd: %s\n", error.what());
    return 1;
  }
}
