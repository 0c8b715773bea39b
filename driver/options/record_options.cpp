// SPDX-License-Identifier: Apache-2.0
#include "driver/options/record_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "collectors/pmu/counter_groups.h"
#include "driver/options/named_value.h"
#include "driver/options/suggestion.h"

namespace crosstalk::driver {

namespace {

constexpr std::array<std::pair<std::string_view, SourceChoice>, 5> source_names = {{
    {"auto", SourceChoice::automatic},
    {"clock", SourceChoice::clock},
    {"pebs", SourceChoice::pebs},
    {"ibs", SourceChoice::ibs},
    {"ibs-kmod", SourceChoice::ibs_kmod},
}};

constexpr std::array<std::pair<std::string_view, MethodWish>, 3> method_names = {{
    {"auto", MethodWish::automatic},
    {"watch", MethodWish::watch},
    {"probe", MethodWish::probe},
}};

constexpr std::array<std::pair<std::string_view, profile::Partner>, 4> partner_names = {{
    {"auto", profile::Partner::automatic},
    {"board", profile::Partner::board},
    {"next-access", profile::Partner::next_access},
    {"next-store", profile::Partner::next_store},
}};

/// Events of the clock source, with the clock of each.
constexpr std::array<std::pair<std::string_view, profile::ClockKind>, 2> clock_events = {{
    {"task-clock", profile::ClockKind::perf},
    {"thread-timer", profile::ClockKind::posix},
}};

template <class Value, std::size_t size>
std::string name_of(const std::array<std::pair<std::string_view, Value>, size>& names, Value value) {
  const auto* const found =
      std::find_if(names.begin(), names.end(), [value](const auto& candidate) { return candidate.second == value; });
  return found == names.end() ? std::string() : std::string(found->first);
}

/// Option values as text, before they are checked.
struct RecordTexts {
  std::string source = "auto", method = "auto", partner = "auto", period = "4ms", counters = "auto";
  std::optional<std::string> pids, pidfds, owner, switch_output;
  std::optional<std::size_t> switch_most;
  std::optional<double> seconds, delay;  // of --duration, --delay
  std::vector<std::string> events;
  double budget_percent = 3;
  bool children = false, no_children = false, no_lookahead = false, inject = false, waits = false, daemon = false,
       no_daemon = false;
};

constexpr const char* record_examples =
    "Examples:\n"
    "  crosstalk record ./server --port 8080       then run: crosstalk report\n"
    "  crosstalk record -o runs/%h-%p.db -- ./solver -n 8\n"
    "  crosstalk record --period 1ms --budget 5 ./short-run\n"
    "  crosstalk record -p 4711,4712 --duration 10 observes running processes from outside\n"
    "\n"
    "The exit status is the command's own (128+N when signal N ended it), 127 when it was not found,\n"
    "126 when it cannot be executed, 125 when crosstalk refused before it started.\n"
    "Ctrl-C ends the command and still writes the profile. More: man crosstalk-record\n";

/// Adds the options for attaching to processes and watching from outside.
void add_outside_options(CLI::App& app, RecordRequest& request, RecordTexts& texts) {
  app.add_option("-p,--pid", texts.pids,
                 "Observe these running processes from outside; crosstalk changes nothing in them")
      ->type_name("PID[,PID...]");
  app.add_flag("--children", texts.children, "With -p: also observe their child processes, now and later");
  app.add_option("--delay", texts.delay, "Wait S seconds before observing; a command is then observed from outside")
      ->type_name("S");
  app.add_flag("--observer", request.observer, "Observe the command from outside; preload nothing into it");
  app.add_flag("--inject", texts.inject,
               "With -p: load the collector into the process, for names of heap blocks and lookahead");
  app.add_flag("--daemon", texts.daemon, "With -p: let crosstalkd record [if you may not and it runs]");
  app.add_flag("--no-daemon", texts.no_daemon, "Never let crosstalkd record");
  app.add_option("--pidfd", texts.pidfds, "For services, with -p: pidfds of the processes, which must still run then")
      ->type_name("FD[,FD...]");
  app.add_option("--owner", texts.owner, "For services, with -p: observe only processes that belong to this user")
      ->type_name("UID");
  app.add_option("--duration", texts.seconds, "With -p: detach after S seconds [when they end]")->type_name("S");
}

void add_options(CLI::App& app, RecordRequest& request, RecordTexts& texts) {
  app.add_option("-o,--output", request.output,
                 "Profile to write; %p process id, %h host, %t time, %% percent sign [crosstalk.db]")
      ->type_name("FILE");
  app.add_option("--switch-output", texts.switch_output,
                 "Begin a new profile each time this much has passed, in ms, s, m or h: FILE.TIMESTAMP")
      ->type_name("TIME");
  app.add_option("--switch-max-files", texts.switch_most, "With --switch-output: keep the last N profiles [all]")
      ->type_name("N")
      ->check(refuse_negative, "");
  app.add_flag("-q,--quiet", request.quiet, "Print only errors; the profile has the warnings");
  app.add_flag("-v,--verbose", request.verbosity, "Print progress details on standard error")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--source", texts.source, "Source of samples: auto, clock, pebs, ibs, ibs-kmod [auto]")
      ->type_name("SOURCE");
  app.add_option("--event", texts.events,
                 "Event to sample: task-clock (perf), thread-timer (POSIX), a libpfm4 name, or UNIT/TERMS/ [by source]")
      ->type_name("EVENT")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option(
         "--counters", texts.counters,
         "Hardware counters to read: auto, on, off, or a list of quantities or events; not inside a target [auto]")
      ->type_name("WHICH");
  app.add_option("--period", texts.period, "Thread CPU time between two samples, in ns, us, ms or s [4ms]")
      ->type_name("N");
  app.add_option("--budget", texts.budget_percent, "Upper limit of the overhead, in % of the threads' CPU time [3]")
      ->type_name("PCT");
  app.add_option(
         "--method", texts.method,
         "Mechanism to see communication: watch (watchpoints), probe (line probes), auto (the one that works) [auto]")
      ->type_name("METHOD");
  app.add_option("--partner", texts.partner, "Samples that begin a watch: auto, board, next-access, next-store [auto]")
      ->type_name("PARTNER");
  app.add_option("--watchpoints", request.config.watchpoints, "Debug registers to use at most, 0 to 4 [4]")
      ->type_name("N");
  app.add_option("--board-slots", request.config.board_slots,
                 "Number of lines on the bulletin board, a power of two from 16 to 16384 [4096]")
      ->type_name("N");
  app.add_flag("--no-children", texts.no_children, "Do not observe child processes of the command");
  app.add_flag("--no-lookahead", texts.no_lookahead, "Do not interpret code ahead of samples; fewer loops have rates");
  app.add_flag("--waits", texts.waits,
               "Measure how long threads wait for each other: locks, barriers, conditions, OpenMP");
  app.add_option("--seed", request.config.seed, "Seed of all random choices; 0: a new one each time [0]")
      ->type_name("N")
      ->check(refuse_negative, "");
  app.add_option("--heap-threshold", request.config.heap_threshold,
                 "Smallest heap block to name, in bytes; 0: as the budget allows [0]")
      ->type_name("BYTES")
      ->check(refuse_negative, "");
  add_outside_options(app, request, texts);
}

/// Stores the events. A name that is no clock's is checked later, against the machine's events.
Result<void> choose_events(const std::vector<std::string>& events, RecordRequest& request) {
  profile::ClockKind& chosen = request.config.clock;
  for (const std::string& event : events) {
    const auto clock = named("--event", clock_events, event);
    if (!clock && request.source == SourceChoice::clock) {
      return tl::unexpected<Error>(clock.error());
    }
    if (!clock) {
      request.memory_events.push_back(event);
    } else if (chosen != profile::ClockKind::automatic && chosen != *clock) {
      return fail(ErrorCode::invalid_argument, "--event: the clock source samples one event at a time");
    } else {
      chosen = *clock;
    }
  }
  return {};
}

Result<void> choose_counters(const std::string& text, RecordRequest& request) {
  request.counters = text == "auto" ? CounterChoice::automatic : text == "off" ? CounterChoice::off : CounterChoice::on;
  if (text == "auto" || text == "off" || text == "on") {
    return {};
  }
  request.counter_names = collectors::counter_names(text);
  for (const std::string& name : request.counter_names) {
    if (name.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--counters: there is an empty name in '" + text + "'; give auto, on, off, or names with commas");
    }
  }
  return {};
}

Result<void> judge(const RecordTexts& texts, RecordRequest& request) {
  const auto source = named("--source", source_names, texts.source);
  const auto method = named("--method", method_names, texts.method);
  const auto partner = named("--partner", partner_names, texts.partner);
  const auto period = parse_period(texts.period);
  if (const auto checked = check_all(source, method, partner, period); !checked) {
    return checked;
  }
  request.source = *source;
  request.method = *method;
  request.config.partner = *partner;
  request.config.period_ns = *period;
  if (!(texts.budget_percent > 0 && texts.budget_percent <= 100)) {
    return fail(ErrorCode::invalid_argument, "--budget: choose more than 0 and at most 100 percent");
  }
  request.config.budget = texts.budget_percent / 100;
  if (request.config.watchpoints > 4) {
    return fail(ErrorCode::invalid_argument, "--watchpoints: x86-64 has 4 debug registers; choose 0 to 4");
  }
  if (const std::uint32_t slots = request.config.board_slots;
      !std::has_single_bit(slots) || slots < profile::board_slots_least || slots > profile::board_slots_most) {
    return fail(ErrorCode::invalid_argument,
                "--board-slots: " + std::to_string(slots) + " is no power of two from 16 to 16384; choose 4096, say");
  }
  request.config.follow_children = texts.no_children ? 0 : 1;
  request.config.measure_waits = texts.waits ? 1 : 0;
  request.config.lookahead = texts.no_lookahead ? 0 : 1;
  if (request.output.empty()) {
    return fail(ErrorCode::invalid_argument, "--output: the name is empty");
  }
  if (auto chosen = choose_counters(texts.counters, request); !chosen) {
    return chosen;
  }
  return choose_events(texts.events, request);
}

Result<void> judge_switches(const RecordTexts& texts, RecordRequest& request) {
  if (texts.switch_most && !texts.switch_output) {
    return fail(ErrorCode::invalid_argument, "--switch-max-files goes with --switch-output: else there is one profile");
  }
  if (texts.switch_most && *texts.switch_most == 0) {
    return fail(ErrorCode::invalid_argument, "--switch-max-files: 0 keeps no profile; choose 1 or more");
  }
  if (texts.switch_output) {
    const auto interval = parse_interval("--switch-output", *texts.switch_output);
    if (!interval) {
      return tl::unexpected<Error>(interval.error());
    }
    request.switch_ns = *interval;
    request.switch_most = texts.switch_most.value_or(0);
  }
  return {};
}

/// Returns a whole number of at least `least`; nullopt: it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text, Number least) {
  const auto number = whole_number<Number>(text);
  return number && *number >= least ? number : std::nullopt;
}

/// Returns different numbers that are separated by commas. `option` and `what` are for the error.
Result<std::vector<int>> numbers_in(std::string_view text, int least, const std::string& option,
                                    const std::string& what) {
  std::vector<int> numbers;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string word(text.substr(0, comma));
    const std::optional<int> number = number_in(word, least);
    if (!number) {
      return fail(ErrorCode::invalid_argument, option + ": '" + word + "' is no " + what + "; give a number " +
                                                   (least > 0 ? "above 0" : "from 0 on") + ", or several with commas");
    }
    if (std::find(numbers.begin(), numbers.end(), *number) != numbers.end()) {
      return fail(ErrorCode::invalid_argument, option + ": " + word + " is named twice");
    }
    numbers.push_back(*number);
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return numbers;
}

/// Converts seconds to ns; absent is 0.
Result<std::uint64_t> nanoseconds(const char* option, const std::optional<double>& seconds) {
  constexpr double longest_s = 1e9;
  constexpr double ns = 1e9;
  if (seconds && !(*seconds > 0 && *seconds <= longest_s)) {
    return fail(ErrorCode::invalid_argument, std::string(option) + ": choose more than 0 seconds");
  }
  return static_cast<std::uint64_t>(seconds.value_or(0) * ns);
}

Result<void> judge_times(const RecordTexts& texts, RecordRequest& request) {
  if (texts.seconds && !texts.pids) {
    return fail(ErrorCode::invalid_argument,
                "--duration goes with -p: a command that was launched is recorded to its end");
  }
  const auto duration_ns = nanoseconds("--duration", texts.seconds);
  const auto delay_ns = nanoseconds("--delay", texts.delay);
  if (!duration_ns || !delay_ns) {
    return tl::unexpected<Error>(duration_ns ? delay_ns.error() : duration_ns.error());
  }
  request.duration_ns = *duration_ns;
  request.delay_ns = *delay_ns;
  return {};
}

Result<void> judge_injection(const RecordTexts& texts, RecordRequest& request) {
  request.inject = texts.inject;
  if (texts.inject && !request.memory_events.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--inject: events by name are for what is watched from outside; leave them out, or --inject");
  }
  if (texts.inject && request.counters == CounterChoice::on) {
    return fail(ErrorCode::invalid_argument,
                "--inject: hardware counters are read from outside; leave --counters out, or --inject");
  }
  if (texts.inject && texts.children) {
    return fail(ErrorCode::invalid_argument, "--inject: the collector is brought into one process, not its children");
  }
  if (texts.inject && request.pids.size() > 1) {
    return fail(ErrorCode::invalid_argument, "--inject: the collector is brought into one process at a time");
  }
  if (request.config.clock == profile::ClockKind::posix && !texts.inject) {
    return fail(ErrorCode::invalid_argument,
                "-p: the event thread-timer is for commands that are launched, and for --inject");
  }
  return {};
}

/// Takes the options with which a service proves whose processes it attaches to.
Result<void> judge_identity(const RecordTexts& texts, RecordRequest& request) {
  if (texts.pidfds) {
    auto pidfds = numbers_in(*texts.pidfds, 0, "--pidfd", "descriptor");
    if (!pidfds) {
      return tl::unexpected<Error>(pidfds.error());
    }
    if (pidfds->size() != request.pids.size()) {
      return fail(ErrorCode::invalid_argument, "--pidfd: there are " + std::to_string(pidfds->size()) +
                                                   " descriptors and " + std::to_string(request.pids.size()) +
                                                   " processes; give one for each of -p, in the same order");
    }
    request.pidfds = std::move(*pidfds);
  }
  if (texts.owner) {
    request.owner = number_in<uid_t>(*texts.owner, 0);
    if (!request.owner) {
      return fail(ErrorCode::invalid_argument,
                  "--owner: '" + *texts.owner + "' is no user id; give a number from 0 on");
    }
  }
  return {};
}

/// Checks the options for attaching.
Result<void> judge_attachment(const RecordTexts& texts, RecordRequest& request) {
  if (texts.children && texts.no_children) {
    return fail(ErrorCode::invalid_argument, "--children: with --no-children it says nothing; choose one");
  }
  if (texts.inject && !texts.pids) {
    return fail(ErrorCode::invalid_argument,
                "--inject goes with -p: a command that is launched has the collector in it");
  }
  if (texts.daemon && (texts.no_daemon || !texts.pids)) {
    return fail(ErrorCode::invalid_argument, texts.no_daemon ? "--daemon: with --no-daemon it says nothing; choose one"
                                                             : "--daemon goes with -p: crosstalkd launches no command");
  }
  request.daemon = texts.daemon ? DaemonWish::always : texts.no_daemon ? DaemonWish::never : DaemonWish::automatic;
  if ((texts.pidfds || texts.owner) && (texts.inject || !texts.pids)) {
    const std::string option = texts.pidfds ? "--pidfd" : "--owner";
    return fail(ErrorCode::invalid_argument,
                option + (texts.inject ? ": it is for what is watched from outside; leave it out, or --inject"
                                       : " goes with -p: a command that is launched is the recorder's own"));
  }
  if (auto judged = judge_times(texts, request); !judged || !texts.pids) {
    return judged;
  }
  auto pids = numbers_in(*texts.pids, 1, "-p", "process id");
  if (!pids) {
    return tl::unexpected<Error>(pids.error());
  }
  if (!request.command.empty()) {
    return fail(ErrorCode::invalid_argument, "-p: attach to processes or run a command, not both");
  }
  if (request.observer && texts.inject) {
    return fail(ErrorCode::invalid_argument,
                "--inject brings the collector into the process, --observer keeps it out; choose one");
  }
  request.pids = std::move(*pids);
  request.attach_children = texts.children;
  if (auto judged = judge_identity(texts, request); !judged) {
    return judged;
  }
  return judge_injection(texts, request);
}

}  // namespace

