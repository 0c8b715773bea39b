// SPDX-License-Identifier: Apache-2.0
#include "daemon/module_files.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/file_content.h"

namespace crosstalk::daemon::module_files_test {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() { fs::create_directories(folder_); }
  ~Files() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  static profile::ModuleRow row(const std::string& path, const std::string& build_id = "") {
    profile::ModuleRow module;
    module.path = path;
    module.build_id = build_id;
    module.begin = 0x10;  // nothing is mapped there
    return module;
  }
  std::string folder_ = fs::temp_directory_path() / ("module_files_" + std::to_string(::getpid()));
  ModuleFiles files_{::time(nullptr) + 1000};
};

TEST_F(Files, OnlyWithoutABuildIdContentsAreHashed) {
  profile::ModuleRow with = row(write("with", "some"), "0123"), without = row(write("without", "some"));
  files_.identify(::getpid(), with);
  files_.identify(::getpid(), without);
  EXPECT_EQ(with.content_hash, 0U);
  EXPECT_EQ(without.content_hash, content_hash(without.path));
  files_.look_again();
  EXPECT_TRUE(files_.take_copies().empty());
}

TEST_F(Files, WhatIsReplacedOrDeletedMeanwhileIsKept) {
  profile::ModuleRow replaced = row(write("replaced", "before"), "0123"), deleted = row(write("deleted", "was"));
  files_.identify(::getpid(), replaced);
  files_.identify(::getpid(), deleted);
  fs::rename(write("next", "after"), replaced.path);
  fs::remove(deleted.path);
  files_.look_again();
  const auto copies = files_.take_copies();
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].path, replaced.path);
  EXPECT_EQ(copies[0].build_id, "0123");
  EXPECT_EQ(std::string(copies[0].bytes.begin(), copies[0].bytes.end()), "before");
  EXPECT_EQ(copies[1].content_hash, deleted.content_hash);
  files_.look_again();
  EXPECT_TRUE(files_.take_copies().empty());
}

TEST_F(Files, LaterProfilesGetCopiesOfWhatTheirModulesHave) {
  files_.keep_for_later_files();
  profile::ModuleRow one = row(write("one", "first"), "01"), other = row(write("other", "second"), "02");
  files_.identify(::getpid(), one);
  files_.identify(::getpid(), other);
  fs::remove(one.path);
  fs::remove(other.path);
  files_.look_again();
  EXPECT_EQ(files_.take_copies().size(), 2U);
  for (int file = 0; file < 2; ++file) {
    files_.begin_file({other});
    const auto copies = files_.take_copies();
    ASSERT_EQ(copies.size(), 1U);
    EXPECT_EQ(copies[0].path, other.path);
    EXPECT_EQ(copies[0].build_id, "02");
    EXPECT_EQ(std::string(copies[0].bytes.begin(), copies[0].bytes.end()), "second");
  }
  files_.begin_file({});
  EXPECT_TRUE(files_.take_copies().empty());
  files_.begin_file({other});
  EXPECT_TRUE(files_.take_copies().empty()) << "it is forgotten";
}

TEST_F(Files, WhatWasGoneBeforeAndIsNotToBeHadIsNotMistakenForWhatLiesThere) {
  const std::string path = write("there", "another");
  profile::ModuleRow gone = row(path + " (deleted)");
  files_.identify(::getpid(), gone);
  EXPECT_EQ(gone.path, path + " (deleted)");
  EXPECT_EQ(gone.content_hash, 0U);
}

TEST_F(Files, AMapOfAnEarlierProcessOfThatNumberIsKeptAsEmpty) {
  const pid_t nobody = 2'000'000'000;
  const std::string map = "/tmp/perf-" + std::to_string(nobody) + ".map";
  std::ofstream(map) << "1000 10 old\n";
  profile::ModuleRow program = row(write("program", "x"), "0123");
  files_.identify(nobody, program);
  files_.read_compilers_files();
  ModuleFiles later(0);
  later.identify(nobody, program);
  later.read_compilers_files();
  fs::remove(map);
  const auto old = files_.take_copies(), taken = later.take_copies();
  ASSERT_EQ(old.size(), 1U);
  EXPECT_TRUE(old[0].bytes.empty());
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(std::string(taken[0].bytes.begin(), taken[0].bytes.end()), "1000 10 old\n");
}

/// A process with a /tmp of its own, as services and containers have. Lives until the end of the scope.
class OwnTmp {
 public:
  /// `map`: text of its /tmp/perf-PID.map.
  explicit OwnTmp(const std::string& map) {
    int told[2];
    if (::pipe(told) == 0 && (pid_ = ::fork()) == 0) {
      const int spaces = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
      const bool apart = ::unshare(spaces) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmp", "/tmp", "tmpfs", 0, "") == 0;
      bool written = false;
      if (apart) {
        std::ofstream file("/tmp/perf-" + std::to_string(::getpid()) + ".map");
        written = static_cast<bool>(file << map << std::flush);
      }
      static_cast<void>(!::write(told[1], written ? "y" : "n", 1));
      ::pause();
      ::_exit(0);
    }
    char word = 'n';
    made_ = ::read(told[0], &word, 1) == 1 && word == 'y';
    ::close(told[0]);
    ::close(told[1]);
  }
  ~OwnTmp() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OwnTmp(const OwnTmp&) = delete;
  OwnTmp& operator=(const OwnTmp&) = delete;
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  bool made_ = false;
};

TEST_F(Files, AMapIsReadWhereItsProcessWroteIt) {
  const OwnTmp process("2000 10 compiled\n");
  if (!process.made()) {
    GTEST_SKIP() << "no user namespace with a mount of its own can be made here";
  }
  profile::ModuleRow program = row(write("program", "x"), "0123");
  ModuleFiles files(0);
  files.identify(process.pid(), program);
  files.read_compilers_files();
  const auto copies = files.take_copies();
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].path, "/tmp/perf-" + std::to_string(process.pid()) + ".map");
  EXPECT_EQ(std::string(copies[0].bytes.begin(), copies[0].bytes.end()), "2000 10 compiled\n");
}

TEST_F(Files, AFileThatOnlyTheProcessHasIsKept) {
  const OwnTmp process("2000 10 compiled\n");
  if (!process.made()) {
    GTEST_SKIP() << "no user namespace with a mount of its own can be made here";
  }
  const std::string map = "/tmp/perf-" + std::to_string(process.pid()) + ".map";
  profile::ModuleRow program = row(map, "0123");
  files_.identify(process.pid(), program);
  const auto copies = files_.take_copies();
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(std::string(copies[0].bytes.begin(), copies[0].bytes.end()), "2000 10 compiled\n");
  ModuleFiles in_parts(0);
  in_parts.keep_for_later_files();
  in_parts.identify(process.pid(), program);
  EXPECT_TRUE(in_parts.take_copies().empty()) << "each part would have a copy";
}

}  // namespace
}  // namespace crosstalk::daemon::module_files_test
