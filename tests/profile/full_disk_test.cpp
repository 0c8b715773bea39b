// SPDX-License-Identifier: Apache-2.0
// A disk that is full for a while (here: a file size limit): one error, silence, and writing resumes.
#include <signal.h>
#include <sys/resource.h>

#include "tests/profile/profile_files.h"

namespace crosstalk::profile::full_disk_test {
namespace {

void limit_file_size(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/// Puts samples and commits until something fails; the error.
std::optional<Error> fill(ProfileWriter& writer) {
  for (int i = 0; i < 200'000; ++i) {
    Result<void> result = writer.put(test::a_sample());
    if (result && i % 1000 == 999) {
      result = writer.commit();
    }
    if (!result) {
      return result.error();
    }
  }
  return std::nullopt;
}

TEST(FullDisk, IsSaidOnceAndWritingCanBeTakenUpAgain) {
  ::signal(SIGXFSZ, SIG_IGN);
  const test::Directory directory;
  const std::string path = directory / "p.db";
  ProfileWriter writer = test::created(path);
  ASSERT_TRUE(writer.put(test::a_session()));
  ASSERT_TRUE(writer.put(test::a_process(0)));
  ASSERT_TRUE(writer.put(test::a_thread(0)));
  ASSERT_TRUE(writer.commit());

  limit_file_size(1 << 20);
  const std::optional<Error> error = fill(writer);
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->message.find(path), std::string::npos) << error->message;
  EXPECT_TRUE(writer.put(test::a_sample()));  // said once
  EXPECT_TRUE(writer.commit());
  writer.retry();
  EXPECT_TRUE(fill(writer).has_value());  // still full: said again after a retry

  const Result<ProfileReader> meanwhile = ProfileReader::open(path);
  ASSERT_TRUE(meanwhile) << meanwhile.error().message;
  EXPECT_EQ(meanwhile->threads().size(), 1U);

  limit_file_size(RLIM_INFINITY);
  writer.retry();
  ASSERT_TRUE(writer.put(test::a_thread(1)));
  ASSERT_TRUE(writer.put(MessageRow{"profile_incomplete", "rows were lost", 1}));
  ASSERT_TRUE(writer.commit());
  const Result<ProfileReader> after = ProfileReader::open(path);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->threads().size(), 2U);
  EXPECT_EQ(after->messages().size(), 1U);
  EXPECT_EQ(after->session().begin_ns, test::a_session().begin_ns);
  SampleRow first;
  EXPECT_TRUE(after->for_each_sample([&](const SampleRow& row) { first = row; }));
  EXPECT_EQ(first.time_ns, test::a_sample().time_ns);
}

}  // namespace
}  // namespace crosstalk::profile::full_disk_test
