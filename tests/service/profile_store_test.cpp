// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/service/temporary_folder.h"

namespace crosstalk::service::profile_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t now = 1'800'000'000, day = 86400;

StoredProfile profile(const std::string& name, std::uint64_t bytes, std::int64_t written_s, bool has_log = false) {
  return {"s", name, "/" + name, bytes, written_s, has_log};
}

bool left(const StoredProfile& /*profile*/, std::int64_t /*now_s*/) { return true; }
bool in_use(const StoredProfile& /*profile*/, std::int64_t /*now_s*/) { return false; }

TEST(TooMany, AreThoseThatAreTooOld) {
  const std::vector<StoredProfile> profiles = {profile("a", 1, now - 8 * day), profile("b", 1, now - 7 * day),
                                               profile("c", 1, now - 7 * day - 1)};
  EXPECT_THAT(too_many(profiles, now, 7 * day, 1000, left), ElementsAre("/a", "/c"));
  EXPECT_THAT(too_many({}, now, 0, 0, left), IsEmpty());
}

TEST(TooMany, AreTheOldestBeyondTheSize) {
  const std::vector<StoredProfile> profiles = {profile("new", 40, now - 1), profile("old", 30, now - 3),
                                               profile("middle", 20, now - 2)};
  EXPECT_THAT(too_many(profiles, now, day, 90, left), IsEmpty());
  EXPECT_THAT(too_many(profiles, now, day, 89, left), ElementsAre("/old"));
  EXPECT_THAT(too_many(profiles, now, day, 59, left), ElementsAre("/old", "/middle"));
  EXPECT_THAT(too_many(profiles, now, day, 0, left), ElementsAre("/old", "/middle", "/new"));
}

TEST(TooMany, LeaveThoseInUseAndCountThem) {
  const std::vector<StoredProfile> profiles = {profile("written", 90, now - 9 * day, true), profile("old", 30, now - 3),
                                               profile("new", 5, now - 1)};
  EXPECT_THAT(too_many(profiles, now, 7 * day, 100, in_use), ElementsAre("/old"));
  // A killed recorder's has a log for ever.
  EXPECT_THAT(too_many(profiles, now, 7 * day, 100, left), ElementsAre("/written"));
  EXPECT_THAT(too_many({profile("a", 5, now - 9 * day)}, now, day, 100, in_use), ElementsAre("/a"));
}

TEST(TooMany, AClockThatWasPutBackMakesNothingOld) {
  const std::vector<StoredProfile> profiles = {profile("future", 10, now + 300 * day), profile("now", 10, now)};
  EXPECT_THAT(too_many(profiles, now, 0, 100, left), IsEmpty());
  EXPECT_THAT(too_many(profiles, now, 0, 15, left), ElementsAre("/now"));
  EXPECT_THAT(too_many({profile("a", 10, 0)}, -5, 0, 100, left), IsEmpty());
}

class Store : public ::testing::Test {
 protected:
  void write(const std::string& path, std::size_t bytes) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(path)).parent_path());
    std::ofstream(folder_.path(path)) << std::string(bytes, 'x');
  }
  [[nodiscard]] std::string state() const { return folder_.path(""); }

  TemporaryFolder folder_;
};

TEST_F(Store, ProfilesAreListedWithTheirCompanions) {
  write("services/a/a.db.2", 20);
  write("services/a/a.db.1", 10);
  write("services/a/a.db.1.pb.gz", 5);
  write("services/a/a.db.3", 1);
  write("services/a/a.db.3-wal", 100);
  write("services/a/a.db.3-shm", 1000);
  write("services/a/other", 1);
  write("services/b/b.db", 7);
  const auto profiles = profiles_of(state(), "a");
  ASSERT_EQ(profiles.size(), 3U);
  EXPECT_EQ(profiles[0].name, "a.db.1");
  EXPECT_EQ(profiles[0].path, state() + "/services/a/a.db.1");
  EXPECT_EQ(profiles[0].bytes, 15U);
  EXPECT_FALSE(profiles[0].has_log);
  EXPECT_NEAR(static_cast<double>(profiles[0].written_s), static_cast<double>(::time(nullptr)), 100);
  EXPECT_EQ(profiles[1].bytes, 20U);
  EXPECT_EQ(profiles[2].bytes, 1101U);
  EXPECT_TRUE(profiles[2].has_log);
  EXPECT_EQ(ProfileStore(state()).look().size(), 4U);
  EXPECT_THAT(profiles_of(state(), "none"), IsEmpty());
  EXPECT_THAT(profiles_of("/nowhere", "a"), IsEmpty());
  EXPECT_THAT(ProfileStore("/nowhere").look(), IsEmpty());
}

