// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/journal.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace crosstalk::service {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("crosstalkd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

/// Returns sd-daemon(3)'s prefix, or for people the program's name.
const char* prefix_of(Level level) {
  static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  switch (level) {
    case Level::error:
      return journal ? "<3>" : "crosstalkd: ";
    case Level::warning:
      return journal ? "<4>" : "crosstalkd: warning: ";
    case Level::notice:
      return journal ? "<5>" : "crosstalkd: ";
    case Level::detail:
      break;
  }
  return journal ? "<7>" : "crosstalkd: ";
}

}  // namespace

void start_log(bool details) { logger().set_level(details ? spdlog::level::debug : spdlog::level::info); }

void log_line(Level level, const std::string& line) {
  std::string shown = line;
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  logger().log(level == Level::detail ? spdlog::level::debug : spdlog::level::err, "{}{}", prefix_of(level), shown);
}

}  // namespace crosstalk::service
