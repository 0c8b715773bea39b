// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/subcommands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "driver/options/suggestion.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {

namespace {

struct Subcommand {
  const char* name;
  const char* what;
  int (*run)(const Arguments&);
};

constexpr auto subcommands = std::to_array<Subcommand>({
    {"record", "run a command, or attach to processes, and write a profile", run_record},
    {"report", "show a profile as text, JSON or CSV", run_report},
    {"top", "watch live who communicates, in a terminal", run_top},
    {"import", "make a profile from a recording of perf", run_import},
    {"export", "write a profile for pprof and its readers, or for flame graphs", run_export},
    {"diff", "compare two profiles, before and after a change", run_diff},
    {"roofline", "compare loops with the limits of the machine", run_roofline},
    {"calibrate", "measure the peaks of this machine, for reports and rooflines", run_calibrate},
    {"service", "ask the daemon for its services and their profiles", run_service},
    {"doctor", "show what can be observed here, and how to allow more", run_doctor},
});

std::string help() {
  std::string text =
      "crosstalk shows which threads of a program communicate through which cache lines, whether the\n"
      "sharing is true or false, in which source lines and variables, and what it costs. It samples, so\n"
      "the program runs at nearly full speed. It needs no rebuild and no hardware counters.\n"
      "\n"
      "Usage: crosstalk SUBCOMMAND [OPTION]... [ARGUMENT]...\n"
      "\n"
      "Subcommands:\n";
  for (const Subcommand& subcommand : subcommands) {
    const std::string name = subcommand.name;
    text += "  " + name + std::string(11 - name.size(), ' ') + subcommand.what + "\n";
  }
  text +=
      "\n"
      "Options:\n"
      "  -h, --help     show this help; crosstalk SUBCOMMAND --help shows a subcommand's\n"
      "  --version      show the version\n"
      "\n"
      "Begin with:\n"
      "  crosstalk record ./program arguments     writes crosstalk.db\n"
      "  crosstalk report                         shows it\n"
      "\n"
      "Build the program with -g: then the report names source lines and struct fields.\n"
      "More: man crosstalk\n";
  return text;
}

const Subcommand* find(const std::string& name) {
  const auto* const found =
      std::find_if(subcommands.begin(), subcommands.end(), [&](const Subcommand& s) { return s.name == name; });
  return found == subcommands.end() ? nullptr : found;
}

}  // namespace

int run(const Arguments& arguments) {
  start_logging({});
  if (arguments.empty()) {
    std::fputs(help().c_str(), stderr);  // no subcommand: standard output stays clean
    return exit_refused;
  }
  const std::string& first = arguments.front();
  if (first == "--version") {
    std::puts("crosstalk " CROSSTALK_VERSION);
    return exit_ok;
  }
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    std::fputs(help().c_str(), stdout);
    return exit_ok;
  }
  if (first == "help") {
    const Subcommand* const about = find(arguments[1]);
    if (about != nullptr) {
      return about->run({"--help"});
    }
  }
  const Subcommand* const subcommand = find(first);
  if (subcommand == nullptr) {
    const std::string& given = first == "help" ? arguments[1] : first;
    std::vector<std::string> known = {"help", "--help", "--version"};
    for (const Subcommand& each : subcommands) {
      known.emplace_back(each.name);
    }
    log_error("there is no " + std::string(first.starts_with('-') ? "option " : "subcommand ") + "'" + given + "'" +
              remedy_for(given, known, "crosstalk --help"));
    return exit_refused;
  }
  return subcommand->run(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace crosstalk::driver
