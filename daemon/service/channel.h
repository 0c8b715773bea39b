// SPDX-License-Identifier: Apache-2.0
// A connection between a client and the daemon, over which messages and descriptors pass.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::service {

struct Received {
  std::string message;  // empty: the other end has closed the connection
  std::vector<UniqueFd> descriptors;
};

/// The kernel's facts about the other end, from the time that it connected.
struct Credentials {
  pid_t pid = 0;
  uid_t user = 0;
  std::vector<gid_t> groups;  // all of its groups
};

/// One end of a SOCK_SEQPACKET connection. Not thread-safe.
class Channel {
 public:
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}
  /// Connects to the daemon. Errors: not_found (no daemon listens there), permission.
  [[nodiscard]] static Result<Channel> connect(const std::string& path);

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Sends one message and descriptors, without waiting. False: the other end is gone or does not read.
  [[nodiscard]] bool send(const std::string& message, const std::vector<int>& descriptors = {}) const;
  /// Receives one message. nullopt: none waits (of a socket that does not block). An empty message: the connection is
  /// over. A message that is too long counts as the end.
  [[nodiscard]] std::optional<Received> receive() const;
  [[nodiscard]] Result<Credentials> credentials() const;
  /// Bytes of memory that hold messages which the other end has not received yet.
  [[nodiscard]] std::size_t unread() const;

 private:
  UniqueFd socket_;
};

/// Listens at `path`, and replaces a socket that nobody listens at. All users may connect. Errors: refused, if somebody
/// listens; system.
[[nodiscard]] Result<UniqueFd> listen_at(const std::string& path);

/// Returns the next connection, which does not block; invalid if none waits. Errors: system, if there is no descriptor
/// or memory for the one that waits, which goes on waiting.
[[nodiscard]] Result<UniqueFd> accept_from(int listener);

}  // namespace crosstalk::service
