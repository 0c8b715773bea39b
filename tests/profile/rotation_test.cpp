// SPDX-License-Identifier: Apache-2.0
// Tests the handling of files: rotation, parent directories, the log of a killed recorder, no litter.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/left_log.h"
#include "tests/profile/profile_files.h"

namespace crosstalk::profile::rotation_test {
namespace {

using Names = std::set<std::string>;

/// Writes a profile with one committed sample in a process that then kills itself.
void write_and_die(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ProfileWriter writer = test::created(path);
    (void)writer.put(test::a_session());
    (void)writer.put(test::a_process(0));
    (void)writer.put(test::a_thread(0));
    (void)writer.put(test::a_sample());
    (void)writer.commit();
    (void)writer.put(test::a_sample());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

int samples_of(const std::string& path) {
  const Result<ProfileReader> reader = ProfileReader::open(path);
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return -1;
  }
  int samples = 0;
  EXPECT_TRUE(reader->for_each_sample([&](const SampleRow&) { ++samples; }));
  return samples;
}

TEST(Rotation, AFinishedProfileIsOneFile) {
  const test::Directory directory;
  ProfileWriter writer = test::created(directory / "a/b/p.db");
  ASSERT_TRUE(writer.put(test::a_session()));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(directory.names(), Names{"a"});
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "a/b")) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, Names{"p.db"});
  const Result<void> after = writer.put(test::a_sample());
  EXPECT_TRUE(after);  // ignored
}

TEST(Rotation, AnExistingFileBecomesOldWithItsLog) {
  const test::Directory directory;
  const std::string path = directory / "p.db";
  test::overwrite(path + ".old", "older");
  test::overwrite(path + ".old-wal", "older log");
  test::overwrite(path, "previous");
  { ProfileWriter writer = test::created(path); }
  EXPECT_EQ(test::contents(path + ".old"), "previous");
  EXPECT_FALSE(std::filesystem::exists(path + ".old-wal"));  // it belonged to the older one
  write_and_die(path);
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
  { ProfileWriter writer = test::created(path); }
  EXPECT_EQ(samples_of(path + ".old"), 1);
}

TEST(Rotation, AnUnwritableOutputIsSaidInOneLine) {
  const test::Directory directory;
  for (const std::string& path : {directory.path(), std::string("/proc/nowhere/p.db"), std::string("/dev/null")}) {
    const Result<ProfileWriter> writer = ProfileWriter::create(path);
    ASSERT_FALSE(writer);
    EXPECT_NE(writer.error().message.find(path.substr(0, 8)), std::string::npos) << writer.error().message;
    EXPECT_EQ(writer.error().message.find('\n'), std::string::npos);
  }
}

TEST(KilledRecorder, CommittedRowsAreReadAndNothingIsTouched) {
  const test::Directory directory;
  const std::string path = directory / "what? 100% #1.db";
  write_and_die(path);
  const Names names = directory.names();
  ASSERT_EQ(names.size(), 3U);  // the file, its -wal, its -shm
  const std::string file = test::contents(path);
  const std::string log = test::contents(path + "-wal");
  const std::string index = test::contents(path + "-shm");
  EXPECT_EQ(samples_of(path), 1);
  EXPECT_EQ(directory.names(), names);
  EXPECT_EQ(test::contents(path), file);
  EXPECT_EQ(test::contents(path + "-wal"), log);
  EXPECT_EQ(test::contents(path + "-shm"), index);
}

TEST(KilledRecorder, WithoutTheIndexACopyIsRead) {
  const test::Directory directory;
  const std::string path = directory / "p.db";
  write_and_die(path);
  std::filesystem::remove(path + "-shm");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  std::filesystem::permissions(directory.path(),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(samples_of(path), 1);
  EXPECT_EQ(directory.names(), (Names{"p.db", "p.db-wal"}));
}

TEST(KilledRecorder, ItsLogCanBeTakenIn) {
  const test::Directory directory;
  const std::string path = directory / "what? 100% #1.db";
  write_and_die(path);
  const auto taken = take_in_log(path);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(directory.names(), Names{"what? 100% #1.db"});
  EXPECT_EQ(samples_of(path), 1);
  EXPECT_TRUE(take_in_log(path)) << "there is nothing to do";
}

TEST(KilledRecorder, OnlyTheLogOfAProfileIsTakenIn) {
  const test::Directory directory;
  for (const char* const name : {"missing.db", "other.db"}) {
    const std::string path = directory / name;
    if (path.ends_with("other.db")) {
      test::overwrite(path, "content");
      test::overwrite(path + "-wal", "log");
    }
    const auto taken = take_in_log(path);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find(path), std::string::npos);
  }
  EXPECT_EQ(test::contents(directory / "other.db-wal"), "log");
}

TEST(KilledRecorder, WithoutTheLogWhatIsInTheFileIsRead) {
  const test::Directory directory;
  const std::string path = directory / "p.db";
  write_and_die(path);
  std::filesystem::remove(path + "-shm");
  std::filesystem::remove(path + "-wal");
  EXPECT_EQ(directory.names(), Names{"p.db"});
  const Result<ProfileReader> reader = ProfileReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;  // tables are made before the log
  EXPECT_TRUE(reader->threads().empty());
  EXPECT_EQ(directory.names(), Names{"p.db"});
}

}  // namespace
}  // namespace crosstalk::profile::rotation_test
