// SPDX-License-Identifier: Apache-2.0
#include "daemon/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "daemon/own_limits.h"
#include "profile/arena.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves declaring it to us

namespace crosstalk::daemon {
namespace {

/// Returns 0, or the errno of executing `path`.
int executable_errno(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno;
  }
  if (S_ISDIR(status.st_mode)) {
    return EISDIR;
  }
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

tl::unexpected<Error> exec_failure(const std::string& command, int error) {
  const std::string what = "cannot execute '" + command + "': " + std::strerror(error);
  switch (error) {
    case ENOENT:
      return fail(ErrorCode::not_found, what + "; check the name or PATH");
    case E2BIG:
    case EACCES:
    case EISDIR:
    case ELIBBAD:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOEXEC:
    case ENOTDIR:
    case EPERM:
    case ETXTBSY:
      return fail(ErrorCode::not_executable, what);
    default:
      return fail(ErrorCode::system, what);
  }
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const std::string& text : strings) {
    list.push_back(const_cast<char*>(text.c_str()));  // exec's interface; it does not write
  }
  list.push_back(nullptr);
  return list;
}

struct ExecImage {
  const char* file;
  std::vector<char*> argv, shell_argv, environment;
  std::vector<char*> own_numbers;  // places in the environment that receive the process's own number
};

constexpr std::size_t most_digits = 10;

/// True for a variable that holds this process's number: LISTEN_PID, WATCHDOG_PID, ... The command must find its own
/// number there.
bool names_this_process(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  const std::string_view name = entry.substr(0, equals);
  return equals != std::string_view::npos && name.ends_with("PID") && !name.ends_with("PPID") &&
         entry.substr(equals + 1) == std::to_string(::getpid());
}

/// True for a variable that identifies the process a second time; it would need a new value too.
bool is_second_name(std::string_view entry) { return entry.starts_with("LISTEN_PIDFDID="); }

/// Makes room in the environment for the child's number; returns the places.
std::vector<char*> make_room_for_own_number(std::vector<std::string>& environment) {
  if (std::none_of(environment.begin(), environment.end(), names_this_process)) {
    return {};
  }
  std::erase_if(environment, is_second_name);
  std::vector<char*> places;
  for (std::string& entry : environment) {
    if (names_this_process(entry)) {
      const std::size_t begin = entry.find('=') + 1;
      entry.resize(begin + most_digits);
      places.push_back(entry.data() + begin);
    }
  }
  return places;
}

/// Runs in the child: async-signal-safe.
void write_own_number(char* place) {
  char digits[most_digits];
  std::size_t count = 0;
  for (auto rest = static_cast<unsigned>(::getpid()); rest != 0 && count < most_digits; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) {
    *place++ = digits[--count];
  }
  *place = 0;
}

struct Pipe {
  UniqueFd output, input;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorCode::system, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Reads until the last writer closes the pipe, up to the size of `value`.
ssize_t read_all(int fd, int& value) {
  ssize_t got = 0;
  do {
    got = ::read(fd, &value, sizeof value);
  } while (got < 0 && errno == EINTR);
  return got;
}

/// Returns errno on failure.
int execute(const ExecImage& image) {
  ::execve(image.file, image.argv.data(), image.environment.data());
  if (errno == ENOEXEC) {  // a script without #!: as a shell would
    ::execve("/bin/sh", image.shell_argv.data(), image.environment.data());
  }
  return errno;
}

std::vector<std::string> words_for_shell(const std::string& file, const std::vector<std::string>& argv) {
  std::vector<std::string> words{"/bin/sh", file};
  words.insert(words.end(), argv.begin() + 1, argv.end());
  return words;
}

/// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const ExecImage& image, const SignalWatch& signals, int report, const Pipe& gate) {
  ::close(gate.input.get());
  int nothing = 0;
  read_all(gate.output.get(), nothing);  // until the parent closes it
  for (char* const place : image.own_numbers) {
    write_own_number(place);
  }
  restore_limits();
  signals.restore();
  signals.restore_timers();
  const int error = execute(image);
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<std::string> find_command(const std::string& command) {
  if (command.find('/') != std::string::npos) {
    const int error = executable_errno(command);
    return error == 0 ? Result<std::string>(command) : exec_failure(command, error);
  }
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
  int error = ENOENT;
  while (!command.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    const std::string path = (directory.empty() ? "." : std::string(directory)) + "/" + command;
    const int found = executable_errno(path);
    if (found == 0) {
      return path;
    }
    error = found != ENOENT && found != ENOTDIR ? found : error;
    if (colon == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(colon + 1);
  }
  return exec_failure(command, error == EISDIR ? ENOENT : error);
}

Result<std::vector<std::string>> command_environment(const std::string& collector, const std::string& arena_path) {
  constexpr std::string_view preload = "LD_PRELOAD=";
  const std::string arena = std::string(profile::arena_variable) + "=";
  if (collector.find_first_of(" :") != std::string::npos) {
    return fail(ErrorCode::refused, "cannot preload '" + collector +
                                        "': the dynamic loader takes a space or colon in LD_PRELOAD for the end "
                                        "of a name; install crosstalk elsewhere");
  }
  std::string preloaded = std::string(preload) + collector;
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.substr(0, preload.size()) == preload) {
      if (text.size() > preload.size()) {
        preloaded += ':';
        preloaded += text.substr(preload.size());
      }
    } else if (text.substr(0, arena.size()) != arena) {
      environment.emplace_back(text);
    }
  }
  environment.push_back(std::move(preloaded));
  environment.push_back(arena + arena_path);
  return environment;
}

std::vector<std::string> plain_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

Error execute(const std::string& file, const std::vector<std::string>& argv,
              const std::vector<std::string>& environment) {
  const std::vector<std::string> shell_words = words_for_shell(file, argv);
  const ExecImage image{file.c_str(), pointers(argv), pointers(shell_words), pointers(environment), {}};
  return exec_failure(argv.front(), execute(image)).value();
}

Result<Child> Child::start(const std::string& file, const std::vector<std::string>& argv,
                           std::vector<std::string> environment, const SignalWatch& signals, Begin begin) {
  const std::vector<std::string> shell_words = words_for_shell(file, argv);
  const std::vector<char*> own_numbers = make_room_for_own_number(environment);
  const ExecImage image{file.c_str(), pointers(argv), pointers(shell_words), pointers(environment), own_numbers};

  Result<Pipe> report = make_pipe();
  Result<Pipe> gate = make_pipe();
  if (!report || !gate) {
    return tl::unexpected<Error>(report ? gate.error() : report.error());
  }
  Child child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) {
    become(image, signals, report->input.get(), *gate);
  }
  if (child.pid_ < 0) {
    return fail(ErrorCode::system, std::string("cannot fork: ") + std::strerror(errno) + "; see ulimit -u");
  }
  report->input.reset();
  if (begin == Begin::held) {
    child.hold_ = ExecHold::seize(child.pid_);
  }
  gate->input.reset();
  if (child.hold_ && !child.hold_->await()) {
    child.hold_.reset();
  }
  int error = 0;
  if (read_all(report->output.get(), error) == static_cast<ssize_t>(sizeof error)) {  // else exec has closed the pipe
    ::waitpid(child.pid_, nullptr, 0);
    return exec_failure(argv.front(), error);
  }
  child.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

void Child::kill() {
  send(SIGKILL);
  release();
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, 0) == pid_) {
    status_ = 128 + SIGKILL;
  }
}

