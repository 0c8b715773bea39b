// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/service/messages.h"

namespace crosstalk::service {
namespace {

constexpr std::size_t most_descriptors = 4;  // of a message

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_argument, "the socket's path has " + std::to_string(path.size()) +
                                                 " bytes; it may have 1 to " +
                                                 std::to_string(sizeof address.sun_path - 1));
  }
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }  // NOLINT

std::vector<gid_t> groups_of(int socket) {
  std::vector<gid_t> groups(64);
  while (true) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0) {
      groups.resize(bytes / sizeof(gid_t));
      return groups;
    }
    if (errno != ERANGE) {
      return {};
    }
    groups.resize(bytes / sizeof(gid_t));
  }
}

}  // namespace

Result<Channel> Channel::connect(const std::string& path) {
  const auto address = address_of(path);
  if (!address) {
    return tl::unexpected<Error>(address.error());
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), generic(*address), sizeof *address) != 0) {
    const bool refused = errno == EACCES || errno == EPERM;
    return fail(refused ? ErrorCode::permission : ErrorCode::not_found,
                "no crosstalkd answers at " + path + " (" + std::strerror(errno) +
                    "); start it with: systemctl start crosstalkd");
  }
  return Channel(std::move(socket));
}

bool Channel::send(const std::string& message, const std::vector<int>& descriptors) const {
  iovec part{const_cast<char*>(message.data()), message.size()};  // NOLINT: the kernel only reads it
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t bytes = std::min(descriptors.size(), most_descriptors) * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), bytes);
  }
  return ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

std::optional<Received> Channel::receive() const {
  Received received;
  received.message.resize(most_message_bytes);
  iovec part{received.message.data(), received.message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t length = 0;
  do {
    length = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return std::nullopt;
  }
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); length >= 0 && at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS) {
      std::array<int, most_descriptors> fds{};
      const std::size_t bytes = std::min(at->cmsg_len - CMSG_LEN(0), sizeof fds);
      std::memcpy(fds.data(), CMSG_DATA(at), bytes);
      std::for_each(fds.begin(), fds.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(int)),
                    [&](int fd) { received.descriptors.emplace_back(fd); });
    }
  }
  const bool whole = length > 0 && (header.msg_flags & MSG_TRUNC) == 0;
  received.message.resize(whole ? static_cast<std::size_t>(length) : 0);
  return received;
}

Result<Credentials> Channel::credentials() const {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return fail(ErrorCode::system, std::string("cannot see who is connected: ") + std::strerror(errno));
  }
  Credentials credentials{peer.pid, peer.uid, groups_of(socket_.get())};
  credentials.groups.push_back(peer.gid);
  return credentials;
}

std::size_t Channel::unread() const {
  int bytes = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

Result<UniqueFd> listen_at(const std::string& path) {
  const auto address = address_of(path);
  if (!address) {
    return tl::unexpected<Error>(address.error());
  }
  if (Channel::connect(path)) {
    return fail(ErrorCode::refused, "another crosstalkd listens at " + path + "; stop it first");
  }
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
    ::unlink(path.c_str());
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || ::bind(socket.get(), generic(*address), sizeof *address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(socket.get(), 64) != 0) {
    return fail(ErrorCode::system,
                "cannot listen at " + path + ": " + std::strerror(errno) + "; choose another path with --socket");
  }
  return socket;
}

Result<UniqueFd> accept_from(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
    return fail(ErrorCode::system, std::string("cannot accept a connection: ") + std::strerror(errno));
  }
  return socket;
}

}  // namespace crosstalk::service
