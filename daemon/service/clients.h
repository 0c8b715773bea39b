// SPDX-License-Identifier: Apache-2.0
// The daemon's connections: takes new ones, and hands over their messages, so that no client can keep the daemon from
// answering others.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/service/access.h"
#include "daemon/service/channel.h"

namespace crosstalk::service {

struct Client {
  Channel channel;
  Peer peer;
  std::uint64_t session = 0;  // 0: none
  std::uint64_t idle_since_ns = 0;
  bool gone = false;  // its connection is over
};

/// Returns the id of a group; nullopt: there is none. May wait for a directory service.
[[nodiscard]] std::optional<gid_t> group_id(const std::string& name);

/// Not thread-safe. Times are of CLOCK_MONOTONIC, in ns.
class Clients {
 public:
  explicit Clients(UniqueFd listener) : listener_(std::move(listener)) {}

  void add_fds(std::vector<pollfd>& polled, std::uint64_t now_ns) const;
  /// Takes connections that wait. At most `most` of users other than root, half of them of one user, and some of root;
  /// the others are refused. `group`: whose members are marked. Returns how many were refused.
  std::uint32_t accept(std::size_t most, std::optional<gid_t> group, std::uint64_t now_ns);
  /// Calls `answer` for messages that wait, a few of each client. Then marks as gone: those that have closed the
  /// connection, those without a session that have asked for nothing for a while, and those that go on asking without
  /// reading the answers.
  void serve(const std::function<void(Client&, const Received&)>& answer, std::uint64_t now_ns);
  void remove_gone() {
    clients_.remove_if([](const Client& client) { return client.gone; });
  }

  [[nodiscard]] std::list<Client>& all() { return clients_; }
  [[nodiscard]] bool empty() const { return clients_.empty(); }

 private:
  void serve(Client& client, const std::function<void(Client&, const Received&)>& answer, std::uint64_t now_ns);
  [[nodiscard]] bool has_room_for(const Peer& peer, std::size_t most) const;

  UniqueFd listener_;
  std::list<Client> clients_;
  std::uint64_t pause_until_ns_ = 0;  // in accepting: there were no descriptors
};

}  // namespace crosstalk::service
