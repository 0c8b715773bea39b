// SPDX-License-Identifier: Apache-2.0
#include "driver/live/recorder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace crosstalk::driver::live {
namespace {

constexpr const char* running_program = "/proc/self/exe";
constexpr std::string_view own_prefix = "crosstalk: ";
constexpr std::size_t longest_words = 4096;  // bytes of a line; the rest is dropped

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) {
    list.push_back(const_cast<char*>(word.c_str()));  // exec's interface; it does not write
  }
  list.push_back(nullptr);
  return list;
}

/// The file of this program. By its path, process lists show its name; the path may lead elsewhere by now.
std::string own_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(running_program, error);
  return !error && std::filesystem::equivalent(path, running_program, error) && !error ? path.string()
                                                                                       : running_program;
}

/// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_recorder(const char* program, char* const* argv, const daemon::SignalWatch& signals,
                                  int nowhere, int words, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) {  // it has died meanwhile
    ::_exit(1);
  }
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  signals.restore();
  ::execv(program, argv);
  ::_exit(127);
}

}  // namespace

Result<RecorderProcess> RecorderProcess::start(const std::vector<std::string>& arguments,
                                               const daemon::SignalWatch& signals) {
  std::vector<std::string> words = {"crosstalk"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(words);
  const std::string program = own_program();
  const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2] = {-1, -1};
  if (!nowhere.valid() || ::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorCode::system, std::string("the recorder cannot be started: ") + std::strerror(errno));
  }
  RecorderProcess recorder;
  recorder.words_.reset(ends[0]);
  const UniqueFd input(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  recorder.pid_ = ::fork();
  if (recorder.pid_ == 0) {
    become_recorder(program.c_str(), argv.data(), signals, nowhere.get(), input.get(), parent);
  }
  if (recorder.pid_ < 0) {
    return fail(ErrorCode::system,
                std::string("the recorder cannot be started: ") + std::strerror(errno) + "; see ulimit -u");
  }
  recorder.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, recorder.pid_, 0)));
  return recorder;
}

RecorderProcess::RecorderProcess(RecorderProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      words_(std::move(other.words_)),
      line_(std::move(other.line_)),
      last_words_(std::move(other.last_words_)),
      status_(other.status_) {}

void RecorderProcess::read_words() {
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = ::read(words_.get(), bytes.data(), bytes.size())) > 0;) {
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        line_ += line_.size() < longest_words ? std::string(1, c) : std::string();
        continue;
      }
      if (line_.starts_with(own_prefix)) {
        last_words_ = line_.substr(own_prefix.size());
      }
      line_.clear();
    }
  }
}

std::optional<int> RecorderProcess::status() {
  int status = 0;
  if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFSIGNALED(status) ? of_signals + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return status_;
}

void RecorderProcess::stop() {
  constexpr int patience_ms = 100;
  constexpr int times = 50;
  if (pid_ <= 0) {
    return;
  }
  if (!status()) {
    ::kill(pid_, SIGTERM);
    ::kill(pid_, SIGCONT);
  }
  for (int i = 0; i < times && !status(); ++i) {
    pollfd ended[] = {{pidfd_.get(), POLLIN, 0}, {words_.get(), POLLIN, 0}};
    ::poll(ended, 2, patience_ms);
    read_words();
  }
  if (!status()) {
    ::kill(pid_, SIGKILL);
    int left = 0;
    ::waitpid(pid_, &left, 0);
  }
  pid_ = -1;
}

}  // namespace crosstalk::driver::live
