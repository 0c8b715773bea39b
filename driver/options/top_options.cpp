// SPDX-License-Identifier: Apache-2.0
#include "driver/options/top_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <utility>

#include "driver/options/named_value.h"
#include "driver/options/record_options.h"
#include "driver/options/suggestion.h"

namespace crosstalk::driver {

namespace {

constexpr const char* top_examples =
    "Examples:\n"
    "  crosstalk top -p 4711                    who talks to whom in this process, now\n"
    "  crosstalk top -p 4711 --children         and in its child processes\n"
    "  crosstalk top -- ./server --port 8080    starts the command, which q ends\n"
    "  crosstalk top -p 4711 --once             one picture as text, for scripts\n"
    "  crosstalk top -p 4711 --json -n 5 | jq '.objects[0]'\n"
    "  crosstalk top -p 4711 --json > seen.jsonl; crosstalk top --from seen.jsonl\n"
    "\n"
    "Keys: 1-5 the table, arrows the row, Enter opens it (an object's lines, a line's source),\n"
    "m the matrix, s sorts, / filters, t keeps one thread, p pauses, h helps, q quits.\n"
    "Without a terminal it does as with --once. The exit status is 0, 1 when measuring failed,\n"
    "125 when crosstalk refused before it began. More: man crosstalk-top\n";

/// Options that the recorder takes, with their values as text.
struct Passed {
  const char* name;
  const char* what;
  const char* type;  // null: a flag
};
constexpr std::array<Passed, 12> passed = {{
    {"--children", "With -p: also observe their child processes, now and later", nullptr},
    {"--no-children", "Do not observe child processes of the command", nullptr},
    {"--observer", "Observe the command from outside; preload nothing into it", nullptr},
    {"--inject", "With -p: load the collector into the process, for names of heap blocks", nullptr},
    {"--budget", "Upper limit of the overhead, in % of the threads' CPU time [3]", "PCT"},
    {"--method", "Mechanism to see communication: watch, probe, auto (the one that works) [auto]", "METHOD"},
    {"--partner", "Samples that begin a watch: auto, board, next-access, next-store [auto]", "PARTNER"},
    {"--source", "Source of samples: auto, clock, pebs, ibs, ibs-kmod [auto]", "SOURCE"},
    {"--event", "Event to sample: task-clock, thread-timer, a libpfm4 name [by source]", "EVENT"},
    {"--period", "Thread CPU time between two samples, in ns, us, ms or s [4ms]", "N"},
    {"--pidfd", "For services, with -p: pidfds of the processes, which must still run then", "FD[,FD...]"},
    {"--owner", "For services, with -p: observe only processes that belong to this user", "UID"},
}};

struct TopTexts {
  std::optional<std::string> pids;
  std::array<std::optional<std::string>, passed.size()> values;
  std::array<bool, passed.size()> flags{};
  std::string color = "auto";
  bool daemon = false, no_daemon = false;
};

void add_options(CLI::App& app, TopRequest& request, TopTexts& texts) {
  app.add_option("-p,--pid", texts.pids, "Observe these running processes; crosstalk changes nothing in them")
      ->type_name("PID[,PID...]");
  app.add_option("--refresh", request.refresh_s, "Time between two pictures, 0.5 to 60 seconds [2]")->type_name("S");
  app.add_option("--window", request.window_s, "Time that figures cover, up to 600 seconds [10]")->type_name("S");
  app.add_flag("--once", request.once, "Print one picture as text, after one window");
  app.add_flag("--json", request.json, "Print each picture as one line of JSON (crosstalk.top/1)");
  app.add_option("-n,--count", request.count, "End after so many pictures")
      ->type_name("COUNT")
      ->check(refuse_negative, "");
  app.add_option("--from", request.from, "Show the pictures of a file of --json; -: of standard input")
      ->type_name("FILE");
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (passed[i].type == nullptr) {
      app.add_flag(passed[i].name, texts.flags[i], passed[i].what);
    } else {
      app.add_option(passed[i].name, texts.values[i], passed[i].what)->type_name(passed[i].type);
    }
  }
  app.add_flag("--daemon", texts.daemon, "With -p: let crosstalkd observe [if you may not and it runs]");
  app.add_flag("--no-daemon", texts.no_daemon, "Never let crosstalkd observe");
  add_sysroot_option(app, request.sysroot);
  add_color_option(app, texts.color);
}

/// The recorder's part of the options.
std::vector<std::string> recorder_options(const TopTexts& texts) {
  std::vector<std::string> options;
  if (texts.pids) {
    options.insert(options.end(), {"-p", *texts.pids});
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (texts.flags[i]) {
      options.emplace_back(passed[i].name);
    } else if (texts.values[i]) {
      options.insert(options.end(), {passed[i].name, *texts.values[i]});
    }
  }
  return options;
}

Result<void> judge_times(const TopRequest& request) {
  constexpr double least_s = 0.5, most_refresh_s = 60, most_window_s = 600;
  if (!(request.refresh_s >= least_s && request.refresh_s <= most_refresh_s)) {
    return fail(ErrorCode::invalid_argument, "--refresh: choose 0.5 to 60 seconds");
  }
  if (!(request.window_s >= request.refresh_s && request.window_s <= most_window_s)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--window: choose at least one refresh ({:g} s), and at most 600 seconds", request.refresh_s));
  }
  return {};
}

/// Checks the recorder's options as the recorder does.
Result<void> judge_recording(TopRequest& request) {
  Arguments arguments = request.recorder;
  if (!request.command.empty()) {
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), request.command.begin(), request.command.end());
  }
  const auto recording = parse_record(arguments);
  if (recording && recording->request) {
    request.recording = *recording->request;
  }
  return recording ? Result<void>() : tl::unexpected<Error>(recording.error());
}

