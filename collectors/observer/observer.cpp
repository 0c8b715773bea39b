// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/observer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "collectors/observer/kernel_events.h"
#include "collectors/observer/session.h"

namespace crosstalk::observer {

Result<std::unique_ptr<Observer>> Observer::attach(pid_t pid, const std::string& arena, std::uint32_t registers) {
  Result<ArenaAccess> access = ArenaAccess::open(arena);
  if (!access) {
    return tl::unexpected<Error>(access.error());
  }
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) {
    return fail(ErrorCode::system, std::string("cannot make an event descriptor: ") + std::strerror(errno));
  }
  raise_descriptor_limit();
  auto session = std::make_unique<Session>(pid, std::move(*access), registers);
  if (Result<void> begun = session->begin(); !begun) {
    return tl::unexpected<Error>(begun.error());
  }
  return std::unique_ptr<Observer>(new Observer(std::move(session), std::move(stop)));
}

Observer::Observer(std::unique_ptr<Session> session, UniqueFd stop)
    : session_(std::move(session)), stop_(std::move(stop)), thread_([this] { run(); }) {}

Observer::~Observer() { stop(); }

void Observer::run() {
  pollfd stop{stop_.get(), POLLIN, 0};
  while (::poll(&stop, 1, 0) <= 0) {
    session_->pass();
    session_->wait(stop_.get());
  }
  session_->end();
}

void Observer::stop() {
  if (thread_.joinable()) {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

}  // namespace crosstalk::observer
