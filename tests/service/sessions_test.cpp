// SPDX-License-Identifier: Apache-2.0
// With a shell script in the place of crosstalk, and this test's own children as the processes to record.
#include "daemon/service/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "tests/service/temporary_folder.h"

namespace crosstalk::service::sessions_test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t second = 1'000'000'000;
// The last argument is the profile.
const char* const records = R"(for last; do :; done; echo content >"$last"; echo "$@" >&2)";
const char* const until_told =
    R"(for last; do :; done; trap 'echo content >"$last"; exit 0' INT; echo ready >&2; while :; do sleep 0.01; done)";

class SessionsTest : public ::testing::Test {
 protected:
  SessionsTest() {
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::pause();
      ::_exit(0);
    }
    request_.kind = RequestKind::record;
    request_.pids = {child_};
  }
  ~SessionsTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Sessions sessions(const std::string& script) const {
    return Sessions({folder_.script("crosstalk", script), folder_.path("state")});
  }
  Result<Session*> begin(Sessions& sessions, const Peer& peer = {::geteuid(), false}) {
    return sessions.begin(request_, peer, configuration_, {}, now_);
  }
  std::vector<SessionEnd> until_end(Sessions& sessions) const {
    std::vector<SessionEnd> ends;
    for (int i = 0; i < 30'000 && !sessions.all().empty(); ++i) {
      pollfd polled{sessions.all().front().worker.fd(), POLLIN, 0};
      EXPECT_EQ(::poll(&polled, 1, 30'000), 1);
      for (SessionEnd& end : sessions.tend(configuration_.longest_s, now_)) {
        ends.push_back(std::move(end));
      }
    }
    EXPECT_TRUE(sessions.all().empty());
    return ends;
  }
  [[nodiscard]] bool is_clean() const { return std::filesystem::is_empty(folder_.path("state/sessions")); }
  static std::string content(const UniqueFd& file) {
    std::string text(100, 0);
    const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
    return text.substr(0, length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  static std::string line_of(const UniqueFd& pipe) {
    std::string line;
    char c = 0;
    for (pollfd polled{pipe.get(), POLLIN, 0}; c != '\n' && ::poll(&polled, 1, 30'000) == 1;) {
      if (::read(pipe.get(), &c, 1) == 1) {
        line += c;
      } else {
        break;
      }
    }
    return line;
  }

  TemporaryFolder folder_;
  pid_t child_ = -1;
  Request request_;
  Configuration configuration_;
  std::uint64_t now_ = 100 * second;
};

TEST_F(SessionsTest, GiveTheProfileAndKeepNone) {
  Sessions all = sessions(records);
  const auto begun = begin(all);
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_EQ((*begun)->id, 1U);
  EXPECT_DOUBLE_EQ((*begun)->share.budget, 0.03);
  const UniqueFd errors = (*begun)->worker.take_errors();
  const std::string words = line_of(errors);
  EXPECT_THAT(words, HasSubstr("record -p " + std::to_string(child_) + " --pidfd 3 --budget 3"));
  EXPECT_EQ(words.find("--owner") == std::string::npos, ::geteuid() == 0);
  const auto ends = until_end(all);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].id, 1U);
  EXPECT_EQ(ends[0].exit_status, 0);
  EXPECT_EQ(content(ends[0].profile), "content\n");
  EXPECT_TRUE(is_clean());
  EXPECT_EQ(all.begun(), 1U);
}

// A client that has its profile open keeps it if the daemon dies, and a later daemon removes the file.
TEST_F(SessionsTest, HandOutAProfileOnceItIsBegun) {
  Sessions all = sessions(
      R"(for last; do :; done; echo begun >"$last"; trap 'echo ended >>"$last"; exit 0' INT; echo ready >&2; while :; do sleep 0.01; done)");
  EXPECT_TRUE(all.take_begun().empty());
  const auto session = begin(all);
  ASSERT_TRUE(session);
  const UniqueFd errors = (*session)->worker.take_errors();
  EXPECT_EQ(line_of(errors), "ready\n");
  const auto begun = all.take_begun();
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].id, 1U);
  EXPECT_EQ(content(begun[0].profile), "begun\n");
  EXPECT_TRUE(all.take_begun().empty()) << "once";
  EXPECT_TRUE(all.stop(1, now_));
  (void)until_end(all);
  EXPECT_TRUE(is_clean());
  EXPECT_EQ(content(begun[0].profile), "begun\nended\n");
}

TEST_F(SessionsTest, GiveNoHalfProfile) {
  for (const char* const script :
       {"exit 1", R"(for last; do :; done; echo x >"$last"; echo y >"$last-wal"; kill -9 $$)",
        "for last; do :; done; : >\"$last\""}) {
    Sessions all = sessions(script);
    ASSERT_TRUE(begin(all));
    const auto ends = until_end(all);
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_FALSE(ends[0].profile.valid()) << script;
    EXPECT_TRUE(is_clean());
  }
}

