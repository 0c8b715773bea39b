// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace crosstalk::service {
namespace {

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::system, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

/// Gives the child the descriptors 0 to fds.size() - 1, and no others. First moves them out of the way of each other.
bool arrange(std::vector<int>& fds) {
  const int above = static_cast<int>(fds.size());
  for (int& fd : fds) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, above);
    if (fd < 0) {
      return false;
    }
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (::dup2(fds[i], static_cast<int>(i)) < 0) {
      return false;
    }
  }
  return ::close_range(fds.size(), ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

/// Continues as the worker, between fork and exec: without memory of the heap, since other threads may have had its
/// lock. Returns only if that fails. `fds`: its descriptors 0, 1, ...
void become(const WorkerPlan& plan, char* const* arguments, pid_t daemon, std::vector<int>& fds) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {  // a script ignores SIGINT in its background
    ::signal(signal, SIG_DFL);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGINT);
  if (::getppid() != daemon || !arrange(fds)) {
    return;
  }
  if (plan.background) {
    ::setpriority(PRIO_PROCESS, 0, 19);
  }
  ::setpgid(0, 0);  // a terminal's ^C is for the daemon, which ends its workers one by one
  ::execv(plan.program.c_str(), arguments);
}

/// Async-signal-safe.
void say(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

[[noreturn]] void give_up(const WorkerPlan& plan, int error) {
  const char* const why = ::strerrordesc_np(error);
  say("crosstalk: cannot execute ");
  say(plan.program);
  say(": ");
  say(why != nullptr ? why : "unknown error");
  say("\n");
  ::_exit(127);
}

}  // namespace

Result<Worker> Worker::start(const WorkerPlan& plan) {
  auto output = make_pipe();
  auto errors = make_pipe();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const auto* const pipe : {&output, &errors}) {
    if (!*pipe) {
      return tl::unexpected<Error>(pipe->error());
    }
  }
  if (!null.valid()) {
    return fail(ErrorCode::system, std::string("cannot open /dev/null: ") + std::strerror(errno));
  }
  std::vector<int> fds = {null.get(), output->write.get(), errors->write.get()};
  fds.insert(fds.end(), plan.kept.begin(), plan.kept.end());
  std::vector<std::string> words = {plan.program};
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  const pid_t daemon = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(plan, pointers.data(), daemon, fds);
    give_up(plan, errno);
  }
  if (pid < 0) {
    return fail(ErrorCode::system, std::string("cannot start a process: ") + std::strerror(errno));
  }
  Worker worker;
  worker.pid_ = pid;
  worker.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  worker.output_ = std::move(output->read);
  worker.errors_ = std::move(errors->read);
  if (!worker.pidfd_.valid()) {
    return fail(ErrorCode::system, std::string("cannot watch a process: ") + std::strerror(errno));
  }
  return worker;
}

Worker::Worker(Worker&& other) noexcept { *this = std::move(other); }

Worker& Worker::operator=(Worker&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    output_ = std::move(other.output_);
    errors_ = std::move(other.errors_);
    status_ = other.status_;
    stopping_since_ns_ = other.stopping_since_ns_;
  }
  return *this;
}

Worker::~Worker() { end(); }

void Worker::end() {
  if (pid_ > 0 && !status_) {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

// It is not reaped yet, so neither number is another process's.
void Worker::kill() const {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // it may not lead its group yet
}

std::optional<int> Worker::poll_status() {
  int status = 0;
  if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return status_;
}

void Worker::stop(std::uint64_t now_ns, std::uint64_t patience_ns) {
  if (pid_ <= 0 || status_) {
    return;
  }
  if (stopping_since_ns_ == 0) {
    stopping_since_ns_ = now_ns;
    ::kill(pid_, SIGINT);
  } else if (now_ns - stopping_since_ns_ > patience_ns) {
    kill();
  }
}

// A pipe at its end is closed: it would be readable for ever.
std::string Worker::read_waiting(UniqueFd& pipe, std::size_t most) {
  std::string text;
  std::array<char, 4096> part{};
  while (pipe.valid() && text.size() < most) {
    const ssize_t length = ::read(pipe.get(), part.data(), std::min(part.size(), most - text.size()));
    if (length < 0) {
      break;
    }
    if (length == 0) {
      pipe.reset();
    }
    text.append(part.data(), static_cast<std::size_t>(length));
  }
  return text;
}

}  // namespace crosstalk::service
