// SPDX-License-Identifier: Apache-2.0
// The messages between clients and the daemon: one JSON object each, over a socket that keeps their borders
// (SOCK_SEQPACKET). docs/daemon.md describes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crosstalk::service {

inline constexpr std::size_t most_message_bytes = 64 * 1024;
inline constexpr const char* default_socket = "/run/crosstalk/crosstalkd.sock";

enum class RequestKind {
  record,    // a recording, whose profile is sent back
  top,       // a live view's stream
  stop,      // ends this connection's session, as ^C ends a recording
  status,    // sessions and services
  profiles,  // the profiles of a service
  fetch,     // one of them
};

/// Settings of a session. Left out: the defaults of `crosstalk record` and `crosstalk top`.
struct SessionOptions {
  bool children = false;
  std::optional<double> duration_s;          // record
  std::optional<std::uint64_t> period_ns;    // CPU time between a thread's samples
  std::optional<double> budget_percent;      // of the threads' CPU time
  std::optional<std::string> method;         // auto, watch, probe
  std::optional<std::string> partner;        // as --partner
  std::optional<double> refresh_s;           // top
  std::optional<double> window_s;            // top
  std::optional<std::uint32_t> watchpoints;  // 0..4
};

struct Request {
  RequestKind kind = RequestKind::status;
  std::vector<pid_t> pids;  // record, top: 1 to 64 different ones
  SessionOptions options;
  std::string service;  // profiles, fetch
  std::string profile;  // fetch: a name from `profiles`
};

/// Refuses, in one line, what is no request: garbage, unknown kinds, fields of a wrong type or out of range. Ignores
/// unknown fields.
[[nodiscard]] Result<Request> parse_request(std::string_view message);
[[nodiscard]] std::string to_message(const Request& request);

/// The daemon's answer.
struct Reply {
  enum class Kind { started, begun, ended, refused, status, profiles, profile };
  Kind kind = Kind::refused;
  std::uint64_t session = 0;            // started, begun, ended
  double budget = 0;                    // started: fraction of the threads' CPU time
  int exit_status = 0;                  // ended
  ErrorCode code = ErrorCode::refused;  // refused
  std::string text;                     // refused: one line; status, profiles: a JSON object
};
[[nodiscard]] Result<Reply> parse_reply(std::string_view message);
[[nodiscard]] std::string to_message(const Reply& reply);

/// Returns the path as option -o takes it, which replaces %p and the like.
[[nodiscard]] std::string as_output(const std::string& path);

/// Returns the arguments of `crosstalk` for the session. `pidfds`: one for each pid, as the worker inherits them;
/// `owner`: see may_record(); `output`: record's file.
[[nodiscard]] std::vector<std::string> arguments_for(const Request& request, const std::vector<int>& pidfds,
                                                     std::optional<uid_t> owner, double budget,
                                                     const std::string& output);

}  // namespace crosstalk::service