Result<Parsed<RecordRequest>> parse_record(const Arguments& arguments) {
  CLI::App app(
      "Runs a command, observes which of its threads communicate through which cache lines and\n"
      "where their time goes, and writes a profile.\n",
      "crosstalk record");
  describe(
      app,
      "crosstalk record [OPTION]... [--] COMMAND [ARGUMENT]...\n       crosstalk record [OPTION]... -p PID[,PID...]",
      record_examples);
  app.prefix_command();
  RecordRequest request;
  RecordTexts texts;
  add_options(app, request, texts);
  return parse_request(app, arguments, request, [&]() -> Result<void> {
    auto command = command_in(app);
    if (!command) {
      return tl::unexpected<Error>(command.error());
    }
    request.command = std::move(*command);
    if (auto judged = judge(texts, request); !judged) {
      return judged;
    }
    if (auto judged = judge_switches(texts, request); !judged) {
      return judged;
    }
    if (auto judged = judge_attachment(texts, request); !judged) {
      return judged;
    }
    return request.command.empty() && request.pids.empty()
               ? fail(ErrorCode::invalid_argument, "there is no command to record; see crosstalk record --help")
               : Result<void>();
  });
}

std::string method_word(MethodWish method) { return name_of(method_names, method); }
std::string partner_word(profile::Partner partner) { return name_of(partner_names, partner); }

std::string source_name(SourceChoice source) { return name_of(source_names, source); }

}  // namespace crosstalk::driver
