// SPDX-License-Identifier: Apache-2.0
// `crosstalk doctor`: reports what this machine and this user's rights allow, with the exact commands that allow more.
#include "driver/commands/doctor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collectors/facilities/probe.h"
#include "collectors/facilities/probe_pmu.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/files/collector_path.h"
#include "driver/json/values.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"

namespace crosstalk::driver {

namespace {

constexpr const char* doctor_examples =
    "Examples:\n"
    "  crosstalk doctor\n"
    "  crosstalk doctor --format json | jq '.facilities[] | select(.available | not)'\n"
    "\n"
    "The exit status is 0 when a program can be recorded here, 1 when not, 125 for a bad command line.\n";

collectors::Facility collector_facility() {
  const auto path = find_collector();
  return {"collector", path.has_value(), path ? *path : path.error().message, ""};
}

constexpr std::uint32_t most_registers = 4;

std::string method_in_words(const MethodChoice& method) {
  switch (method.method) {
    case profile::Method::watch:
      return "Communication is seen by watchpoints, as " + method.why + ".";
    case profile::Method::probe:
      return "Communication is seen by probes of lines, as " + method.why +
             ". Probes show which threads change a value. They do not show how often, and miss stores of the same "
             "value.";
    case profile::Method::none:
      break;
  }
  return "Communication cannot be seen, as " + method.why + ".";
}

bool has(const std::vector<collectors::Facility>& facilities, const std::string& name) {
  return std::any_of(facilities.begin(), facilities.end(),
                     [&](const collectors::Facility& f) { return f.name == name && f.available; });
}

}  // namespace

Diagnosis diagnose(const collectors::Probe& probe, const collectors::Facility& collector) {
  Diagnosis diagnosis;
  diagnosis.facilities = probe.facilities;
  diagnosis.facilities.push_back(collector);
  diagnosis.watch_trial = probe.watch_trial;
  const bool clock = probe.perf_allowed || has(probe.facilities, "POSIX timer");
  diagnosis.can_record = has(probe.facilities, "kernel") && collector.available && clock;
  if (diagnosis.can_record) {
    diagnosis.method = *choose_method(MethodWish::automatic, probe, false, most_registers);
  }
  diagnosis.sees_communication = diagnosis.method.method != profile::Method::none;
  return diagnosis;
}

std::vector<std::string> sources_of(const Diagnosis& diagnosis) {
  std::vector<std::string> sources;
  for (const auto& [facility, source] :
       {std::pair("PEBS", "pebs"), std::pair("IBS", "ibs"), std::pair("IBS module", "ibs-kmod")}) {
    if (diagnosis.can_record && has(diagnosis.facilities, facility)) {
      sources.emplace_back(source);
    }
  }
  if (diagnosis.can_record) {
    sources.emplace_back("clock");
  }
  return sources;
}

std::string render_diagnosis(const Diagnosis& diagnosis, const TextStyle& style) {
  Canvas canvas(style);
  canvas.line(canvas.colored("What this machine gives", Hue::strong));
  canvas.blank();
  constexpr int name_columns = 22;
  const std::string indent(name_columns + 7, ' ');
  for (const collectors::Facility& facility : diagnosis.facilities) {
    canvas.paragraph(
        "  " + std::string(facility.available ? "yes  " : "no   ") + pad_right(facility.name, name_columns),
        facility.found);
    if (!facility.remedy.empty()) {
      canvas.line(indent + canvas.sign("→ ", "> ") + canvas.clean(facility.remedy));  // uncut, so that it can be copied
    }
  }
  canvas.blank();
  if (!diagnosis.can_record) {
    canvas.paragraph("", "No program can be recorded here.");
  } else {
    const std::vector<std::string> sources = sources_of(diagnosis);
    canvas.paragraph("", "Recording shows where the time goes" +
                             std::string(diagnosis.sees_communication ? " and which threads communicate. " : ". ") +
                             std::string(sources.size() > 1 ? "Sources: " : "Source: ") +
                             fmt::format("{}.", fmt::join(sources, ", ")));
    canvas.paragraph("", method_in_words(diagnosis.method));
  }
  return canvas.take();
}

std::string render_diagnosis_json(const Diagnosis& diagnosis) {
  Json facilities = Json::array();
  for (const collectors::Facility& facility : diagnosis.facilities) {
    facilities.push_back({{"name", facility.name},
                          {"available", facility.available},
                          {"found", facility.found},
                          {"remedy", facility.remedy.empty() ? Json(nullptr) : Json(facility.remedy)}});
  }
  const Json sources = sources_of(diagnosis);
  const Json report = {
      {"schema", "crosstalk.doctor/1"},
      {"can_record", diagnosis.can_record},
      {"sees_communication", diagnosis.sees_communication},
      {"method", diagnosis.can_record ? Json(profile::name_of(diagnosis.method.method)) : Json(nullptr)},
      {"method_choice", diagnosis.can_record ? Json(diagnosis.method.why) : Json(nullptr)},
      {"sources", sources},
      {"watchpoints", watch_trial(diagnosis.watch_trial)},
      {"facilities", facilities}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Parsed<DoctorRequest>> parse_doctor(const Arguments& arguments) {
  CLI::App app("Says what this machine and your rights give an observer, and the exact commands that give more.\n",
               "crosstalk doctor");
  describe(app, "crosstalk doctor [OPTION]...", doctor_examples);
  DoctorRequest request;
  std::string format = "text";
  app.add_option("--format", format, "Form: text, json [text]")->type_name("FORMAT");
  return parse_request(app, arguments, request, [&]() -> Result<void> {
    if (format != "text" && format != "json") {
      return fail(ErrorCode::invalid_argument, "--format: there is no '" + format + "'; choose one of: json, text");
    }
    request.json = format == "json";
    return {};
  });
}

namespace {

collectors::Facility counters_here() {
  collectors::CounterWish all;
  all.nmi_watchdog = collectors::nmi_watchdog_is_on();
  auto plan = collectors::counter_groups(collectors::describe_machine(), collectors::libpfm4(), all);
  return collectors::counter_facility(plan ? collectors::fit_groups(std::move(*plan), collectors::try_group)
                                           : std::move(plan));
}

int say_what_can_be_done(const DoctorRequest& request) {
  collectors::Probe probe = collectors::probe();
  for (collectors::Facility& facility : collectors::units_here()) {
    probe.facilities.push_back(std::move(facility));
  }
  probe.facilities.push_back(counters_here());
  const Diagnosis diagnosis = diagnose(probe, collector_facility());
  const TextStyle style = style_of_output(ColorChoice::automatic);
  if (!write_output(request.json ? render_diagnosis_json(diagnosis) : render_diagnosis(diagnosis, style), false)) {
    log_error("standard output cannot be written");
    return exit_failed;
  }
  return diagnosis.can_record ? exit_ok : exit_failed;
}

}  // namespace

int run_doctor(const Arguments& arguments) { return serve(parse_doctor(arguments), say_what_can_be_done); }

}  // namespace crosstalk::driver
