// SPDX-License-Identifier: Apache-2.0
// With a shell script in the place of crosstalk, and this test's own children as processes of the service.
#include "daemon/service/watched_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/service/temporary_folder.h"

namespace crosstalk::service::watched_service_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t second = 1'000'000'000;

class Watching : public ::testing::Test {
 protected:
  Watching() {
    settings_.name = "web";
    settings_.match = {MatchBy::executable, "*/test_service"};
    settings_.children = false;
  }
  ~Watching() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  pid_t child() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::pause();
      ::_exit(0);
    }
    children_.push_back(pid);
    return pid;
  }
  void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }
  WatchedService service(const std::string& script) {
    return {settings_, {folder_.script("crosstalk", script), folder_.path("state")}};
  }
  /// The children as the daemon's list has them.
  [[nodiscard]] std::vector<Process> listed() const {
    std::vector<Process> all;
    for (const pid_t pid : children_) {
      all.push_back({pid, ::getpid(), ::geteuid(), "/x/test_service", "", "/"});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
    return all;
  }
  /// Waits for the recording's end; returns what it said.
  std::vector<std::string> until_end(WatchedService& service, int* turns = nullptr) const {
    std::vector<std::string> lines;
    for (int i = 0; i < 30'000 && service.recording(); ++i) {
      std::vector<pollfd> polled;
      for (const int fd : service.fds()) {
        polled.push_back({fd, POLLIN, 0});
      }
      EXPECT_GT(::poll(polled.data(), polled.size(), 30'000), 0);
      for (std::string& line : service.tend(now_)) {
        lines.push_back(std::move(line));
      }
      if (turns != nullptr) {
        ++*turns;
      }
    }
    EXPECT_FALSE(service.recording());
    return lines;
  }
  /// Waits until the script `until_told` has begun so often.
  [[nodiscard]] bool has_begun(std::size_t times) const {
    for (int i = 0; i < 15'000 && folder_.content("crosstalk.log").size() < 2 * times; ++i) {
      ::usleep(2000);
    }
    return folder_.content("crosstalk.log").size() == 2 * times;
  }
  void write(const std::string& name, std::size_t bytes = 10) const {
    const std::string path = folder_.path("state/services/web/" + name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << std::string(bytes, 'x');
  }
  std::vector<std::string> finished(WatchedService& service, std::int64_t later_s = 0) const {
    const auto profiles = ProfileStore(folder_.path("state")).look();
    std::vector<std::string> names;
    for (const StoredProfile& profile : service.take_finished(profiles, std::time(nullptr) + later_s)) {
      names.push_back(profile.name);
    }
    return names;
  }

  TemporaryFolder folder_;
  ServiceSettings settings_;
  std::vector<pid_t> children_;
  std::uint64_t now_ = 100 * second;
};

const char* const until_told = "trap 'exit 0' INT; echo x >>\"$0.log\"; while :; do sleep 0.01; done";

TEST_F(Watching, RecordsTheProcessesThatBelongToIt) {
  settings_.children = true;
  settings_.budget = 0.005;
  WatchedService web = service("ls -x /proc/self/fd >&2; echo \"$@\" >&2");
  web.look({}, now_);
  EXPECT_FALSE(web.recording());
  EXPECT_EQ(web.state(), "no process of it runs");
  EXPECT_THAT(web.fds(), IsEmpty());
  const pid_t first = child(), other = child();
  web.look(listed(), now_);
  ASSERT_TRUE(web.recording());
  EXPECT_THAT(web.pids(), ElementsAre(std::min(first, other), std::max(first, other)));
  EXPECT_EQ(web.share().budget, 0.005);
  EXPECT_TRUE(web.share().children);
  EXPECT_THAT(web.share().ancestors, ::testing::Contains(::getpid()));
  const auto lines = until_end(web);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "web: 0  1  2  3  4  5");  // 5: the folder that ls reads
  const std::string pids = std::to_string(web.settings().children ? std::min(first, other) : 0) + "," +
                           std::to_string(std::max(first, other));
  EXPECT_EQ(lines[1], "web: record -q -p " + pids + " --pidfd 3,4 --budget 0.5 --switch-output 60s -o " +
                          folder_.path("state/services/web/web.db") + " --children");
  EXPECT_THAT(web.pids(), IsEmpty());
}

TEST_F(Watching, LeavesOutWhoseOfTheListDoNotBelongAnyMore) {
  WatchedService web = service("sleep 100");
  auto all = listed();
  all.push_back({1, 0, 0, "/x/test_service", "", "/"});  // the pid is another process's now
  const pid_t gone = child();
  const auto with_gone = listed();
  all.insert(all.end(), with_gone.begin(), with_gone.end());
  end(gone);
  web.look(all, now_);
  EXPECT_FALSE(web.recording());
  EXPECT_EQ(web.state(), "no process of it runs");
}

TEST_F(Watching, BeginsAgainWithANewProcess) {
  WatchedService web = service(until_told);
  (void)child();
  web.look(listed(), now_);
  ASSERT_TRUE(web.recording());
  EXPECT_TRUE(has_begun(1));
  (void)child();
  now_ += 9 * second;  // a recording has a least length, however many processes come
  web.look(listed(), now_);
  (void)web.tend(now_);
  now_ += second;
  web.look(listed(), now_);
  EXPECT_THAT(until_end(web), IsEmpty());
  web.look(listed(), now_);
  ASSERT_TRUE(web.recording());
  EXPECT_EQ(web.pids().size(), 2U);
  EXPECT_TRUE(has_begun(2));
  web.stop(now_);
  (void)until_end(web);
}

TEST_F(Watching, GoesOnWhileNoProcessIsNew) {
  WatchedService web = service(until_told);
  const pid_t first = child();
  (void)child();
  web.look(listed(), now_);
  end(first);
  now_ += 100 * second;
  web.look(listed(), now_);
  (void)web.tend(now_);
  EXPECT_TRUE(web.recording());
  web.look({}, now_);
  EXPECT_TRUE(web.recording());
}

TEST_F(Watching, WaitsLongerAfterEachFailure) {
  WatchedService web = service("echo 'crosstalk: cannot observe: why' >&2; exit 1");
  (void)child();
  std::uint64_t pause = 1;
  for (int i = 0; i < 12; ++i) {
    web.look(listed(), now_);
    ASSERT_TRUE(web.recording()) << i;
    const auto lines = until_end(web);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "web: crosstalk: cannot observe: why");
    EXPECT_EQ(web.state(),
              "cannot be recorded: cannot observe: why; the next try is in " + std::to_string(pause) + " s");
    EXPECT_EQ(lines[1], "web: " + web.state());
    now_ += pause * second - 1;
    web.look(listed(), now_);
    EXPECT_FALSE(web.recording());
    now_ += 1;
    pause = std::min<std::uint64_t>(300, 2 * pause);
  }
}

TEST_F(Watching, AProgramThatIsNotThereIsAFailure) {
  WatchedService web(settings_, {"/no/such/program", folder_.path("state")});
  (void)child();
  web.look(listed(), now_);
  (void)until_end(web);
  EXPECT_THAT(web.state(), HasSubstr("cannot execute /no/such/program"));
}

TEST_F(Watching, DoesNotBeginAtOnceAfterAnEnd) {
  WatchedService web = service("exit 0");
  (void)child();
  web.look(listed(), now_);
  EXPECT_THAT(until_end(web), IsEmpty());
  EXPECT_EQ(web.state(), "its processes have ended");
  web.look(listed(), now_ + second);  // a service that dies again and again
  EXPECT_FALSE(web.recording());
  web.look(listed(), now_ + 2 * second);
  EXPECT_TRUE(web.recording());
}

TEST_F(Watching, AsksTheRecordingToEndAndKillsItInTheEnd) {
  WatchedService web = service("trap '' INT; echo x >$(dirname \"$0\")/ready; while :; do sleep 0.01; done");
  (void)child();
  web.look(listed(), now_);
  for (int i = 0; i < 10'000 && folder_.content("ready").empty(); ++i) {
    ::usleep(2000);
  }
  web.stop(now_);
  now_ += 19 * second;
  (void)web.tend(now_);
  EXPECT_TRUE(web.recording());
  now_ += 2 * second;
  (void)web.tend(now_);
  EXPECT_THAT(until_end(web), IsEmpty());  // it was told, so this is no failure
  web.look(listed(), now_ + 100 * second);
  EXPECT_FALSE(web.recording());  // it was stopped for good
}

TEST_F(Watching, ARecordingWithoutPipesDoesNotKeepTheDaemonAwake) {
  WatchedService web = service("exec >&- 2>&-; sleep 0.3");
  (void)child();
  web.look(listed(), now_);
  int turns = 0;
  (void)until_end(web, &turns);
  EXPECT_LT(turns, 10);
}

TEST_F(Watching, TakesWholeLines) {
  WatchedService web = service(
      "printf 'one\\ntw' >&2; sleep 0.1; printf 'o\\n\\nlast' >&2; head -c 5000 /dev/zero | "
      "tr '\\0' x >&2; head -c 300000 /dev/zero");
  (void)child();
  web.look(listed(), now_);
  const auto lines = until_end(web);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "web: one");
  EXPECT_EQ(lines[1], "web: two");
  EXPECT_EQ(lines[2], "web: ");
  EXPECT_EQ(lines[3], "web: last" + std::string(4092, 'x'));
  EXPECT_EQ(lines[4], "web: " + std::string(908, 'x'));
}

TEST_F(Watching, HandsOutEachFinishedProfileOnce) {
  write("web.db.1");
  write("web.db.2");
  write("web.db.2-wal");
  WatchedService web = service("exit 0");
  // An earlier daemon's are not read again, but the last one has not been read if its recorder was killed.
  EXPECT_THAT(finished(web), IsEmpty());
  EXPECT_THAT(finished(web, 100), ElementsAre("web.db.2"));
  EXPECT_THAT(finished(web, 100), IsEmpty());
  write("web.db.3");
  write("web.db.4", 0);  // just made
  write("other");
  EXPECT_THAT(finished(web), ElementsAre("web.db.3"));
  EXPECT_THAT(finished(web), IsEmpty());
  write("web.db.4");
  EXPECT_THAT(finished(web), ElementsAre("web.db.4"));
  std::filesystem::remove(folder_.path("state/services/web/web.db.1"));
  std::filesystem::remove(folder_.path("state/services/web/web.db.3"));
  write("web.db.5");
  EXPECT_THAT(finished(web), ElementsAre("web.db.5"));
}

}  // namespace
}  // namespace crosstalk::service::watched_service_test
