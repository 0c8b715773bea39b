// SPDX-License-Identifier: Apache-2.0
// Messages between clients and the daemon: read, or refused in one line. What is read round-trips, and becomes
// arguments of which none is an option that the daemon does not give itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/service/messages.h"
#include "daemon/service/metrics.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::service;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void require_one_line(const Error& error) {
  require(!error.message.empty() && error.message.find('\n') == std::string::npos);
}

void try_request(std::string_view message) {
  const auto request = parse_request(message);
  if (!request) {
    require_one_line(request.error());
    return;
  }
  const bool records = request->kind == RequestKind::record || request->kind == RequestKind::top;
  require(request->pids.empty() != records && request->pids.size() <= 64);
  const auto again = parse_request(to_message(*request));
  require(again && to_message(*again) == to_message(*request));
  const auto words = arguments_for(*request, {3}, uid_t{5}, 0.01, "/o");
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (!words[i].starts_with("--") && words[i] != "-p" && words[i] != "-o") {
      require(!words[i].starts_with('-') && words[i].find_first_of("\n \0") == std::string::npos);
    }
  }
}

void try_reply(std::string_view message) {
  const auto reply = parse_reply(message);
  if (!reply) {
    require_one_line(reply.error());
    return;
  }
  const auto again = parse_reply(to_message(*reply));
  require(again && to_message(*again) == to_message(*reply));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_request(text);
  try_reply(text);
  // Reports come from our own program, by way of names that targets choose.
  if (const auto figures = figures_of(std::string(text))) {
    Metrics metrics(2);
    metrics.add("s", *figures);
    require(metrics.text({}).ends_with("# EOF\n"));
  }
  return 0;
}