TEST_F(SessionsTest, EndWhenAskedTo) {
  Sessions all = sessions(until_told);
  const auto begun = begin(all);
  ASSERT_TRUE(begun);
  const UniqueFd errors = (*begun)->worker.take_errors();
  EXPECT_EQ(line_of(errors), "ready\n");
  EXPECT_TRUE(all.tend(3600, now_).empty());
  EXPECT_FALSE(all.stop(99, now_));
  EXPECT_FALSE(all.stop(0, now_));
  EXPECT_TRUE(all.stop(1, now_));
  EXPECT_TRUE(all.stop(1, now_));
  EXPECT_TRUE(until_end(all).at(0).profile.valid());
}

TEST_F(SessionsTest, OfAClientThatWentGiveNothing) {
  Sessions all = sessions(until_told);
  const auto begun = begin(all);
  ASSERT_TRUE(begun);
  const UniqueFd errors = (*begun)->worker.take_errors();
  EXPECT_EQ(line_of(errors), "ready\n");
  all.abandon(1, now_);
  EXPECT_FALSE(until_end(all).at(0).profile.valid());
  EXPECT_TRUE(is_clean());
}

TEST_F(SessionsTest, EndAfterTheLongestTime) {
  Sessions all = sessions(until_told);
  const auto begun = begin(all);
  ASSERT_TRUE(begun);
  const UniqueFd errors = (*begun)->worker.take_errors();
  EXPECT_EQ(line_of(errors), "ready\n");
  now_ += 3600 * second;
  EXPECT_TRUE(all.tend(3600, now_).empty());
  EXPECT_FALSE(all.all().front().worker.stopping());
  now_ += second;
  (void)all.tend(3600, now_);
  EXPECT_TRUE(until_end(all).at(0).profile.valid());
}

TEST_F(SessionsTest, AreLimitedAndShareOneBudget) {
  configuration_.sessions = 4;
  Sessions all = sessions("sleep 100");
  request_.options.budget_percent = 1;
  const Peer root{0, false};
  for (int i = 0; i < 3; ++i) {
    const auto begun = begin(all, root);
    ASSERT_TRUE(begun) << begun.error().message;
    EXPECT_NEAR((*begun)->share.budget, 0.01, 1e-12);
  }
  const auto none_left = begin(all, root);
  ASSERT_FALSE(none_left);
  EXPECT_THAT(none_left.error().message, HasSubstr("take the whole budget"));
  configuration_.budget = 0.5;
  ASSERT_TRUE(begin(all, root));
  const auto full = begin(all, root);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::refused);
  EXPECT_THAT(full.error().message, HasSubstr("all 4 sessions are in use"));
}

TEST_F(SessionsTest, OfOneUserAreHalfOfAll) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can record as another user";
  }
  configuration_.sessions = 3;
  configuration_.budget = 0.5;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = ::fork();
  if (child_ == 0) {
    (void)!::setuid(1234);
    ::prctl(PR_SET_DUMPABLE, 1);
    ::pause();
    ::_exit(0);
  }
  request_.pids = {child_};
  struct stat of {};
  while (::stat(("/proc/" + std::to_string(child_)).c_str(), &of) == 0 && of.st_uid != 1234) {
    ::usleep(1000);
  }
  Sessions all = sessions("echo \"$@\" >&2; sleep 100");
  const auto first = begin(all, {1234, false});
  ASSERT_TRUE(first) << first.error().message;
  const UniqueFd errors = (*first)->worker.take_errors();
  EXPECT_THAT(line_of(errors), HasSubstr("--owner 1234"));
  ASSERT_TRUE(begin(all, {1234, false}));
  EXPECT_THAT(begin(all, {1234, false}).error().message, HasSubstr("the 2 sessions that one user may have"));
  EXPECT_EQ(begin(all, {1235, false}).error().code, ErrorCode::permission);
  EXPECT_TRUE(begin(all, {0, false}));
}

TEST_F(SessionsTest, OfProcessesThatAreNotThereAreRefused) {
  Sessions all = sessions(records);
  request_.pids = {child_, 2'000'000'000};
  const auto begun = begin(all);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::not_found);
  EXPECT_THAT(begun.error().message, HasSubstr("there is no process 2000000000"));
  EXPECT_TRUE(all.all().empty());
  EXPECT_EQ(all.begun(), 0U);
}

TEST_F(SessionsTest, HaveNumbersAndFilesOfTheirOwn) {
  configuration_.budget = 0.5;
  Sessions all = sessions(until_told);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto begun = begin(all);
    ASSERT_TRUE(begun);
    EXPECT_EQ((*begun)->id, i);
    EXPECT_EQ((*begun)->output,
              folder_.path("state/sessions/") + std::to_string(::getpid()) + "-" + std::to_string(i) + ".db");
  }
  for (const Session& session : all.all()) {  // they end later than they can be told
    const_cast<Session&>(session).worker.take_errors();
  }
  all.stop_all(now_);
  EXPECT_EQ(until_end(all).size(), 3U);
}

}  // namespace
}  // namespace crosstalk::service::sessions_test
