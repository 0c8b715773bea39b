// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/clients.h"

#include <grp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/service/journal.h"
#include "daemon/service/messages.h"

namespace crosstalk::service {
namespace {

constexpr std::uint64_t client_patience_ns = 10'000'000'000;  // with a client that asks for nothing
constexpr std::uint64_t accept_pause_ns = 1'000'000'000;
constexpr int most_accepted = 32;  // at a turn
constexpr int most_messages = 4;   // of a client at a turn
constexpr std::size_t most_of_root = 16;
// A client that asks without reading keeps descriptors in its answers open.
constexpr std::size_t most_unread = most_message_bytes;

}  // namespace

std::optional<gid_t> group_id(const std::string& name) {
  std::array<char, 64 * 1024UL> buffer{};
  ::group entry{};
  ::group* found = nullptr;
  const int error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

void Clients::add_fds(std::vector<pollfd>& polled, std::uint64_t now_ns) const {
  if (now_ns >= pause_until_ns_) {
    polled.push_back({listener_.get(), POLLIN, 0});
  }
  for (const Client& client : clients_) {
    polled.push_back({client.channel.fd(), POLLIN, 0});
  }
}

bool Clients::has_room_for(const Peer& peer, std::size_t most) const {
  std::size_t of_user = 0;
  std::size_t of_root = 0;
  for (const Client& client : clients_) {
    of_user += client.peer.user == peer.user ? 1 : 0;
    of_root += client.peer.user == 0 ? 1 : 0;
  }
  return peer.user == 0 ? of_root < most + most_of_root : clients_.size() - of_root < most && of_user < most / 2;
}

std::uint32_t Clients::accept(std::size_t most, std::optional<gid_t> group, std::uint64_t now_ns) {
  std::uint32_t refused = 0;
  for (int i = 0; i < most_accepted && now_ns >= pause_until_ns_; ++i) {
    auto socket = accept_from(listener_.get());
    if (!socket) {
      pause_until_ns_ = now_ns + accept_pause_ns;
      log_line(Level::warning, socket.error().message + "; clients wait");
    }
    if (!socket || !socket->valid()) {
      break;
    }
    Client client{Channel(std::move(*socket)), {}, 0, now_ns, false};
    const auto credentials = client.channel.credentials();
    if (!credentials) {
      continue;
    }
    const auto& groups = credentials->groups;
    client.peer = {credentials->user, group && std::find(groups.begin(), groups.end(), *group) != groups.end()};
    if (has_room_for(client.peer, most)) {
      clients_.push_back(std::move(client));
      continue;
    }
    ++refused;
    (void)client.channel.receive();  // a request that nobody has read would hide the answer
    (void)client.channel.send(to_message(
        Reply{Reply::Kind::refused, 0, 0, 0, ErrorCode::refused, "too many connections are open; try again later"}));
  }
  return refused;
}

void Clients::serve(const std::function<void(Client&, const Received&)>& answer, std::uint64_t now_ns) {
  for (Client& client : clients_) {
    serve(client, answer, now_ns);
  }
}

void Clients::serve(Client& client, const std::function<void(Client&, const Received&)>& answer, std::uint64_t now_ns) {
  pollfd polled{client.channel.fd(), POLLIN, 0};
  for (int i = 0; i < most_messages && !client.gone && ::poll(&polled, 1, 0) == 1; ++i) {
    const auto received = client.channel.receive();
    if (!received) {
      break;
    }
    client.gone = received->message.empty() || client.channel.unread() > most_unread;
    if (!client.gone) {
      client.idle_since_ns = now_ns;
      answer(client, *received);
    }
  }
  client.gone = client.gone || (client.session == 0 && now_ns - client.idle_since_ns > client_patience_ns);
}

}  // namespace crosstalk::service
