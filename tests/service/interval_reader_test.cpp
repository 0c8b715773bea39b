// SPDX-License-Identifier: Apache-2.0
// With shell scripts in the place of crosstalk.
#include "daemon/service/interval_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/service/temporary_folder.h"

namespace crosstalk::service::interval_reader_test {
namespace {

using ::testing::HasSubstr;
using Outcomes = std::vector<IntervalReader::Outcome>;

constexpr std::uint64_t second = 1'000'000'000;

class Reading : public ::testing::Test {
 protected:
  static StoredProfile profile(const std::string& name) { return {"web", name, "/p/" + name, 1, 1, false}; }

  /// Waits for all that is queued; returns what came of it. `turns`: how often it woke.
  Outcomes outcomes(IntervalReader& reader, int* turns = nullptr) {
    Outcomes all = reader.tend(now_);
    for (int i = 0; i < 30'000 && !reader.idle(); ++i) {
      std::vector<pollfd> polled;
      for (const int fd : reader.fds()) {
        polled.push_back({fd, POLLIN, 0});
      }
      EXPECT_GT(::poll(polled.data(), polled.size(), 30'000), 0);
      for (auto& outcome : reader.tend(now_)) {
        all.push_back(std::move(outcome));
      }
      if (turns != nullptr) {
        ++*turns;
      }
    }
    EXPECT_TRUE(reader.idle());
    EXPECT_TRUE(reader.fds().empty());
    return all;
  }

  TemporaryFolder folder_;
  std::uint64_t now_ = second;
};

TEST_F(Reading, GivesTheReport) {
  IntervalReader reader(folder_.script("crosstalk", "echo \"$@\""));
  EXPECT_TRUE(reader.idle());
  reader.add(profile("a"), false);
  EXPECT_FALSE(reader.idle());
  const Outcomes read = outcomes(reader);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].service, "web");
  EXPECT_EQ(read[0].report, "report --format json -i /p/a\n");
  EXPECT_EQ(read[0].why, "");
  EXPECT_FALSE(read[0].copy);
}

TEST_F(Reading, ReadsOneAfterTheOther) {
  const std::string log = folder_.path("log");
  IntervalReader reader(folder_.script("crosstalk", "echo begin >>" + log + "; echo x; echo end >>" + log));
  for (const char* const name : {"a", "b", "c"}) {
    reader.add(profile(name), false);
  }
  EXPECT_EQ(outcomes(reader).size(), 3U);
  EXPECT_EQ(folder_.content("log"), "begin\nend\nbegin\nend\nbegin\nend\n");
}

TEST_F(Reading, CopiesForReadersOfPprof) {
  IntervalReader reader(folder_.script("crosstalk", "echo \"$@\" >>" + folder_.path("log") + "; echo x"));
  reader.add(profile("a"), true);
  const Outcomes read = outcomes(reader);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_FALSE(read[0].copy);
  EXPECT_TRUE(read[1].copy);
  EXPECT_EQ(read[1].why, "");
  EXPECT_EQ(folder_.content("log"), "report --format json -i /p/a\nexport --format pprof -i /p/a -o /p/a.pb.gz\n");
}

TEST_F(Reading, ALongReportIsWhole) {
  IntervalReader reader(folder_.script("crosstalk", "head -c 3000000 /dev/zero | tr '\\0' x"));
  reader.add(profile("a"), false);
  const Outcomes read = outcomes(reader);
  EXPECT_EQ(read.at(0).report.size(), 3'000'000U);
}

TEST_F(Reading, AReportThatIsTooLongIsAFailure) {
  IntervalReader reader(folder_.script("crosstalk", "exec cat /dev/zero"), 1'000'000);
  reader.add(profile("a"), false);
  reader.add(profile("b"), false);
  const Outcomes read = outcomes(reader);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].report, "");
  EXPECT_THAT(read[0].why, HasSubstr("longer than 1000000 bytes"));
}

TEST_F(Reading, AFailureIsToldByItsFirstLine) {
  IntervalReader reader(folder_.script("crosstalk", "echo half; echo 'crosstalk: damaged' >&2; echo more >&2; exit 1"));
  reader.add(profile("a"), true);
  const Outcomes read = outcomes(reader);
  ASSERT_EQ(read.size(), 2U);
  for (const auto& outcome : read) {
    EXPECT_EQ(outcome.report, "");
    EXPECT_EQ(outcome.why, "crosstalk: damaged");
  }
}

TEST_F(Reading, AFailureWithoutWordsIsToldByItsStatus) {
  IntervalReader dies(folder_.script("dies", "kill -9 $$"));
  dies.add(profile("a"), false);
  EXPECT_THAT(outcomes(dies).at(0).why, HasSubstr("137"));
  IntervalReader silent(folder_.script("silent", "exit 0"));
  silent.add(profile("a"), false);
  EXPECT_THAT(outcomes(silent).at(0).why, HasSubstr("status 0"));
  IntervalReader missing("/no/such/program");
  missing.add(profile("a"), false);
  EXPECT_THAT(outcomes(missing).at(0).why, HasSubstr("cannot execute /no/such/program"));
}

TEST_F(Reading, ManyWordsDoNotStopTheReader) {
  IntervalReader reader(folder_.script("crosstalk", "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo x"));
  reader.add(profile("a"), false);
  EXPECT_EQ(outcomes(reader).at(0).report, "x\n");
}

TEST_F(Reading, AClosedOutputDoesNotKeepTheDaemonAwake) {
  IntervalReader reader(folder_.script("crosstalk", "exec >&- 2>&-; sleep 0.3; exit 1"));
  reader.add(profile("a"), false);
  int turns = 0;
  EXPECT_EQ(outcomes(reader, &turns).size(), 1U);
  EXPECT_LT(turns, 10);
}

TEST_F(Reading, OneThatHangsIsEnded) {
  IntervalReader reader(folder_.script("crosstalk", "exec sleep 1000"));
  reader.add(profile("a"), false);
  EXPECT_TRUE(reader.tend(now_).empty());
  now_ += 599 * second;
  EXPECT_TRUE(reader.tend(now_).empty());
  now_ += 2 * second;
  EXPECT_THAT(outcomes(reader).at(0).why, HasSubstr("130"));
}

TEST_F(Reading, TooManyDropTheOldest) {
  IntervalReader reader(folder_.script("crosstalk", "echo \"$5\"; echo >&2"));
  for (int i = 0; i < 70; ++i) {
    reader.add(profile(std::to_string(i)), false);
  }
  const Outcomes read = outcomes(reader);
  ASSERT_EQ(read.size(), 70U);
  EXPECT_EQ(read[5].report, "");
  EXPECT_THAT(read[5].why, HasSubstr("faster than they can be read"));
  EXPECT_EQ(read[6].report, "/p/6\n");
  EXPECT_EQ(read[69].report, "/p/69\n");
}

TEST_F(Reading, WithoutProcessesTheOthersWait) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Without descriptors, as without processes, nothing can be started.
    IntervalReader reader("/bin/true");
    reader.add(profile("a"), false);
    reader.add(profile("b"), false);
    const rlimit none{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto first = reader.tend(second).size();
    const bool waits = !reader.idle();
    ::_exit(first == 1 && waits ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace crosstalk::service::interval_reader_test
