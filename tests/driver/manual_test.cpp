// SPDX-License-Identifier: Apache-2.0
// Every option of the help is in the manual, and every field of the JSON report is in its description.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "attribution/comparison/compare.h"
#include "attribution/estimate/estimator.h"
#include "driver/commands/doctor.h"
#include "driver/comparison/report.h"
#include "driver/json/report.h"
#include "driver/live/stream.h"
#include "driver/options/calibrate_options.h"
#include "driver/options/diff_options.h"
#include "driver/options/export_options.h"
#include "driver/options/import_options.h"
#include "driver/options/record_options.h"
#include "driver/options/report_options.h"
#include "driver/options/roofline_options.h"
#include "driver/options/service_options.h"
#include "driver/options/top_options.h"
#include "live_snapshot.h"
#include "models/machine_json.h"
#include "sample_analysis.h"

namespace crosstalk::driver::manual_test {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(CROSSTALK_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "--view" and "-i" of a help text's option table.
std::set<std::string> options_of(const std::string& help) {
  static const std::regex option("(^|[ ,])(--?[a-z][a-z-]*)(?=[ ,\n])");
  std::set<std::string> options;
  const std::size_t begin = help.find("Options:");
  const std::string table = help.substr(begin, help.find("Examples:") - begin);
  for (std::sregex_iterator it(table.begin(), table.end(), option), end; it != end; ++it) {
    options.insert((*it)[2]);
  }
  return options;
}

void expect_in_manual(const std::string& page, const std::string& help) {
  const std::string manual = read("man/" + page);
  const auto options = options_of(help);
  EXPECT_GE(options.size(), 3U);
  for (const std::string& option : options) {
    // mdoc: ".It Fl o , Fl -output Ar file"
    const std::regex item("\n\\.It (Fl [^\n]*)?Fl " + option.substr(1) + "([ \n])");
    EXPECT_TRUE(std::regex_search(manual, item)) << page << " lacks " << option;
  }
}

TEST(Manual, HasEveryOptionOfTheHelp) {
  expect_in_manual("crosstalk-record.1", parse_record({"--help"})->text);
  expect_in_manual("crosstalk-report.1", parse_report({"--help"})->text);
  expect_in_manual("crosstalk-export.1", parse_export({"--help"})->text);
  expect_in_manual("crosstalk-import.1", parse_import({"--help"})->text);
  expect_in_manual("crosstalk-doctor.1", parse_doctor({"--help"})->text);
  expect_in_manual("crosstalk-diff.1", parse_diff({"--help"})->text);
  expect_in_manual("crosstalk-calibrate.1", parse_calibrate({"--help"})->text);
  expect_in_manual("crosstalk-roofline.1", parse_roofline({"--help"})->text);
  expect_in_manual("crosstalk-service.1", parse_service({"--help"})->text);
  expect_in_manual("crosstalk-top.1", parse_top({"--help"})->text);
}

TEST(Manual, HasNoOptionThatTheHelpLacks) {
  const std::map<std::string, std::string> pages = {{"crosstalk-record.1", parse_record({"--help"})->text},
                                                    {"crosstalk-export.1", parse_export({"--help"})->text},
                                                    {"crosstalk-report.1", parse_report({"--help"})->text},
                                                    {"crosstalk-doctor.1", parse_doctor({"--help"})->text},
                                                    {"crosstalk-diff.1", parse_diff({"--help"})->text},
                                                    {"crosstalk-roofline.1", parse_roofline({"--help"})->text},
                                                    {"crosstalk-service.1", parse_service({"--help"})->text},
                                                    {"crosstalk-top.1", parse_top({"--help"})->text},
                                                    {"crosstalk-calibrate.1", parse_calibrate({"--help"})->text}};
  static const std::regex item("\n\\.It Fl ([^\n]*)");
  static const std::regex flag("(?:^|Fl )(-?[a-z][a-z-]*)(?= |$)");
  for (const auto& [page, help] : pages) {
    const std::string manual = read("man/" + page);
    const auto options = options_of(help);
    for (std::sregex_iterator it(manual.begin(), manual.end(), item), end; it != end; ++it) {
      const std::string line = (*it)[1];
      for (std::sregex_iterator f(line.begin(), line.end(), flag); f != end; ++f) {
        EXPECT_TRUE(options.contains("-" + (*f)[1].str())) << page << ": " << line;
      }
    }
  }
}

TEST(Manual, NamesEveryEstimator) {
  const std::string manual = read("man/crosstalk-report.1");
  const std::string help = parse_report({"--help"})->text;
  const std::string description = read("docs/report-json.md");
  for (const attribution::Estimator& estimator : attribution::estimators()) {
    EXPECT_NE(manual.find(".It Cm " + std::string(estimator.name) + "\n"), std::string::npos) << estimator.name;
    EXPECT_NE(help.find("  " + std::string(estimator.name) + " "), std::string::npos) << estimator.name;
    EXPECT_NE(help.find(estimator.summary), std::string::npos) << estimator.name;
    EXPECT_NE(description.find("`" + std::string(estimator.name) + "`"), std::string::npos) << estimator.name;
  }
}

void collect_names(const nlohmann::json& value, std::set<std::string>& names) {
  for (const auto& [name, inner] : value.items()) {
    if (value.is_object()) {
      names.insert(name);
    }
    if (inner.is_structured()) {
      collect_names(inner, names);
    }
  }
}

TEST(Manual, DescribesEveryFieldOfTheJsonReport) {
  const std::string description = read("docs/report-json.md");
  std::set<std::string> names;
  collect_names(nlohmann::json::parse(render_json(test::sample_analysis(), std::nullopt)), names);
  EXPECT_GT(names.size(), 50U);
  for (const std::string& name : names) {
    EXPECT_NE(description.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Manual, DescribesEveryFieldOfTheMachineFile) {
  const std::string description = read("docs/machine-json.md");
  models::Machine machine;
  machine.caches = {{}};
  machine.processors = {{}};
  machine.flops = {{}};
  machine.bandwidths = {{}};
  machine.latencies = {{}};
  machine.instructions = {{}};
  machine.chains = {{}};
  machine.pairs = {{}};
  machine.pairs[0].transfer_s.refused = "why";
  std::set<std::string> names;
  collect_names(nlohmann::json::parse(models::to_json(machine)), names);
  EXPECT_GT(names.size(), 50U);
  for (const std::string& name : names) {
    EXPECT_NE(description.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Manual, DescribesEveryFieldOfTheJsonDiff) {
  const std::string description = read("docs/diff-json.md");
  const attribution::Analysis analysis = test::sample_analysis();
  DiffReport report{"a.db", "b.db", &analysis, &analysis, attribution::comparison::compare(analysis, analysis, {}), {}};
  const auto condition = attribution::comparison::parse_condition("cost_s > 1");
  report.conditions.push_back({*condition, attribution::comparison::judge(*condition, report.comparison)});
  report.comparison.warnings.push_back({"code", "message"});
  std::set<std::string> names;
  collect_names(nlohmann::json::parse(render_diff_json(report)), names);
  EXPECT_GT(names.size(), 50U);
  for (const std::string& name : names) {
    EXPECT_NE(description.find("`" + name + "`"), std::string::npos) << name;
  }
}

/// The fields of a JSON value with their types, by path: "threads[].index" -> "integer".
void collect_types(const nlohmann::json& value, const std::string& path, std::map<std::string, std::string>& types) {
  if (!path.empty() && !value.is_null()) {
    types[path] = value.is_string()           ? "text"
                  : value.is_number_integer() ? "integer"
                  : value.is_number()         ? "number"
                  : value.is_array()          ? "list"
                                              : "object";
  } else if (!path.empty()) {
    types.try_emplace(path, "unknown");
  }
  for (const auto& [name, inner] : value.items()) {
    if (value.is_array()) {
      collect_types(inner, path + "[]", types);
    } else if (value.is_object()) {
      collect_types(inner, path.empty() ? name : std::string(path).append(".").append(name), types);
    }
  }
}

TEST(Manual, TheTableOfTheLiveStreamIsItsSchema) {
  std::map<std::string, std::string> documented;
  const std::string description = read("docs/top-json.md");
  static const std::regex row("\n\\| `([^`]+)` \\| ([a-z]+) \\|");
  for (std::sregex_iterator it(description.begin(), description.end(), row), end; it != end; ++it) {
    documented[(*it)[1]] = (*it)[2];
  }
  EXPECT_GT(documented.size(), 100U);
  std::map<std::string, std::string> written;
  collect_types(nlohmann::json::parse(live::line_of(live::test::sample_snapshot())), "", written);
  for (const auto& [path, type] : written) {
    ASSERT_TRUE(documented.contains(path)) << path << " is not in docs/top-json.md";
    EXPECT_TRUE(type == "unknown" || type == documented[path]) << path << " is of type " << type;
  }
  for (const auto& [path, type] : documented) {
    EXPECT_TRUE(written.contains(path)) << path << " of docs/top-json.md is not written";
  }
}

}  // namespace
}  // namespace crosstalk::driver::manual_test
