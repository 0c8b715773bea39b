// SPDX-License-Identifier: Apache-2.0
// Finding and starting the command, its environment, and the signal state that it inherits.
#include "daemon/launch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/process_state.h"
#include "profile/arena.h"

namespace crosstalk::daemon::launch_test {
namespace {

Result<Child> start_held(const std::string& file, const std::vector<std::string>& command) {
  const Result<SignalWatch> signals = SignalWatch::begin();
  return Child::start(file, command, {"PATH=/bin:/usr/bin"}, *signals, Begin::held);
}

int status_of(Child& child) {
  pollfd polled{child.fd(), POLLIN, 0};
  ::poll(&polled, 1, 10'000);
  return child.poll_status().value_or(-1);
}

int status_of(const std::vector<std::string>& command) {
  const Result<SignalWatch> signals = SignalWatch::begin();
  const Result<std::string> file = find_command(command.front());
  Result<Child> child = Child::start(*file, command, {"PATH=/bin:/usr/bin"}, *signals);
  if (!child) {
    ADD_FAILURE() << child.error().message;
    return -1;
  }
  return status_of(*child);
}

TEST(FindCommand, ErrorsAreAShells) {
  EXPECT_EQ(find_command("no-such-command-anywhere").error().code, ErrorCode::not_found);
  EXPECT_EQ(find_command("./no/such/file").error().code, ErrorCode::not_found);
  EXPECT_EQ(find_command("").error().code, ErrorCode::not_found);
  EXPECT_EQ(find_command("/etc/passwd").error().code, ErrorCode::not_executable);
  EXPECT_EQ(find_command("/etc").error().code, ErrorCode::not_executable);
  EXPECT_EQ(find_command("/etc/passwd/x").error().code, ErrorCode::not_executable);
  EXPECT_TRUE(find_command("sh"));
  EXPECT_EQ(*find_command("/bin/sh"), "/bin/sh");
}

TEST(Child, GivesItsStatus) {
  EXPECT_EQ(status_of({"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(status_of({"sh", "-c", "kill -9 $$"}), 137);
}

TEST(Child, AScriptWithoutAnInterpreterLineIsGivenToTheShell) {
  const std::string script = std::filesystem::temp_directory_path() / ("script" + std::to_string(::getpid()));
  std::ofstream(script) << "exit $1\n";
  ::chmod(script.c_str(), 0755);
  EXPECT_EQ(status_of({script, "6"}), 6);
  std::filesystem::remove(script);
}

TEST(Child, IsHeldAsTheProgramThatHasExecutedNothing) {
  Result<Child> child = start_held("/bin/sh", {"sh", "-c", "exit 3"});
  ASSERT_TRUE(child) << child.error().message;
  const std::string process = "/proc/" + std::to_string(child->pid());
  EXPECT_EQ(std::filesystem::read_symlink(process + "/exe"), std::filesystem::canonical("/bin/sh"));
  pollfd polled{child->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 50), 0);
  const auto state = read_process_state(open_process_state(child->pid()));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->state, 't');
  child->release();
  EXPECT_EQ(status_of(*child), 3);
  EXPECT_FALSE(child->take_stop());
}

TEST(Child, SignalsReachItWhetherItWasHeldOrNot) {
  Result<Child> child = start_held("/bin/sh", {"sh", "-c", "exit 3"});
  ASSERT_TRUE(child) << child.error().message;
  child->send(SIGTERM);
  child->release();
  EXPECT_EQ(status_of(*child), 128 + SIGTERM);
}

TEST(Child, EndsWhileItIsHeld) {
  Result<Child> child = start_held("/bin/sh", {"sh", "-c", "exit 3"});
  ASSERT_TRUE(child) << child.error().message;
  const pid_t pid = child->pid();
  child->kill();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Child, WhatCanNotBeExecutedIsNotHeld) {
  const Result<Child> child = start_held("/etc/passwd", {"/etc/passwd"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::not_executable);
}

TEST(Child, AMissingInterpreterIsNotFound) {
  const std::string script = std::filesystem::temp_directory_path() / ("script" + std::to_string(::getpid()));
  std::ofstream(script) << "#!/no/such/interpreter\n";
  ::chmod(script.c_str(), 0755);
  const Result<SignalWatch> signals = SignalWatch::begin();
  const Result<Child> child = Child::start(script, {script}, {}, *signals);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::not_found);
  std::filesystem::remove(script);
}

TEST(Child, HasTheSignalStateFromBefore) {
  // The shell prints its inherited state: blocked and ignored signals are the test's own, none of the watch's.
  ::signal(SIGUSR2, SIG_IGN);
  sigset_t blocked;
  sigset_t old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &blocked, &old);
  const std::string test =
      "set -- $(grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2); [ $1 = 0000000000000200 ] && "
      "[ $((0x$2 & 0x11000)) = 0 ] && [ $((0x$2 & 0x800)) = 2048 ]";
  EXPECT_EQ(status_of({"sh", "-c", test}), 0);
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  ::signal(SIGUSR2, SIG_DFL);
}

TEST(CommandEnvironment, PreloadsBeforeWhatIsPreloaded) {
  const auto value = [](const std::vector<std::string>& environment, const std::string& name) {
    std::string all;
    for (const std::string& entry : environment) {
      if (entry.compare(0, name.size() + 1, name + "=") == 0) {
        all += entry.substr(name.size() + 1) + "|";
      }
    }
    return all;
  };
  ::setenv("LD_PRELOAD", "a.so:b.so", 1);
  ::setenv(profile::arena_variable, "stale", 1);
  const auto environment = command_environment("/lib/libcrosstalk.so", "/proc/1/fd/9");
  ::unsetenv("LD_PRELOAD");
  ::unsetenv(profile::arena_variable);
  ASSERT_TRUE(environment);
  EXPECT_EQ(value(*environment, "LD_PRELOAD"), "/lib/libcrosstalk.so:a.so:b.so|");
  EXPECT_EQ(value(*environment, profile::arena_variable), "/proc/1/fd/9|");
  EXPECT_EQ(command_environment("/a b/lib.so", "x").error().code, ErrorCode::refused);
}

TEST(SignalWatch, TakesSignalsAndRestores) {
  {
    const Result<SignalWatch> signals = SignalWatch::begin();
    ASSERT_TRUE(signals);
    ::kill(::getpid(), SIGTERM);
    const auto arrival = signals->take();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(arrival->signal, SIGTERM);
    EXPECT_EQ(arrival->code, SI_USER);
    EXPECT_EQ(arrival->sender, ::getpid());
    for (const int signal : {SIGUSR1, SIGALRM, SIGRTMIN, SIGRTMAX}) {
      ::kill(::getpid(), signal);
      const auto other = signals->take();
      ASSERT_TRUE(other);
      EXPECT_EQ(other->signal, signal);
    }
    EXPECT_FALSE(signals->take());
    ::kill(::getpid(), SIGINT);  // not taken: must not end us afterwards
  }
  sigset_t now;
  ::sigprocmask(SIG_BLOCK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGTERM), 0);
}

}  // namespace
}  // namespace crosstalk::daemon::launch_test
