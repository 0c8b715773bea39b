// SPDX-License-Identifier: Apache-2.0
#include "daemon/group_witness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/clock.h"

namespace crosstalk::daemon {
namespace {

constexpr char question = '?';
constexpr std::size_t most_of_stat = 2048;

/// Returns [begin, end) of the words of this process's command line; empty if /proc does not tell. Async-signal-safe.
std::pair<char*, char*> command_line() {
  constexpr int begin_field = 48;  // of proc(5), of which the third follows the name
  char text[most_of_stat];
  const UniqueFd file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t got = file.valid() ? ::read(file.get(), static_cast<char*>(text), sizeof text - 1) : 0;
  if (got <= 0) {
    return {};
  }
  text[got] = 0;
  char* at = std::strrchr(static_cast<char*>(text), ')');
  for (int field = 2; at != nullptr && field < begin_field; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  if (at == nullptr) {
    return {};
  }
  char* rest = nullptr;
  const std::uint64_t begin = std::strtoull(at, &rest, 10);
  const std::uint64_t end = std::strtoull(rest, nullptr, 10);
  return {reinterpret_cast<char*>(begin), reinterpret_cast<char*>(end)};  // NOLINT: addresses
}

/// Gives the witness the command's name: `pkill` by command line then matches the witness together with the command, so
/// a signal to the witness has reached the command too. The recorder's words come first in this process's memory.
void take_on_command_line() {
  constexpr std::string_view separator("\0--", 4);  // with the zero behind it
  const auto [begin, end] = command_line();
  if (begin == nullptr || end <= begin) {
    return;
  }
  const auto bytes = static_cast<std::size_t>(end - begin);
  const std::size_t at = std::string_view(begin, bytes).find(separator);
  const std::size_t skipped = at == std::string_view::npos ? bytes : at + separator.size();
  std::memmove(begin, begin + skipped, bytes - skipped);
  std::memset(begin + (bytes - skipped), 0, skipped);
}

void note_arrivals(int signals, WitnessedTimes& times) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo < times.size()) {
      times[info.ssi_signo] = monotonic_ns();
    }
  }
}

/// The child of a process that may have threads, so it makes async-signal-safe calls only.
[[noreturn]] void witness(int channel, const sigset_t& all) {
  ::prctl(PR_SET_NAME, "signal-witness", 0, 0, 0);
  take_on_command_line();
  constexpr int own_channel = STDIN_FILENO;
  ::dup2(channel, own_channel);
  ::syscall(SYS_close_range, own_channel + 1, ~0U, 0);  // keep no pipe open that somebody waits on
  const int signals = ::signalfd(-1, &all, SFD_NONBLOCK);
  WitnessedTimes times{};
  pollfd polled[] = {{own_channel, POLLIN, 0}, {signals, POLLIN, 0}};
  while (::poll(static_cast<pollfd*>(polled), 2, -1) > 0) {
    char asked = 0;
    const bool spoken_to = polled[0].revents != 0;
    if (spoken_to && ::read(own_channel, &asked, sizeof asked) != sizeof asked) {
      break;
    }
    note_arrivals(signals, times);
    if (spoken_to) {
      (void)!::write(own_channel, times.data(), sizeof times);
    }
  }
  ::_exit(0);
}

/// Waits for running sends to a group: they hold the kernel's process list lock for reading, and setpgid takes it for
/// writing.
void await_senders() { ::setpgid(0, ::getpgrp()); }

}  // namespace

std::optional<GroupWitness> GroupWitness::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, static_cast<int*>(ends)) != 0) {
    return std::nullopt;
  }
  UniqueFd own(ends[0]);
  const UniqueFd other(ends[1]);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no signal may end it, from its first instruction on
  const pid_t pid = ::fork();
  if (pid == 0) {
    witness(other.get(), all);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid > 0 ? std::optional(GroupWitness(pid, std::move(own))) : std::nullopt;
}

GroupWitness::~GroupWitness() {
  if (pid_ != 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::optional<WitnessedTimes> GroupWitness::ask() const {
  constexpr int patience_ms = 2000;
  await_senders();
  WitnessedTimes times{};
  while (::recv(channel_.get(), times.data(), sizeof times, MSG_DONTWAIT) > 0) {
    // Drop a late answer to an earlier question.
  }
  pollfd answered{channel_.get(), POLLIN, 0};
  const bool asked = ::send(channel_.get(), &question, sizeof question, MSG_NOSIGNAL) == sizeof question;
  if (!asked || ::poll(&answered, 1, patience_ms) <= 0 ||
      ::read(channel_.get(), times.data(), sizeof times) != static_cast<ssize_t>(sizeof times)) {
    return std::nullopt;
  }
  return times;
}

}  // namespace crosstalk::daemon
