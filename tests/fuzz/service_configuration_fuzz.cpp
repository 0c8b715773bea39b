// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration: read, or refused in one line with the line's number. What is read is within its ranges.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "daemon/service/configuration.h"
#include "daemon/service/processes.h"

namespace {

using namespace crosstalk::service;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

bool is_budget(double budget) { return budget >= 0.001 && budget <= 0.5; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto configuration = parse_configuration(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!configuration) {
    const std::string& message = configuration.error().message;
    require(message.starts_with("f:") && message.find('\n') == std::string::npos);
    require(std::atoi(message.c_str() + 2) > 0);
    return 0;
  }
  require(is_budget(configuration->budget) && configuration->sessions >= 1 && configuration->sessions <= 1000);
  require(configuration->state.starts_with('/') && configuration->state.find('\0') == std::string::npos);
  std::set<std::string> names;
  for (const ServiceSettings& service : configuration->services) {
    require(names.insert(service.name).second && service.name.find('/') == std::string::npos);
    require(is_budget(service.budget) && service.interval_s >= 1 && !service.match.pattern.empty());
    static_cast<void>(belongs_to({1, 0, 0, "/usr/bin/x", "x -y", "/system.slice/x.service"}, service.match));
  }
  return 0;
}