std::optional<int> Child::poll_status() {
  int status = 0;
  if (status_ || ::waitpid(pid_, &status, WNOHANG | WUNTRACED) != pid_) {
    return status_;
  }
  if (WIFSTOPPED(status)) {
    stopped_by_ = WSTOPSIG(status);
  } else {
    death_signal_ = WIFSIGNALED(status) ? std::optional(WTERMSIG(status)) : std::nullopt;
    status_ = death_signal_ ? 128 + *death_signal_ : WEXITSTATUS(status);
  }
  return status_;
}

void Child::send(int signal) const {
  if (!status_) {
    ::kill(pid_, signal);
  }
}

void Child::send(const SignalWatch::Arrival& arrival) const {
  if (!status_) {
    pass_on(pid_, arrival);
  }
}

void pass_on(pid_t pid, const SignalWatch::Arrival& arrival) {
  if (arrival.code != SI_QUEUE) {
    ::kill(pid, arrival.signal);
    return;
  }
  siginfo_t info{};
  info.si_signo = arrival.signal;
  info.si_code = SI_QUEUE;
  info.si_pid = arrival.sender;
  info.si_uid = arrival.user;
  info.si_value = arrival.value;
  ::syscall(SYS_rt_sigqueueinfo, pid, arrival.signal, &info);
}

}  // namespace crosstalk::daemon
