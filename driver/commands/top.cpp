// SPDX-License-Identifier: Apache-2.0
// `crosstalk top`: shows live who communicates with whom.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/facilities/probe.h"
#include "collectors/observer/target_process.h"
#include "daemon/service/channel.h"
#include "daemon/signals.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/live/feed.h"
#include "driver/live/producer.h"
#include "driver/live/show.h"
#include "driver/options/top_options.h"
#include "driver/service/connection.h"
#include "driver/service/remote_recording.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"

namespace crosstalk::driver {

namespace {

int status_after(const Error& error) {
  log_error(error.message);
  return error.code == ErrorCode::not_found || error.code == ErrorCode::system ? exit_failed : exit_refused;
}

Result<std::unique_ptr<live::Feed>> stream_from(const std::string& name) {
  UniqueFd stream(name == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                              : ::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!stream.valid()) {
    return fail(ErrorCode::not_found, name + ": " + std::strerror(errno));
  }
  return live::feed_of(std::move(stream));
}

/// A feed by the daemon's worker.
class RemoteFeed final : public live::Feed {
 public:
  explicit RemoteFeed(RemoteStream stream)
      : channel_(std::move(stream.channel)),
        words_(std::move(stream.words)),
        feed_(live::feed_of(std::move(stream.lines))) {}
  [[nodiscard]] int fd() const override { return feed_->fd(); }
  [[nodiscard]] News take() override {
    News news = feed_->take();
    if (news.ended) {
      pass_on_words(words_);
    }
    return news;
  }

 private:
  service::Channel channel_;
  UniqueFd words_;
  std::unique_ptr<live::Feed> feed_;
};

Result<std::unique_ptr<live::Feed>> remote_feed(const TopRequest& request) {
  if (const std::string beyond = beyond_daemon(request.recording); !beyond.empty()) {
    return fail(ErrorCode::invalid_argument, "--daemon: crosstalkd does not take " + beyond + "; leave it out");
  }
  auto stream = stream_by_daemon(request.recording, request.refresh_s, request.window_s);
  return stream ? Result<std::unique_ptr<live::Feed>>(std::make_unique<RemoteFeed>(std::move(*stream)))
                : tl::unexpected<Error>(stream.error());
}

/// True if this user may not observe the processes, and a daemon is there that perhaps may.
bool needs_daemon(const TopRequest& request) {
  const std::vector<pid_t>& pids = request.recording.pids;
  const auto is_forbidden = [](pid_t pid) {
    const auto watchable = observer::check_process(pid);
    return !watchable && watchable.error().code == ErrorCode::permission;
  };
  return request.daemon == DaemonWish::automatic && beyond_daemon(request.recording).empty() && ::geteuid() != 0 &&
         has_daemon() && (std::any_of(pids.begin(), pids.end(), is_forbidden) || !collectors::probe().perf_allowed);
}

Result<std::unique_ptr<live::Feed>> feed_for(const TopRequest& request, const daemon::SignalWatch& signals) {
  if (!request.from.empty()) {
    return stream_from(request.from);
  }
  if (request.daemon == DaemonWish::always || needs_daemon(request)) {
    return remote_feed(request);
  }
  auto producer = live::Producer::start(
      {request.recorder, request.command, request.refresh_s, request.window_s, request.sysroot}, signals);
  return producer ? live::feed_of(std::move(*producer)) : tl::unexpected<Error>(producer.error());
}

/// The reason why there can be no full screen; empty: there can.
std::string why_no_screen() {
  if (::isatty(STDOUT_FILENO) != 1) {
    return "standard output is no terminal";
  }
  return can_draw() ? "" : "the terminal cannot be drawn on (TERM)";
}

int show_top(TopRequest& request) {
  start_logging({});
  return_freed_blocks();
  if (const std::string why = request.once || request.json ? "" : why_no_screen(); !why.empty()) {
    log_notice(why + ", so one picture is printed, as by --once");
    request.once = true;
  }
  const auto signals = daemon::SignalWatch::begin(daemon::SignalsFor::session);
  if (!signals) {
    return status_after(signals.error());
  }
  const bool on_screen = !request.once && !request.json;
  if (on_screen) {
    live::hold_terminal_signals();
  }
  const auto feed = feed_for(request, *signals);
  if (!feed) {
    return status_after(feed.error());
  }
  const live::ShowOptions options{request.count, request.sysroot, style_of_output(request.color)};
  if (request.json) {
    return live::show_json(**feed, *signals, options);
  }
  return on_screen ? live::show_screen(**feed, *signals, options)
                   : live::show_once(**feed, *signals, options, request.window_s);
}

}  // namespace

int run_top(const Arguments& arguments) { return serve(parse_top(arguments), show_top); }

}  // namespace crosstalk::driver
