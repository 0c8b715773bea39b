// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/journal.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

std::string printable(const std::string& line) {
  std::string shown;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    // U+0080 to U+009F, which a terminal takes for commands, are C2 80 to C2 9F in UTF-8.
    const bool pair = byte == 0xc2 && i + 1 < line.size() && (static_cast<unsigned char>(line[i + 1]) & 0xe0U) == 0x80;
    shown += byte < 0x20 || byte == 0x7f || pair ? '?' : line[i];
    i += pair ? 1 : 0;
  }
  return shown;
}

void start_log(bool details) { logger().set_level(details ? spdlog::level::debug : spdlog::level::info); }

void log_line(Level level, const std::string& line) {
  logger().log(level == Level::detail ? spdlog::level::debug : spdlog::level::err, "{}{}", prefix_of(level),
               printable(line));
}

}  // namespace crosstalk::service