TEST_F(Store, LooksAgainWhatChanges) {
  write("services/a/a.db.1", 10);
  ProfileStore store(state());
  EXPECT_EQ(store.look().size(), 1U);
  write("services/a/a.db.2", 10);
  write("services/a/a.db.2-wal", 10);
  ASSERT_EQ(store.look().size(), 2U);
  // As if all had been there for long: then only what has a log can grow.
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder_.path("services/a"), long_ago);
  ASSERT_EQ(store.look().size(), 2U);
  write("services/a/a.db.2-wal", 500);
  EXPECT_EQ(store.look()[1].bytes, 510U);
  std::filesystem::remove(folder_.path("services/a/a.db.2-wal"));
  EXPECT_FALSE(store.look()[1].has_log);
  write("services/b/b.db.1", 10);
  EXPECT_EQ(store.look().size(), 3U);
  std::filesystem::remove_all(folder_.path("services/a"));
  EXPECT_EQ(store.look().size(), 1U);
}

TEST_F(Store, RemovesAProfileWithWhatBelongsToIt) {
  for (const char* const end : {"", "-wal", "-shm", "-journal", ".pb.gz"}) {
    write("services/a/a.db.1" + std::string(end), 10);
  }
  write("services/a/a.db.10", 10);
  remove_profile(state() + "/services/a/a.db.1");
  ASSERT_EQ(profiles_of(state(), "a").size(), 1U);
  EXPECT_EQ(profiles_of(state(), "a")[0].name, "a.db.10");
  remove_profile(state() + "/services/a/a.db.1");
}

/// Locks what SQLite locks while a connection that writes a log is open, in a process of its own.
class Connection {
 public:
  explicit Connection(const std::string& path) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) {
      return;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(path.c_str(), O_RDWR);
      struct flock lock {};
      lock.l_type = F_RDLCK;
      lock.l_whence = SEEK_SET;
      lock.l_start = 0x40000002;
      lock.l_len = 510;
      const char result = ::fcntl(file, F_SETLK, &lock) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &result, 1);
      ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char result = 'n';
    (void)!::read(ready[0], &result, 1);
    ::close(ready[0]);
    EXPECT_EQ(result, 'y');
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(Store, AProfileIsWholeOnceNobodyWritesIt) {
  const std::string path = folder_.path("p.db");
  EXPECT_FALSE(is_begun(path));
  EXPECT_FALSE(is_whole(path));
  EXPECT_FALSE(is_in_use(path));
  write("p.db", 0);
  EXPECT_FALSE(is_begun(path));
  EXPECT_FALSE(is_whole(path));
  write("p.db", 10);
  EXPECT_TRUE(is_begun(path));
  EXPECT_TRUE(is_whole(path));
  {
    const Connection connection(path);
    EXPECT_TRUE(is_in_use(path));
    EXPECT_FALSE(is_whole(path));
  }
  EXPECT_FALSE(is_in_use(path));
  for (const char* const log : {"-wal", "-journal"}) {
    write("p.db" + std::string(log), 10);
    EXPECT_FALSE(is_whole(path));
    std::filesystem::remove(path + log);
  }
  EXPECT_TRUE(is_whole(path));
  EXPECT_FALSE(is_begun(state()));  // a directory
}

TEST_F(Store, AProfileIsLeftOnceItsRecorderIsGone) {
  write("services/a/a.db.1", 10);
  write("services/a/a.db.1-wal", 0);
  const StoredProfile written = profiles_of(state(), "a").at(0);
  EXPECT_FALSE(is_left(written, written.written_s));  // somebody is about to open it
  EXPECT_FALSE(is_left(written, written.written_s - 1000));
  EXPECT_TRUE(is_left(written, written.written_s + 61));
  const Connection connection(written.path);
  EXPECT_FALSE(is_left(written, written.written_s + 1000));
  write("services/a/a.db.2", 10);
  EXPECT_FALSE(is_left(profiles_of(state(), "a").at(1), written.written_s + 1000));  // it has no log
}

TEST_F(Store, DirectoriesAreForThisUserAlone) {
  const std::string path = folder_.path("x/y/z");
  ASSERT_TRUE(make_directory(path));
  ASSERT_TRUE(make_directory(path));
  for (const char* const made : {"x", "x/y", "x/y/z"}) {
    struct stat of {};
    ASSERT_EQ(::stat(folder_.path(made).c_str(), &of), 0);
    EXPECT_EQ(of.st_mode & 0777U, 0700U) << made;
  }
  write("file", 1);
  EXPECT_THAT(make_directory(folder_.path("file")).error().message, HasSubstr("there is a file"));
  EXPECT_THAT(make_directory(folder_.path("file/x")).error().message, HasSubstr("Not a directory"));
  EXPECT_FALSE(make_directory("/proc/x"));
}

TEST_F(Store, OneDaemonHasTheState) {
  {
    const auto first = take_state(state());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = take_state(state());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::refused);
  }
  EXPECT_TRUE(take_state(state()));
  EXPECT_EQ(take_state("/proc").error().code, ErrorCode::permission);
}

TEST_F(Store, SessionsOfAnEarlierDaemonAreCleared) {
  clear_sessions(state());
  write("sessions/5-1.db", 10);
  write("sessions/5-1.db-wal", 10);
  write("services/a/a.db.1", 10);
  clear_sessions(state());
  EXPECT_TRUE(std::filesystem::is_empty(session_folder(state())));
  EXPECT_EQ(profiles_of(state(), "a").size(), 1U);
}

}  // namespace
}  // namespace crosstalk::service::profile_store_test
