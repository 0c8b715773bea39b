// SPDX-License-Identifier: Apache-2.0
// The client's side of crosstalkd's socket. docs/daemon.md describes the messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/service/channel.h"
#include "daemon/service/messages.h"

namespace crosstalk::driver {

/// Returns the socket's path: $CROSSTALK_SOCKET, or else the usual one.
[[nodiscard]] std::string daemon_socket();

/// True if a daemon listens there.
[[nodiscard]] bool has_daemon();

struct Answer {
  service::Reply reply;
  std::vector<UniqueFd> descriptors;
};

/// Sends a request and waits for the answer. A refusal is an error.
[[nodiscard]] Result<Answer> ask(const service::Channel& channel, const service::Request& request);

/// Waits for the daemon's next message. A refusal is an error.
[[nodiscard]] Result<Answer> next_answer(const service::Channel& channel);

/// Copies a profile from a descriptor to `path`; an existing file becomes path.old.
[[nodiscard]] Result<void> save_profile(const UniqueFd& profile, const std::string& path);

}  // namespace crosstalk::driver
