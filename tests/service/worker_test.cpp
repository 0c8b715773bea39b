// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/worker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/proc_fields.h"
#include "tests/service/temporary_folder.h"

namespace crosstalk::service::worker_test {
namespace {

/// Waits until it holds; no test waits that long for what comes.
bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 15'000; ++i) {
    if (holds()) {
      return true;
    }
    ::usleep(2000);
  }
  return false;
}

Worker start(const std::string& script, std::vector<int> kept = {}, bool background = false) {
  auto worker = Worker::start({"/bin/sh", {"-c", script}, std::move(kept), background});
  EXPECT_TRUE(worker) << worker.error().message;
  return std::move(*worker);
}

/// Waits for the end, which its descriptor tells.
int status_of(Worker& worker) {
  pollfd polled{worker.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 30'000), 1);
  return worker.poll_status().value_or(-1);
}

TEST(Worker, TellsItsStatus) {
  Worker ends = start("exit 7");
  EXPECT_EQ(status_of(ends), 7);
  EXPECT_EQ(ends.poll_status(), 7);  // again
  Worker killed = start("kill -9 $$");
  EXPECT_EQ(status_of(killed), 137);
}

TEST(Worker, HasNoStatusWhileItRuns) {
  Worker worker = start("sleep 100");
  EXPECT_EQ(worker.poll_status(), std::nullopt);
  pollfd polled{worker.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0);
}

TEST(Worker, IsReadWithoutWaiting) {
  Worker worker = start("echo out; echo err >&2; read x");
  std::string output, errors;
  EXPECT_EQ(status_of(worker), 1);  // /dev/null is its input
  output = worker.read_output(2);
  output += worker.read_output(100);
  errors = worker.read_errors(100);
  EXPECT_EQ(output, "out\n");
  EXPECT_EQ(errors, "err\n");
}

TEST(Worker, APipeAtItsEndIsNoLongerWaitedFor) {
  Worker worker = start("exec 2>&-; echo x; sleep 100");
  EXPECT_TRUE(soon([&] { return worker.read_errors(100).empty() && worker.fds()[2] < 0; }));
  EXPECT_GE(worker.fds()[1], 0);
  EXPECT_EQ(worker.read_errors(100), "");
}

TEST(Worker, WhoeverKeepsItsPipesKeepsNobodyFromSeeingItsEnd) {
  Worker worker = start("sleep 100 & exit 3");
  EXPECT_EQ(status_of(worker), 3);
  EXPECT_EQ(worker.read_output(100), "");
}

TEST(Worker, InheritsTheDescriptorsThatAreMeantForIt) {
  const TemporaryFolder folder;
  std::vector<UniqueFd> files;
  std::vector<int> kept;
  for (const char* const name : {"a", "b", "c"}) {
    files.emplace_back(::open(folder.path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    kept.push_back(files.back().get());
  }
  const UniqueFd stray(::open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  // Their own numbers are among those that they get.
  for (const auto& order : {std::vector<int>{kept[2], kept[0], kept[1]}, std::vector<int>{kept[0], kept[1], kept[2]},
                            std::vector<int>{kept[1], kept[1], kept[1]}}) {
    Worker worker = start("ls -x /proc/self/fd; for i in 3 4 5; do readlink /proc/$$/fd/$i; done", order);
    EXPECT_EQ(status_of(worker), 0);
    std::string expected = "0  1  2  3  4  5  6\n";  // 6: the folder that ls reads
    for (const int fd : order) {
      expected += folder.path(fd == kept[0] ? "a" : fd == kept[1] ? "b" : "c") + "\n";
    }
    EXPECT_EQ(worker.read_output(10'000), expected) << worker.read_errors(1000);
  }
  EXPECT_EQ(kept_number(0), 3);
  EXPECT_EQ(kept_number(2), 5);
}

TEST(Worker, InheritsManyDescriptors) {
  std::vector<UniqueFd> files;
  std::vector<int> kept;
  for (int i = 0; i < 64; ++i) {
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    kept.push_back(files.back().get());
  }
  Worker worker = start("exec ls /proc/self/fd", kept);
  EXPECT_EQ(status_of(worker), 0);
  const std::string listed = worker.read_output(10'000);
  EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 68) << listed;  // one of ls itself
}

TEST(Worker, HasFreshSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto* const pipe_before = ::signal(SIGPIPE, SIG_IGN);
  Worker worker = start("grep -E 'Sig(Blk|Ign)' /proc/self/status");
  EXPECT_EQ(status_of(worker), 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, pipe_before);
  const std::string status = worker.read_output(1000);
  EXPECT_EQ(proc_field(status, "SigBlk"), "0000000000000000");
  const std::uint64_t ignored = std::stoull(std::string(proc_field(status, "SigIgn").value_or("0")), nullptr, 16);
  EXPECT_EQ(ignored >> (SIGPIPE - 1U) & 1U, 0U);
}

TEST(Worker, LeadsAGroupOfItsOwnAndIsNiceInTheBackground) {
  Worker worker = start("sleep 100", {}, true);
  EXPECT_TRUE(soon([&] { return ::getpgid(worker.pid()) == worker.pid(); }));
  EXPECT_TRUE(soon([&] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(worker.pid())) == 19; }));
}

TEST(Worker, AProgramThatIsNotThereIsTold) {
  for (const char* const program : {"/no/such/program", "/etc/passwd", "/etc", ""}) {
    auto worker = Worker::start({program, {"record"}, {}, false});
    ASSERT_TRUE(worker);
    EXPECT_EQ(status_of(*worker), 127);
    const std::string errors = worker->read_errors(1000);
    EXPECT_THAT(errors, ::testing::StartsWith("crosstalk: cannot execute " + std::string(program) + ": "));
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
  }
}

TEST(Worker, IsAskedToEnd) {
  Worker worker = start("trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done");
  EXPECT_TRUE(soon([&] { return worker.read_output(100) == "ready\n"; }));
  EXPECT_FALSE(worker.stopping());
  worker.stop(monotonic_ns());
  EXPECT_TRUE(worker.stopping());
  EXPECT_EQ(status_of(worker), 5);
  worker.stop(monotonic_ns());  // harmless
}

TEST(Worker, IsKilledWithItsGroupWhenPatienceEnds) {
  Worker worker = start("trap '' INT; sleep 1000 & echo $!; wait");
  std::string child;
  EXPECT_TRUE(soon([&] { return !(child += worker.read_output(100)).empty() && child.back() == '\n'; }));
  const std::uint64_t now = monotonic_ns();
  worker.stop(now, 1000);
  worker.stop(now + 1000, 1000);  // not yet
  ::usleep(20'000);
  EXPECT_EQ(worker.poll_status(), std::nullopt);
  worker.stop(now + 1001, 1000);
  EXPECT_EQ(status_of(worker), 137);
  const std::string status = "/proc/" + std::to_string(std::stoi(child)) + "/status";
  EXPECT_TRUE(soon([&] {
    const std::string text = file_text(status);
    return text.empty() || proc_field(text, "State").value_or("Z").starts_with('Z');
  }));
}

TEST(Worker, DiesWithItsOwner) {
  pid_t pid = 0;
  {
    const Worker worker = start("sleep 100");
    pid = worker.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Worker, OwnershipMoves) {
  Worker first = start("exit 3");
  Worker second = start("sleep 100");
  const pid_t slept = second.pid();
  second = std::move(first);
  EXPECT_EQ(::kill(slept, 0), -1);
  EXPECT_EQ(status_of(second), 3);
  Worker third(std::move(second));
  EXPECT_EQ(third.poll_status(), 3);
  first.stop(monotonic_ns());  // NOLINT(bugprone-use-after-move): it has no process
  EXPECT_EQ(first.poll_status(), std::nullopt);
}

TEST(Worker, EndsAsByInterruptIfTheDaemonDies) {
  const TemporaryFolder folder;
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    auto worker = Worker::start({"/bin/sh",
                                 {"-c", "trap 'echo interrupted >" + folder.path("told") + "; exit 0' INT; echo x >" +
                                            folder.path("ready") + "; while :; do sleep 0.01; done"},
                                 {},
                                 false});
    ::pause();
    ::_exit(worker ? 0 : 1);
  }
  EXPECT_TRUE(soon([&] { return folder.content("ready") == "x\n"; }));
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  EXPECT_TRUE(soon([&] { return folder.content("told") == "interrupted\n"; }));
}

TEST(Worker, WithoutDescriptorsThereIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{4, 4};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto worker = Worker::start({"/bin/true", {}, {}, false});
    const bool told = !worker && worker.error().code == ErrorCode::system &&
                      worker.error().message.find("Too many open files") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Worker, LeavesNoDescriptorsAndZombies) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 1000; ++fd) {
      count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
  };
  const int before = open_files();
  for (int i = 0; i < 20; ++i) {
    Worker worker = start("exit 0");
    EXPECT_EQ(status_of(worker), 0);
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // there is no child
}

}  // namespace
}  // namespace crosstalk::service::worker_test
