// SPDX-License-Identifier: Apache-2.0
// exec_program observed|unobserved: starts itself in every way, with an environment that lost (or kept) the variables
// that make children observed, and checks that they are as the argument says. exec_program show: its exit status tells
// if it is observed (3) or not (0); 4: SIGTRAP is blocked, 8: ignored, 16: the environment shows these variables.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "tests/in_target/guest_core.h"

namespace {

constexpr int observed = 3;
constexpr char guest_name[] = "test_in_target_guest";
char self[] = "/proc/self/exe";
std::string file;  // in PATH
char show[] = "show";
char* const arguments[] = {self, show, nullptr};
int expected = observed;

int what_is_seen() {
  const auto count = GUEST(guest_count);
  int seen = count != nullptr ? 1 : 0;
  seen += count != nullptr && count(guest_found_arena) == 1 ? 2 : 0;
  const char* preload = std::getenv("LD_PRELOAD");
  const bool hidden =
      std::getenv("CROSSTALK_ARENA") == nullptr && (preload == nullptr || strstr(preload, guest_name) == nullptr);
  seen += hidden ? 0 : 16;
  sigset_t mask;
  struct sigaction action {};
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  sigaction(SIGTRAP, nullptr, &action);
  return seen + (sigismember(&mask, SIGTRAP) == 1 ? 4 : 0) + (action.sa_handler == SIG_IGN ? 8 : 0);
}

int status_of(pid_t child) {
  int status = 0;
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void expect(int status) {
  if (status != expected) {
    std::fprintf(stderr, "seen %d, expected %d\n", status, expected);
  }
  CHECK(status == expected);
}

template <class Exec>
void in_a_fork(Exec exec) {
  const pid_t child = fork();
  if (child == 0) {
    exec();
    _exit(99);
  }
  expect(status_of(child));
}

template <class Exec>
void in_a_vfork(Exec exec) {
  const pid_t child = vfork();
  if (child == 0) {
    exec();
    _exit(99);
  }
  expect(status_of(child));
}

void exec_functions(char* const* environment) {
  char** saved = environ;
  environ = const_cast<char**>(environment);
  in_a_fork([&] { execve(self, arguments, environment); });
  in_a_vfork([&] { execve(self, arguments, environment); });
  in_a_fork([&] { execv(self, arguments); });
  in_a_fork([&] { execvp(self, arguments); });
  in_a_fork([&] { execvpe(self, arguments, environment); });
  in_a_fork([&] { execl(self, self, "show", nullptr); });
  in_a_vfork([&] { execlp(self, self, "show", nullptr); });
  in_a_fork([&] { execle(self, self, "show", nullptr, environment); });
  in_a_fork([&] { fexecve(open(self, O_RDONLY | O_CLOEXEC), arguments, environment); });
  in_a_fork([&] { execveat(AT_FDCWD, self, arguments, environment, 0); });
  pid_t child = 0;
  CHECK(posix_spawn(&child, self, nullptr, nullptr, arguments, environment) == 0);
  expect(status_of(child));
  CHECK(posix_spawnp(&child, self, nullptr, nullptr, arguments, environment) == 0);
  expect(status_of(child));
  CHECK(posix_spawn(&child, "/nonexistent", nullptr, nullptr, arguments, environment) == ENOENT);
  environ = saved;
}

void environments() {
  char some[] = "SOME=thing";
  char other_preload[] = "LD_PRELOAD=libm.so.6";
  char other_arena[] = "CROSSTALK_ARENA=/proc/2/fd/8";
  char* const empty[] = {nullptr};
  char* const plain[] = {some, nullptr};
  char* const other[] = {other_preload, some, nullptr};
  char* const wrong[] = {some, other_arena, nullptr};
  std::string ours = std::string("LD_PRELOAD=libm.so.6:") + std::getenv("GUEST_PATH");
  char arena[] = "CROSSTALK_ARENA=/dev/null";
  char* const whole[] = {ours.data(), arena, nullptr};
  exec_functions(empty);
  exec_functions(plain);
  exec_functions(other);
  if (expected == observed) {
    exec_functions(wrong);
  }
  exec_functions(whole);
  exec_functions(environ);
  const int status = std::system((file + " show").c_str());
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
  std::FILE* const output = popen((file + " show; echo $?").c_str(), "r");
  int seen = -1;
  CHECK(output != nullptr && std::fscanf(output, "%d", &seen) == 1 && seen == expected);
  CHECK(pclose(output) == 0);
}

/// Changes of a program's environment stay, even while libc's children are started with another environment.
void the_environment_is_the_programs() {
  CHECK(setenv("SET_BEFORE", "1", 1) == 0 && setenv("UNSET_LATER", "1", 1) == 0);
  std::thread busy([] { CHECK(std::system("sleep 0.2") == 0); });
  usleep(100'000);
  CHECK(unsetenv("UNSET_LATER") == 0 && setenv("SET_BEFORE", "22", 1) == 0);
  busy.join();
  CHECK(std::getenv("UNSET_LATER") == nullptr && strcmp(std::getenv("SET_BEFORE"), "22") == 0);
  std::thread other([] { CHECK(std::system("sleep 0.2") == 0); });
  usleep(100'000);
  CHECK(setenv("SET_MEANWHILE", "1", 1) == 0);
  in_a_fork([] { _exit(what_is_seen()); });
  other.join();
  CHECK(std::getenv("SET_MEANWHILE") != nullptr && std::getenv("CROSSTALK_ARENA") == nullptr);
  CHECK(what_is_seen() == observed);
  std::thread third([] { CHECK(std::system("sleep 0.2") == 0); });
  usleep(100'000);
  in_a_fork([] { _exit(what_is_seen()); });
  third.join();
}

void a_failing_exec() {
  const auto count = GUEST(guest_count);
  const auto owns = GUEST(guest_owns);
  char* const empty[] = {nullptr};
  CHECK(execve("/nonexistent", arguments, empty) == -1 && errno == ENOENT);
  CHECK(count(guest_before_exec) == 1 && count(guest_exec_failed) == 1);
  CHECK(execlp("no-such-program", "x", nullptr) == -1 && errno == ENOENT);
  CHECK(count(guest_before_exec) == 2 && count(guest_exec_failed) == 2);
  signal(SIGTRAP, SIG_IGN);
  CHECK(execve("/nonexistent", arguments, empty) == -1 && errno == ENOENT && owns(SIGTRAP));
  signal(SIGTRAP, SIG_DFL);
}

/// The next program inherits the target's ignored and blocked signals.
void signals_are_inherited() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  CHECK(sigprocmask(SIG_SETMASK, &all, &before) == 0);
  expected += 4;
  in_a_fork([] { execv(self, arguments); });
  CHECK(sigprocmask(SIG_SETMASK, &before, nullptr) == 0);
  expected += 4;
  CHECK(signal(SIGTRAP, SIG_IGN) == SIG_DFL);
  in_a_fork([] { execv(self, arguments); });
  CHECK(signal(SIGTRAP, SIG_DFL) == SIG_IGN);
  expected -= 8;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "show") {
    return what_is_seen();
  }
  file = argv[0];
  expected = mode == "unobserved" ? 0 : observed;
  a_failing_exec();
  environments();
  signals_are_inherited();
  if (expected == observed) {
    the_environment_is_the_programs();
  }
  // The process itself stays observed through its own exec, with or without observed children.
  char* const empty[] = {nullptr};
  execve(self, arguments, empty);
  return 99;
}
