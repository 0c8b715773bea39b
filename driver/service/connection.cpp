// SPDX-License-Identifier: Apache-2.0
#include "driver/service/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "profile/rotate.h"

namespace crosstalk::driver {
namespace {

/// Copies from the beginning of a file to its end.
bool copy(int from, int to) {
  std::array<char, 256 * 1024> part{};
  off_t at = 0;
  while (true) {
    const ssize_t length = ::pread(from, part.data(), part.size(), at);
    if (length <= 0) {
      return length == 0;
    }
    for (ssize_t done = 0; done < length;) {
      const ssize_t written = ::write(to, part.data() + done, static_cast<std::size_t>(length - done));
      if (written < 0) {
        return false;
      }
      done += written;
    }
    at += length;
  }
}

}  // namespace

std::string daemon_socket() {
  const char* const named = std::getenv("CROSSTALK_SOCKET");
  return named != nullptr && *named != 0 ? named : service::default_socket;
}

bool has_daemon() { return service::Channel::connect(daemon_socket()).has_value(); }

Result<Answer> next_answer(const service::Channel& channel) {
  constexpr int patience_ms = 20'000;
  pollfd awaited{channel.fd(), POLLIN, 0};
  if (::poll(&awaited, 1, patience_ms) == 0) {
    return fail(ErrorCode::system, "crosstalkd does not answer within 20 s; is it stopped?");
  }
  auto received = channel.receive();
  if (!received || received->message.empty()) {
    return fail(ErrorCode::system, "crosstalkd has closed the connection; its log says why: journalctl -u crosstalkd");
  }
  auto reply = service::parse_reply(received->message);
  if (!reply) {
    return tl::unexpected<Error>(reply.error());
  }
  if (reply->kind == service::Reply::Kind::refused) {
    return fail(reply->code, "crosstalkd refuses: " + reply->text);
  }
  return Answer{std::move(*reply), std::move(received->descriptors)};
}

Result<Answer> ask(const service::Channel& channel, const service::Request& request) {
  return channel.send(service::to_message(request))
             ? next_answer(channel)
             : fail(ErrorCode::system, "crosstalkd does not read from its socket; is it stopped?");
}

Result<void> save_profile(const UniqueFd& profile, const std::string& path) {
  const auto had_one = profile::make_room(path);
  if (!had_one) {
    return tl::unexpected<Error>(had_one.error());
  }
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.valid() && copy(profile.get(), file.get())) {
    return {};
  }
  const int error = errno;
  profile::undo_make_room(path, *had_one);
  return fail(ErrorCode::permission,
              "cannot write " + path + ": " + std::strerror(error) + "; choose another place with -o");
}

}  // namespace crosstalk::driver
