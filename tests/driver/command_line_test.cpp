// SPDX-License-Identifier: Apache-2.0
#include "driver/options/command_line.h"

#include <gtest/gtest.h>

#include "driver/commands/doctor.h"
#include "driver/options/diff_options.h"
#include "driver/options/record_options.h"
#include "driver/options/report_options.h"
#include "driver/options/roofline_options.h"
#include "driver/options/suggestion.h"
#include "driver/options/top_options.h"

namespace crosstalk::driver::command_line_test {
namespace {

RecordRequest recorded(const Arguments& arguments) {
  const auto parsed = parse_record(arguments);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed && parsed->request ? *parsed->request : RecordRequest{};
}

std::string record_error(const Arguments& arguments) {
  const auto parsed = parse_record(arguments);
  EXPECT_FALSE(parsed);
  return parsed ? "" : parsed.error().message;
}

TEST(RecordCommandLine, TakesDefaultsAndACommand) {
  const RecordRequest request = recorded({"./a.out", "-o", "theirs", "--", "x"});
  EXPECT_EQ(request.command, (std::vector<std::string>{"./a.out", "-o", "theirs", "--", "x"}));
  EXPECT_EQ(request.output, "crosstalk.db");
  EXPECT_EQ(request.config.period_ns, 4'000'000U);
  EXPECT_DOUBLE_EQ(request.config.budget, 0.03);
  EXPECT_EQ(request.config.watchpoints, 4U);
  EXPECT_EQ(request.config.board_slots, 4096U);
  EXPECT_EQ(request.config.follow_children, 1U);
  EXPECT_EQ(request.config.lookahead, 1U);
  EXPECT_EQ(request.source, SourceChoice::automatic);
}

TEST(RecordCommandLine, TakesEveryOption) {
  const RecordRequest request = recorded({"-o",
                                          "x-%p.db",
                                          "-q",
                                          "-v",
                                          "-v",
                                          "--source",
                                          "clock",
                                          "--event",
                                          "task-clock",
                                          "--period",
                                          "500us",
                                          "--budget",
                                          "1.5",
                                          "--method",
                                          "probe",
                                          "--partner",
                                          "next-store",
                                          "--watchpoints",
                                          "2",
                                          "--board-slots",
                                          "128",
                                          "--no-children",
                                          "--no-lookahead",
                                          "--seed",
                                          "7",
                                          "--heap-threshold",
                                          "4096",
                                          "--",
                                          "-strange",
                                          "a"});
  EXPECT_EQ(request.output, "x-%p.db");
  EXPECT_TRUE(request.quiet);
  EXPECT_EQ(request.verbosity, 2);
  EXPECT_EQ(request.source, SourceChoice::clock);
  EXPECT_EQ(request.config.clock, profile::ClockKind::perf);
  EXPECT_EQ(request.config.period_ns, 500'000U);
  EXPECT_DOUBLE_EQ(request.config.budget, 0.015);
  EXPECT_EQ(request.method, MethodWish::probe);
  EXPECT_EQ(request.config.partner, profile::Partner::next_store);
  EXPECT_EQ(request.config.watchpoints, 2U);
  EXPECT_EQ(request.config.board_slots, 128U);
  EXPECT_EQ(request.config.follow_children, 0U);
  EXPECT_EQ(request.config.lookahead, 0U);
  EXPECT_EQ(request.config.seed, 7U);
  EXPECT_EQ(request.config.heap_threshold, 4096U);
  EXPECT_EQ(request.command, (std::vector<std::string>{"-strange", "a"}));
}

TEST(RecordCommandLine, CountersAreAutomaticOnOffOrNamed) {
  EXPECT_EQ(recorded({"a"}).counters, CounterChoice::automatic);
  EXPECT_EQ(recorded({"--counters", "off", "a"}).counters, CounterChoice::off);
  EXPECT_EQ(recorded({"--counters", "on", "a"}).counters, CounterChoice::on);
  EXPECT_TRUE(recorded({"--counters", "on", "a"}).counter_names.empty());
  const RecordRequest named = recorded({"--counters", "flops,cpu/event=0xd0,umask=0x21/", "a"});
  EXPECT_EQ(named.counters, CounterChoice::on);
  EXPECT_EQ(named.counter_names, (std::vector<std::string>{"flops", "cpu/event=0xd0,umask=0x21/"}));
  EXPECT_FALSE(parse_record({"--counters", "flops,", "a"}));
  EXPECT_FALSE(parse_record({"--counters", "", "a"}));
  EXPECT_FALSE(parse_record({"--inject", "-p", "1", "--counters", "on"}));
  EXPECT_TRUE(parse_record({"--inject", "-p", "1"}));
}

TEST(RecordCommandLine, ANewProfileMayBeginFromTimeToTime) {
  EXPECT_EQ(recorded({"a"}).switch_ns, 0U);
  const RecordRequest request = recorded({"--switch-output", "60s", "--switch-max-files", "5", "-p", "1"});
  EXPECT_EQ(request.switch_ns, 60'000'000'000U);
  EXPECT_EQ(request.switch_most, 5U);
  EXPECT_EQ(recorded({"--switch-output", "1h", "a"}).switch_most, 0U);
  EXPECT_NE(record_error({"--switch-output", "5", "a"}).find("'5' is no time"), std::string::npos);
  EXPECT_NE(record_error({"--switch-output", "9ms", "a"}).find("choose 10ms to 24h"), std::string::npos);
  EXPECT_NE(record_error({"--switch-max-files", "5", "a"}).find("goes with --switch-output"), std::string::npos);
  EXPECT_NE(record_error({"--switch-output", "1s", "--switch-max-files", "0", "a"}).find("1 or more"),
            std::string::npos);
  EXPECT_FALSE(parse_record({"--switch-output", "1s", "--switch-max-files", "-1", "a"}));
}

TEST(RecordCommandLine, AServiceNamesDescriptorsAndTheUser) {
  EXPECT_FALSE(recorded({"-p", "1"}).owner);
  const RecordRequest request = recorded({"-p", "10,11", "--pidfd", "5,0", "--owner", "4294967294"});
  EXPECT_EQ(request.pidfds, (std::vector<int>{5, 0}));
  EXPECT_EQ(request.owner, 4294967294U);
  EXPECT_EQ(recorded({"-p", "1", "--owner", "0"}).owner, 0U);
  EXPECT_NE(record_error({"-p", "1,2", "--pidfd", "5"}).find("1 descriptors and 2 processes"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1,2", "--pidfd", "5,5"}).find("5 is named twice"), std::string::npos);
  for (const char* const bad : {"", "-1", "x", "5,", "4294967296"}) {
    EXPECT_NE(record_error({"-p", "1", "--pidfd", bad}).find("is no descriptor"), std::string::npos) << bad;
  }
  for (const char* const bad : {"", "-1", "root", "4294967296"}) {
    EXPECT_NE(record_error({"-p", "1", "--owner", bad}).find("is no user id"), std::string::npos) << bad;
  }
  for (const auto& [option, value] : {std::pair{"--pidfd", "5"}, {"--owner", "0"}}) {
    EXPECT_NE(record_error({option, value, "a"}).find(std::string(option) + " goes with -p"), std::string::npos);
    EXPECT_NE(record_error({"-p", "1", "--inject", option, value}).find("or --inject"), std::string::npos);
  }
}

TEST(RecordCommandLine, ACommandMayBeCalledLikeASubcommand) {
  EXPECT_EQ(recorded({"report", "record"}).command, (std::vector<std::string>{"report", "record"}));
}

TEST(RecordCommandLine, TheLastOfARepeatedOptionCounts) {
  EXPECT_EQ(recorded({"-o", "a", "-o", "b", "ls"}).output, "b");
}

TEST(RecordCommandLine, RefusesInOneLineThatNamesTheChoice) {
  EXPECT_NE(record_error({}).find("no command"), std::string::npos);
  EXPECT_NE(record_error({"--"}).find("no command"), std::string::npos);
  EXPECT_NE(record_error({"--bogus", "ls"}).find("--bogus"), std::string::npos);
  EXPECT_NE(record_error({"--bogus", "--", "ls"}).find("--bogus"), std::string::npos);
  EXPECT_NE(record_error({"--method", "board", "ls"}).find("auto, watch, probe"), std::string::npos);
  EXPECT_NE(record_error({"--partner", "magic", "ls"}).find("next-access"), std::string::npos);
  EXPECT_NE(record_error({"--source", "tea", "ls"}).find("clock"), std::string::npos);
  EXPECT_NE(record_error({"--source", "clock", "--event", "cycles", "ls"}).find("task-clock"), std::string::npos);
  EXPECT_NE(record_error({"--event", "task-clock", "--event", "thread-timer", "ls"}).find("one event"),
            std::string::npos);
  EXPECT_NE(record_error({"--watchpoints", "5", "ls"}).find("0 to 4"), std::string::npos);
  EXPECT_NE(record_error({"--seed", "-1", "ls"}).find("--seed: '-1' is negative"), std::string::npos);
  EXPECT_NE(record_error({"--heap-threshold", "-1", "ls"}).find("negative"), std::string::npos);
  for (const char* const budget : {"0", "-1", "101", "nan", "x"}) {
    EXPECT_NE(record_error({"--budget", budget, "ls"}).find("--budget"), std::string::npos) << budget;
  }
  for (const char* const slots : {"0", "8", "1000", "32768", "4294967296", "-16", "x"}) {
    EXPECT_NE(record_error({"--board-slots", slots, "ls"}).find("--board-slots"), std::string::npos) << slots;
  }
  EXPECT_EQ(recorded({"--board-slots", "16", "ls"}).config.board_slots, 16U);
  EXPECT_EQ(recorded({"--board-slots", "16384", "ls"}).config.board_slots, 16384U);
  EXPECT_NE(record_error({"-o", "", "ls"}).find("--output"), std::string::npos);
  EXPECT_NE(record_error({"-o"}).find("--help"), std::string::npos);
}

TEST(RecordCommandLine, TakesProcessesInsteadOfACommand) {
  const RecordRequest request = recorded({"-p", "4711", "--duration", "2.5"});
  EXPECT_EQ(request.pids, std::vector<pid_t>{4711});
  EXPECT_FALSE(request.attach_children);
  EXPECT_EQ(request.duration_ns, 2'500'000'000U);
  EXPECT_TRUE(request.command.empty());
  EXPECT_EQ(recorded({"--pid=1"}).duration_ns, 0U);
  EXPECT_TRUE(recorded({"ls"}).pids.empty());
  const RecordRequest several = recorded({"-p", "3,1,2", "--children"});
  EXPECT_EQ(several.pids, (std::vector<pid_t>{3, 1, 2}));
  EXPECT_TRUE(several.attach_children);
}

TEST(RecordCommandLine, RefusesWhatIsNoAttachment) {
  for (const char* const pid : {"", "0", "-1", "x", "1x", "99999999999", "1,", ",1", "1,,2", "1, 2", "1;2", "1,x"}) {
    EXPECT_NE(record_error({"-p", pid}).find("no process id"), std::string::npos) << pid;
  }
  EXPECT_NE(record_error({"-p", "7,8,7"}).find("7 is named twice"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1", "--children", "--no-children"}).find("choose one"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1", "ls"}).find("not both"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1", "--event", "thread-timer"}).find("thread-timer"), std::string::npos);
  EXPECT_NE(record_error({"--duration", "1", "ls"}).find("-p"), std::string::npos);
  for (const char* const seconds : {"0", "-1", "nan", "1e10", "x"}) {
    EXPECT_NE(record_error({"-p", "1", "--duration", seconds}).find("--duration"), std::string::npos) << seconds;
  }
}

TEST(RecordCommandLine, TakesEventsThatTheMachineWillJudge) {
  const RecordRequest request = recorded({"--event", "cpu/mem-loads/", "--event", "MEM_STORES", "ls"});
  EXPECT_EQ(request.memory_events, (std::vector<std::string>{"cpu/mem-loads/", "MEM_STORES"}));
  EXPECT_EQ(request.config.clock, profile::ClockKind::automatic);
  EXPECT_EQ(request.command, std::vector<std::string>{"ls"});
  const std::string said = record_error({"-p", "1", "--inject", "--event", "MEM_STORES"});
  EXPECT_NE(said.find("are for what is watched from outside"), std::string::npos) << said;
  EXPECT_EQ(recorded({"-p", "1", "--inject", "--source", "ibs"}).source, SourceChoice::ibs);
  EXPECT_EQ(recorded({"-p", "1", "--inject", "--source", "ibs-kmod"}).source, SourceChoice::ibs_kmod);
}

TEST(RecordCommandLine, BringsTheCollectorIntoOneProcess) {
  EXPECT_FALSE(recorded({"-p", "7"}).inject);
  const RecordRequest request = recorded({"-p", "7", "--inject", "--duration", "2", "--event", "thread-timer"});
  EXPECT_TRUE(request.inject);
  EXPECT_EQ(request.pids, std::vector<pid_t>{7});
  EXPECT_NE(record_error({"--inject", "ls"}).find("--inject goes with -p"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1,2", "--inject"}).find("one process at a time"), std::string::npos);
  EXPECT_NE(record_error({"-p", "1", "--inject", "--children"}).find("not its children"), std::string::npos);
}

TEST(RecordCommandLine, HelpIsTextAndNoRequest) {
  const auto parsed = parse_record({"--help"});
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->request);
  EXPECT_NE(parsed->text.find("Examples:"), std::string::npos);
  EXPECT_EQ(recorded({"ls", "--help"}).command.size(), 2U);
}

TEST(Period, TakesUnitsAndRefusesTheRest) {
  EXPECT_EQ(parse_period("4ms").value_or(0), 4'000'000U);
  EXPECT_EQ(parse_period("4000000").value_or(0), 4'000'000U);
  EXPECT_EQ(parse_period("10us").value_or(0), 10'000U);
  EXPECT_EQ(parse_period("10s").value_or(0), 10'000'000'000U);
  for (const char* const bad :
       {"", "ms", "0", "9us", "11s", "-4ms", "4 ms", "4m", "1.5ms", "18446744073709551616", "18446744073709551615s"}) {
    EXPECT_FALSE(parse_period(bad)) << bad;
  }
}

TEST(Interval, TakesUnitsAndRefusesTheRest) {
  EXPECT_EQ(parse_interval("-x", "500ms").value_or(0), 500'000'000U);
  EXPECT_EQ(parse_interval("-x", "2s").value_or(0), 2'000'000'000U);
  EXPECT_EQ(parse_interval("-x", "5m").value_or(0), 300'000'000'000U);
  EXPECT_EQ(parse_interval("-x", "24h").value_or(0), 86'400'000'000'000U);
  for (const char* const bad : {"", "s", "0s", "9ms", "25h", "-4s", "4 s", "4d", "1.5s", "60", "18446744073709551616h",
                                "18446744073709551615h"}) {
    EXPECT_FALSE(parse_interval("-x", bad)) << bad;
  }
  EXPECT_TRUE(parse_interval("--switch-output", "?").error().message.starts_with("--switch-output: "));
}

TEST(ReportCommandLine, TakesAFileWithAndWithoutItsOption) {
  EXPECT_EQ(parse_report({})->request->input, "crosstalk.db");
  EXPECT_EQ(parse_report({"x.db"})->request->input, "x.db");
  EXPECT_EQ(parse_report({"-i", "x.db"})->request->input, "x.db");
  EXPECT_FALSE(parse_report({"-i", "x.db", "y.db"}));
  EXPECT_FALSE(parse_report({"x.db", "y.db"}));
  for (const Arguments& empty : {Arguments{""}, Arguments{"-i", ""}}) {
    const auto parsed = parse_report(empty);
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().message.find("empty"), std::string::npos) << parsed.error().message;
  }
}

TEST(ReportCommandLine, TakesEveryOption) {
  const auto parsed = parse_report({"--view", "objects", "--by", "core", "--format", "csv", "--estimator", "e",
                                    "--sysroot", "/usr", "--no-pager", "--color", "never", "x.db"});
  ASSERT_TRUE(parsed);
  const ReportRequest& request = *parsed->request;
  EXPECT_EQ(request.view, View::objects);
  EXPECT_EQ(request.by, attribution::GroupBy::core);
  EXPECT_EQ(request.format, Format::csv);
  EXPECT_EQ(request.estimator, "e");
  EXPECT_EQ(request.sysroot, "/usr");
  EXPECT_FALSE(request.pager);
  EXPECT_EQ(request.color, ColorChoice::never);
}

TEST(ReportCommandLine, TakesFilters) {
  const auto parsed =
      parse_report({"--thread", "work*", "--object", "Queue.head", "--module", "libfoo.so", "--min-cost", "5 %"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  const attribution::Filter& filter = parsed->request->filter;
  EXPECT_EQ(filter.thread, "work*");
  EXPECT_EQ(filter.object, "Queue.head");
  EXPECT_EQ(filter.module, "libfoo.so");
  EXPECT_DOUBLE_EQ(filter.min_cost->value, 0.05);
  EXPECT_TRUE(filter.min_cost->of_cpu);
  EXPECT_EQ(filter.text(), "--thread work* --object Queue.head --module libfoo.so --min-cost 5 %");
  EXPECT_TRUE(parse_report({})->request->filter.empty());
}

TEST(ReportCommandLine, ThereIsAPictureOfOneView) {
  const auto alone = parse_report({"--format", "svg"});
  ASSERT_TRUE(alone && alone->request);
  EXPECT_EQ(alone->request->format, Format::svg);
  EXPECT_TRUE(parse_report({"--view", "busy", "--format", "svg"}));
  const auto refused = parse_report({"--view", "matrix", "--format", "svg"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--view busy"), std::string::npos) << refused.error().message;
}

TEST(ReportCommandLine, CostsHaveUnits) {
  EXPECT_DOUBLE_EQ(parse_min_cost("0.5")->value, 0.5);
  EXPECT_DOUBLE_EQ(parse_min_cost("20ms")->value, 0.02);
  EXPECT_DOUBLE_EQ(parse_min_cost("1.5 us")->value, 1.5e-6);
  EXPECT_FALSE(parse_min_cost("1s")->of_cpu);
  for (const char* text : {"", "x", "5 parsecs", "-1", "nan", "inf", "5%%"}) {
    const auto cost = parse_min_cost(text);
    ASSERT_FALSE(cost) << text;
    EXPECT_NE(cost.error().message.find("0.5s"), std::string::npos);
  }
}

TEST(ReportCommandLine, WhatIsNotKnownByProcessorIsRefused) {
  for (const char* option : {"--thread", "--object", "--module"}) {
    EXPECT_FALSE(parse_report({"--by", "core", option, "x"})) << option;
    EXPECT_TRUE(parse_report({"--by", "name", option, "x"})) << option;
  }
  EXPECT_TRUE(parse_report({"--by", "socket", "--min-cost", "1"}));
}

TEST(ReportCommandLine, APlaceStandsBehindTheSourceView) {
  for (const Arguments& arguments :
       {Arguments{"--view", "source", "a.cpp:30", "run.db"}, Arguments{"run.db", "--view", "source", "a.cpp:30"},
        Arguments{"--view=source", "a.cpp:30", "-i", "run.db"}}) {
    const auto parsed = parse_report(arguments);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->request->view, View::source);
    EXPECT_EQ(parsed->request->place, "a.cpp:30");
    EXPECT_EQ(parsed->request->input, "run.db");
  }
  const auto none = parse_report({"--view", "source", "--no-pager"});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->request->place, "");
  EXPECT_EQ(parse_report({"--view", "lines", "a.db"})->request->place, "");
  EXPECT_FALSE(parse_report({"--view", "source", "a.cpp", "--format", "csv"}));
}

TEST(ReportCommandLine, MachineCodeIsOfAPlaceOrAFunction) {
  for (const std::string place : {"bump", "ns::Queue::push", "a.cpp:30", "libx.so+0x1234"}) {
    const auto parsed = parse_report({"--view", "asm", place, "run.db"});
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->request->view, View::assembly);
    EXPECT_EQ(parsed->request->place, place);
    EXPECT_EQ(parsed->request->input, "run.db");
  }
  EXPECT_FALSE(parse_report({"--view", "asm", "bump", "--format", "json"}));
  EXPECT_FALSE(parse_report({"--view", "asm", "bump", "--thread", "1"}));
}

TEST(ReportCommandLine, LinesAreNumberedFromOne) {
  for (const char* view : {"source", "asm"}) {
    for (const char* place : {"a.cpp:0", "a.cpp:99999999999999"}) {
      const auto refused = parse_report({"--view", view, place});
      ASSERT_FALSE(refused) << place;
      EXPECT_NE(refused.error().message.find("numbered from 1"), std::string::npos) << refused.error().message;
    }
  }
  EXPECT_TRUE(parse_report({"--view", "source", "a.cpp:"}));
}

TEST(ReportCommandLine, RefusesEmptyValues) {
  for (const char* option : {"--thread", "--object", "--module", "--min-cost", "--view", "--by"}) {
    const auto refused = parse_report({option, ""});
    ASSERT_FALSE(refused) << option;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().message.rfind(std::string(option) + ": the value is empty", 0), 0U)
        << refused.error().message;
  }
}

TEST(ReportCommandLine, RefusesUnknownChoices) {
  EXPECT_NE(parse_report({"--view", "heat"}).error().message.find("matrix"), std::string::npos);
  EXPECT_NE(parse_report({"--format", "xml"}).error().message.find("json"), std::string::npos);
  EXPECT_NE(parse_report({"--by", "node"}).error().message.find("core"), std::string::npos);
}

TEST(DoctorCommandLine, TakesAFormat) {
  EXPECT_FALSE(parse_doctor({})->request->json);
  EXPECT_TRUE(parse_doctor({"--format", "json"})->request->json);
  EXPECT_FALSE(parse_doctor({"--format", "csv"}));
  EXPECT_FALSE(parse_doctor({"extra"}));
}

TopRequest watched(const Arguments& arguments) {
  const auto parsed = parse_top(arguments);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed && parsed->request ? *parsed->request : TopRequest{};
}

std::string top_error(const Arguments& arguments) {
  const auto parsed = parse_top(arguments);
  EXPECT_FALSE(parsed);
  return parsed ? "" : parsed.error().message;
}

TEST(TopCommandLine, TakesDefaultsAndProcesses) {
  const TopRequest request = watched({"-p", "12,13"});
  EXPECT_EQ(request.recorder, (std::vector<std::string>{"-p", "12,13"}));
  EXPECT_TRUE(request.command.empty());
  EXPECT_DOUBLE_EQ(request.refresh_s, 2);
  EXPECT_DOUBLE_EQ(request.window_s, 10);
  EXPECT_FALSE(request.once || request.json);
  EXPECT_EQ(request.count, 0U);
}

TEST(TopCommandLine, HandsTheRecordersOptionsOn) {
  const TopRequest request = watched({"--budget", "1", "--method", "watch", "--no-children", "--json", "-n", "3",
                                      "--refresh", "0.5", "--window", "3", "--", "./a.out", "-n", "7"});
  EXPECT_EQ(request.recorder, (std::vector<std::string>{"--no-children", "--budget", "1", "--method", "watch"}));
  EXPECT_EQ(request.command, (std::vector<std::string>{"./a.out", "-n", "7"}));
  EXPECT_TRUE(request.json);
  EXPECT_EQ(request.count, 3U);
  EXPECT_DOUBLE_EQ(request.refresh_s, 0.5);
  EXPECT_EQ(watched({"./a.out", "--json"}).command, (std::vector<std::string>{"./a.out", "--json"}));
}

TEST(TopCommandLine, RefusesInOneLineThatNamesTheChoice) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{}, "-p PID"},
      {{"-p", "x"}, "no process id"},
      {{"-p", ""}, "--pid"},
      {{"-p", "1", "--", "true"}, "not both"},
      {{"-p", "1", "--budget", "0"}, "--budget"},
      {{"-p", "1", "--method", "guess"}, "watch"},
      {{"-p", "1", "--refresh", "0.1"}, "0.5 to 60"},
      {{"-p", "1", "--refresh", "nan"}, "0.5 to 60"},
      {{"-p", "1", "--refresh", "20"}, "at least one refresh (20 s)"},
      {{"-p", "1", "--window", "601"}, "600"},
      {{"-p", "1", "--once", "--json"}, "choose one"},
      {{"-p", "1", "-n", "-1"}, "--count"},
      {{"--inject", "true"}, "-p"},
      {{"--from", "x", "-p", "1"}, "--from"},
      {{"--from", "x", "--json"}, "--from"},
      {{"--from", ""}, "--from"},
      {{"--colour", "never", "-p", "1"}, "did you mean '--color'?"},
      {{"--color", "blue", "-p", "1"}, "never"},
      {{"--sysroot", "/no/such", "-p", "1"}, "there is no such directory"},
  };
  for (const auto& [arguments, words] : cases) {
    const std::string error = top_error(arguments);
    EXPECT_NE(error.find(words), std::string::npos) << error << " lacks " << words;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(TopCommandLine, HelpTeachesTheKeys) {
  const auto parsed = parse_top({"--help"});
  ASSERT_TRUE(parsed && !parsed->request);
  for (const char* const words : {"crosstalk top -p 4711", "Keys:", "--json", "man crosstalk-top"}) {
    EXPECT_NE(parsed->text.find(words), std::string::npos) << words;
  }
}

TEST(ShellQuoted, RoundTripsAwkwardWords) {
  EXPECT_EQ(shell_quoted("runs/a-1.db"), "runs/a-1.db");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(Suggestions, ForSlipsOfTheFinger) {
  const std::vector<std::string> known = {"record", "report", "doctor", "--period", "--budget"};
  EXPECT_EQ(remedy_for("reprot", known, "H"), "; did you mean 'report'? See H");
  EXPECT_EQ(remedy_for("recrod", known, "H"), "; did you mean 'record'? See H");
  EXPECT_EQ(remedy_for("--peroid", known, "H"), "; did you mean '--period'? See H");
  EXPECT_EQ(remedy_for("--bugdet", known, "H"), "; did you mean '--budget'? See H");
  EXPECT_EQ(remedy_for("annotate", known, "H"), "; see H");
  EXPECT_EQ(remedy_for("", known, "H"), "; see H");
  EXPECT_EQ(remedy_for(std::string(100000, 'x'), known, "H"), "; see H");
}

TEST(Suggestions, InErrors) {
  EXPECT_NE(record_error({"--peroid", "4ms", "--", "true"}).find("did you mean '--period'?"), std::string::npos);
  EXPECT_EQ(record_error({"--annotate", "--", "true"}).find("did you mean"), std::string::npos);
}

TEST(CommandLine, RefusesASysrootThatIsNoDirectory) {
  const auto report = parse_report({"--sysroot", "/no/such"});
  const auto roofline = parse_roofline({"--sysroot", "/no/such"});
  const auto diff = parse_diff({"--sysroot", "/no/such", "a", "b"});
  ASSERT_FALSE(report || roofline || diff);
  for (const Error& error : {report.error(), roofline.error(), diff.error()}) {
    EXPECT_NE(std::string::npos, error.message.find("/no/such: there is no such directory")) << error.message;
  }
  EXPECT_TRUE(parse_report({"--sysroot", ""})) << "an empty one is none";
}

}  // namespace
}  // namespace crosstalk::driver::command_line_test
