// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

namespace crosstalk::driver {

namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("crosstalk", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("crosstalk: %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void start_logging(Verbosity verbosity) {
  if (verbosity.quiet) {
    logger().set_level(spdlog::level::err);
  } else {
    logger().set_level(verbosity.level > 0 ? spdlog::level::debug : spdlog::level::info);
  }
}

void log_error(const std::string& text) { logger().error("{}", printable(text)); }
void log_warning(const std::string& text) { logger().warn("warning: {}", printable(text)); }
void log_notice(const std::string& text) { logger().info("{}", printable(text)); }
void log_detail(const std::string& text) { logger().debug("{}", printable(text)); }

std::string printable(const std::string& text) {
  std::string shown = text;
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return shown;
}

}  // namespace crosstalk::driver
