// SPDX-License-Identifier: Apache-2.0
#include "driver/live/show.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "driver/live/picture.h"
#include "driver/live/screen.h"
#include "driver/live/stream.h"
#include "driver/live/view_state.h"
#include "driver/options/command_line.h"
#include "driver/options/source_file.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"

namespace crosstalk::driver::live {
namespace {

sigset_t terminal_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGWINCH, SIGTSTP, SIGCONT}) {
    sigaddset(&set, signal);
  }
  return set;
}

/// True if a signal has come that ends programs.
bool told_to_end(const daemon::SignalWatch& signals) {
  bool told = false;
  while (const auto arrival = signals.take()) {
    told = told || arrival->signal == SIGINT || arrival->signal == SIGTERM || arrival->signal == SIGHUP ||
           arrival->signal == SIGQUIT;
  }
  return told;
}

int report_failure(const Error& error) {
  log_error(error.message);
  return error.code == ErrorCode::refused || error.code == ErrorCode::invalid_argument ? exit_refused : exit_failed;
}

/// Waits for the next news of the feed; nothing if a signal ends the wait. `gone`: a descriptor whose reader may go.
std::optional<Feed::News> await(Feed& feed, const daemon::SignalWatch& signals, int gone = -1) {
  for (;;) {
    std::array<pollfd, 3> polled = {{{feed.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}, {gone, 0, 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (told_to_end(signals) || (polled[2].revents & (POLLERR | POLLHUP)) != 0) {
      return std::nullopt;
    }
    if (polled[0].revents != 0) {
      return feed.take();
    }
  }
}

std::string end_of(const Feed::News& news) { return news.error ? news.error->message : ""; }

/// The full screen.
class View {
 public:
  View(Feed& feed, Screen screen, const ShowOptions& options)
      : feed_(feed),
        screen_(std::move(screen)),
        options_(options),
        state_([sysroot = options.sysroot](const std::string& file) { return read_source(file, sysroot); }) {}

  void run(const daemon::SignalWatch& signals) {
    const sigset_t set = terminal_signals();
    const UniqueFd of_terminal(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    while (!state_.over() && !over_) {
      screen_.show(picture_of(state_, screen_.rows(), screen_.columns(), screen_.charset(), screen_.has_shades()));
      std::array<pollfd, 4> polled = {{{screen_.fd(), POLLIN, 0},
                                       {state_.ended() ? -1 : feed_.fd(), POLLIN, 0},
                                       {signals.fd(), POLLIN, 0},
                                       {of_terminal.get(), POLLIN, 0}}};
      ::poll(polled.data(), polled.size(), -1);
      over_ = told_to_end(signals) || (polled[0].revents & (POLLHUP | POLLERR)) != 0;  // or the terminal is gone
      take_terminal_signals(of_terminal.get());
      while (const auto key = screen_.key()) {
        state_.press(*key);
      }
      if (polled[1].revents != 0) {
        take(feed_.take());
      }
    }
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void take(Feed::News news) {
    if (news.snapshot) {
      state_.take(std::move(*news.snapshot));
      over_ = over_ || (options_.count != 0 && ++pictures_ >= options_.count);
    }
    if (news.ended) {
      state_.end(end_of(news));
      if (!state_.snapshot()) {  // there is nothing to look at
        error_ = news.error;
        over_ = true;
      }
    }
  }

  void take_terminal_signals(int fd) {
    signalfd_siginfo info{};
    while (::read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGTSTP) {
        screen_.stop_process();
      } else if (info.ssi_signo == SIGCONT) {
        screen_.take_again();
      } else {
        screen_.resize();
      }
    }
  }

  Feed& feed_;
  Screen screen_;
  const ShowOptions& options_;
  ViewState state_;
  std::uint64_t pictures_ = 0;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace

void hold_terminal_signals() {
  const sigset_t set = terminal_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int show_screen(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options) {
  Result<Screen> screen = Screen::open(options.style.charset, options.style.color);
  if (!screen) {
    return report_failure(screen.error());
  }
  std::optional<Error> error;
  {
    View view(feed, std::move(*screen), options);
    view.run(signals);
    error = view.error();
  }
  return error ? report_failure(*error) : exit_ok;
}

int show_once(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options, double window_s) {
  std::optional<Snapshot> last;
  std::optional<Error> error;
  std::uint64_t pictures = 0;
  for (bool more = true; more;) {
    std::optional<Feed::News> news = await(feed, signals);
    if (!news) {
      break;
    }
    if (news->snapshot) {
      last = std::move(news->snapshot);
      ++pictures;
    }
    error = news->error;
    const bool covered = last && last->window_s >= window_s - last->refresh_s / 2;
    more = !news->ended && (options.count != 0 ? pictures < options.count : !covered);
  }
  if (error) {
    return report_failure(*error);
  }
  if (last &&
      !write_output(
          page_of(*last, options.style.width, options.style.charset, options.style.color).text(options.style.color),
          false)) {
    log_error("standard output cannot be written");
    return exit_failed;
  }
  return exit_ok;
}

namespace {

/// Writes to standard output, in pieces that a pipe takes at once: a reader that has stopped reading does not keep this
/// from being told to end. False: to end, or the reader is gone. An error: it cannot be written.
Result<bool> put_out(std::string_view text, const daemon::SignalWatch& signals) {
  constexpr std::size_t piece = 4096;
  while (!text.empty()) {
    std::array<pollfd, 2> polled = {{{STDOUT_FILENO, POLLOUT, 0}, {signals.fd(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (told_to_end(signals)) {
      return false;
    }
    if (polled[0].revents == 0) {
      continue;
    }
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), std::min(text.size(), piece));
    if (written < 0 && errno == EPIPE) {
      return false;
    }
    if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return fail(ErrorCode::system, std::string("standard output cannot be written: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

}  // namespace

int show_json(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options) {
  for (std::uint64_t pictures = 0; options.count == 0 || pictures < options.count;) {
    std::optional<Feed::News> news = await(feed, signals, STDOUT_FILENO);
    if (!news) {
      return exit_ok;
    }
    const Result<bool> went_on =
        news->snapshot ? put_out(line_of(*news->snapshot) + "\n", signals) : Result<bool>(true);
    if (!went_on) {
      return report_failure(went_on.error());
    }
    if (!*went_on) {
      return exit_ok;
    }
    pictures += news->snapshot ? 1 : 0;
    if (news->ended) {
      return news->error ? report_failure(*news->error) : exit_ok;
    }
  }
  return exit_ok;
}

}  // namespace crosstalk::driver::live
