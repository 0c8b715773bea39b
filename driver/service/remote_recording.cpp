// SPDX-License-Identifier: Apache-2.0
#include "driver/service/remote_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "daemon/signals.h"
#include "driver/service/connection.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {
namespace {

service::Request request_of(const RecordRequest& from) {
  service::Request request;
  request.kind = service::RequestKind::record;
  request.pids = from.pids;
  service::SessionOptions& options = request.options;
  options.children = from.attach_children;
  options.period_ns = from.config.period_ns;
  options.budget_percent = 100 * from.config.budget;
  options.watchpoints = from.config.watchpoints;
  options.method = method_word(from.method);
  options.partner = partner_word(from.config.partner);
  if (from.duration_ns != 0) {
    options.duration_s = static_cast<double>(from.duration_ns) * 1e-9;
  }
  return request;
}

/// Waits until the worker of a daemon that was killed has ended, which it is told by the daemon's death, and returns
/// the profile that it began. Its end is that of its standard error.
Result<UniqueFd> rescue(UniqueFd begun, const UniqueFd& errors, const Error& error) {
  constexpr int patience_ms = 30'000;
  for (pollfd polled{errors.get(), POLLIN, 0}; begun.valid() && (polled.revents & POLLHUP) == 0;) {
    if (::poll(&polled, 1, patience_ms) <= 0) {
      return fail(ErrorCode::system, "crosstalkd was killed, and its recording does not end; the profile is lost");
    }
    pass_on_words(errors);
  }
  if (!begun.valid()) {
    return tl::unexpected<Error>(error);
  }
  log_warning("crosstalkd has gone, and the recording ended with it");
  return begun;
}

/// Waits for the end of the session, and returns its profile; invalid: there is none. A signal asks the daemon to end
/// it; a second one ends the waiting.
Result<UniqueFd> await_profile(const service::Channel& channel, const UniqueFd& errors,
                               const daemon::SignalWatch& signals) {
  UniqueFd begun;
  bool told = false;
  bool words = true;
  while (true) {
    std::array<pollfd, 3> polled{{{channel.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
    ::poll(polled.data(), words ? 3 : 2, -1);
    if (words && polled[2].revents != 0) {
      pass_on_words(errors);
      words = (polled[2].revents & POLLHUP) == 0;
    }
    while (signals.take()) {
      if (told) {
        return fail(ErrorCode::system, "interrupted twice; the profile is lost");
      }
      told = true;
      (void)channel.send(service::to_message(service::Request{service::RequestKind::stop, {}, {}, "", ""}));
    }
    if (polled[0].revents != 0) {
      auto answer = next_answer(channel);
      pass_on_words(errors);
      if (!answer) {
        return answer.error().code == ErrorCode::system ? rescue(std::move(begun), errors, answer.error())
                                                        : tl::unexpected<Error>(answer.error());
      }
      UniqueFd given = answer->descriptors.empty() ? UniqueFd() : std::move(answer->descriptors.front());
      if (answer->reply.kind != service::Reply::Kind::begun) {
        return given;
      }
      begun = std::move(given);
    }
  }
}

}  // namespace

void pass_on_words(const UniqueFd& words) {
  std::array<char, 4096> part{};
  for (ssize_t length = 1; length > 0;) {
    length = ::read(words.get(), part.data(), part.size());
    if (length > 0) {
      (void)!::write(STDERR_FILENO, part.data(), static_cast<std::size_t>(length));
    }
  }
}

std::string beyond_daemon(const RecordRequest& request) {
  const profile::SessionConfig usual;
  const std::array<std::pair<bool, const char*>, 10> beyond = {{
      {request.pids.empty(), "a command to launch"},
      {request.inject, "--inject"},
      {request.delay_ns != 0, "--delay"},
      {request.switch_ns != 0, "--switch-output"},
      {request.source != SourceChoice::automatic, "--source"},
      {!request.memory_events.empty() || request.config.clock != profile::ClockKind::automatic, "--event"},
      {request.counters != CounterChoice::automatic, "--counters"},
      {request.config.board_slots != usual.board_slots, "--board-slots"},
      {request.config.seed != usual.seed, "--seed"},
      {request.config.heap_threshold != usual.heap_threshold, "--heap-threshold"},
  }};
  for (const auto& [is_given, option] : beyond) {
    if (is_given) {
      return option;
    }
  }
  return {};
}

Result<RemoteStream> stream_by_daemon(const RecordRequest& request, double refresh_s, double window_s) {
  auto channel = service::Channel::connect(daemon_socket());
  if (!channel) {
    return tl::unexpected<Error>(channel.error());
  }
  service::Request wanted = request_of(request);
  wanted.kind = service::RequestKind::top;
  wanted.options.duration_s.reset();
  wanted.options.watchpoints.reset();
  wanted.options.refresh_s = refresh_s;
  wanted.options.window_s = window_s;
  auto begun = ask(*channel, wanted);
  if (!begun) {
    return tl::unexpected<Error>(begun.error());
  }
  if (begun->reply.kind != service::Reply::Kind::started || begun->descriptors.size() < 2) {
    return fail(ErrorCode::corrupt, "crosstalkd's answer is damaged: the session has no descriptors");
  }
  return RemoteStream{std::move(*channel), std::move(begun->descriptors[1]), std::move(begun->descriptors[0])};
}

Result<void> record_by_daemon(const RecordRequest& request, const std::string& output) {
  const auto channel = service::Channel::connect(daemon_socket());
  const auto signals = daemon::SignalWatch::begin(daemon::SignalsFor::session);
  if (!channel || !signals) {
    return tl::unexpected<Error>(!channel ? channel.error() : signals.error());
  }
  const auto begun = ask(*channel, request_of(request));
  if (!begun) {
    return tl::unexpected<Error>(begun.error());
  }
  if (begun->reply.kind != service::Reply::Kind::started || begun->descriptors.empty()) {
    return fail(ErrorCode::corrupt, "crosstalkd's answer is damaged: the session has no descriptors");
  }
  log_notice(fmt::format("crosstalkd records, within {:g} % of the CPU time", 100 * begun->reply.budget));
  const auto profile = await_profile(*channel, begun->descriptors.front(), *signals);
  if (!profile) {
    return tl::unexpected<Error>(profile.error());
  }
  if (!profile->valid()) {
    return fail(ErrorCode::refused, "crosstalkd recorded nothing");  // its worker has said why
  }
  return save_profile(*profile, output);
}

}  // namespace crosstalk::driver