Result<void> judge(const TopTexts& texts, TopRequest& request) {
  const auto color = named("--color", color_names, texts.color);
  if (!color) {
    return tl::unexpected<Error>(color.error());
  }
  request.color = *color;
  request.recorder = recorder_options(texts);
  if (texts.daemon && (texts.no_daemon || !texts.pids)) {
    return fail(ErrorCode::invalid_argument, texts.no_daemon ? "--daemon: with --no-daemon it says nothing; choose one"
                                                             : "--daemon goes with -p: crosstalkd launches no command");
  }
  request.daemon = texts.daemon ? DaemonWish::always : texts.no_daemon ? DaemonWish::never : DaemonWish::automatic;
  if (request.once && request.json) {
    return fail(ErrorCode::invalid_argument, "--once prints text, --json lines of JSON; choose one");
  }
  if (!request.from.empty()) {
    if (!request.recorder.empty() || !request.command.empty() || request.json) {
      return fail(
          ErrorCode::invalid_argument,
          "--from shows what was measured before; leave -p, the command, --json and the recorder's options out");
    }
    return judge_times(request);
  }
  if (request.command.empty() && !texts.pids) {
    return fail(ErrorCode::invalid_argument,
                "there is nothing to observe: name a process (-p PID) or a command; see crosstalk top --help");
  }
  const auto times = judge_times(request);
  return times ? judge_recording(request) : times;
}

}  // namespace

Result<Parsed<TopRequest>> parse_top(const Arguments& arguments) {
  CLI::App app(
      "Shows live which threads of running processes, or of a command, communicate through which\n"
      "cache lines, in which source lines and variables, and where their time goes.\n",
      "crosstalk top");
  describe(app,
           "crosstalk top [OPTION]... -p PID[,PID...]\n       crosstalk top [OPTION]... [--] COMMAND [ARGUMENT]...",
           top_examples);
  app.prefix_command();
  TopRequest request;
  TopTexts texts;
  add_options(app, request, texts);
  return parse_request(app, arguments, request, [&]() -> Result<void> {
    auto command = command_in(app);
    if (!command) {
      return tl::unexpected<Error>(command.error());
    }
    request.command = std::move(*command);
    for (const char* const option : {"--from", "--pid"}) {
      if (app.count(option) > 0 && app.get_option(option)->as<std::string>().empty()) {
        return fail(ErrorCode::invalid_argument, std::string(option) + ": the value is empty; name one");
      }
    }
    return judge(texts, request);
  });
}

}  // namespace crosstalk::driver
