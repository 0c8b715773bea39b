// SPDX-License-Identifier: Apache-2.0
// The program itself: its output streams, and the exit statuses of the contract before a command starts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crosstalk::driver::program_test {
namespace {

struct Ran {
  int status = -1;
  std::string out, err;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Makes perf_event_open fail with EACCES from here on, as a strict kernel.perf_event_paranoid does.
void forbid_perf() {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    ::_exit(99);
  }
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "crosstalk-program-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ran run(std::vector<std::string> arguments, bool with_perf = true) const {
    arguments.insert(arguments.begin(), CROSSTALK_PROGRAM);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      const bool there = ::chdir(folder_.c_str()) == 0;
      const int out = ::open("out", O_CREAT | O_WRONLY | O_TRUNC, 0600);
      const int err = ::open("err", O_CREAT | O_WRONLY | O_TRUNC, 0600);
      if (!there || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) {
        ::_exit(98);
      }
      if (!with_perf) {
        forbid_perf();
      }
      ::execv(argv[0], argv.data());
      ::_exit(97);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(folder_ / "out"),
            read(folder_ / "err")};
  }

  /// Refused with `status`, in one line that holds `words`, with nothing on standard output and no profile.
  void expect_refused(const std::vector<std::string>& arguments, int status, const std::string& words) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("crosstalk: ")) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "crosstalk.db"));
  }

  std::filesystem::path folder_;
};

TEST_F(Program, AloneShowsHelpAndRefuses) {
  const Ran ran = run({});
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find("crosstalk record"), std::string::npos);
}

TEST_F(Program, VersionAndHelpGoToStandardOutput) {
  EXPECT_TRUE(run({"--version"}).out.starts_with("crosstalk "));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"-h"},
                                                                                         {"help"},
                                                                                         {"record", "--help"},
                                                                                         {"report", "-h"},
                                                                                         {"help", "doctor"},
                                                                                         {"calibrate", "--help"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 0);
    EXPECT_NE(ran.out.find("Usage:"), std::string::npos);
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(Program, RefusesWhatItDoesNotKnow) {
  expect_refused({"recrod"}, 125, "recrod");
  expect_refused({"--frobnicate"}, 125, "--frobnicate");
  expect_refused({"record", "--frobnicate", "true"}, 125, "--frobnicate");
  expect_refused({"report", "--view", "x"}, 125, "summary");
}

TEST_F(Program, RecordRefusesBeforeTheCommandStarts) {
  const std::string mark = (folder_ / "started").string();
  expect_refused({"record"}, 125, "no command");
  expect_refused({"record", "-p", "2147483647"}, 125, "no process");
  expect_refused({"record", "-o", "/proc/x.db", "touch", mark}, 125, "cannot be written");
  expect_refused({"record", "-o", "%x", "touch", mark}, 125, "%");
  for (const char* const source : {"pebs", "ibs", "ibs-kmod"}) {
    expect_refused({"record", "--source", source, "touch", mark}, 125, "not available on this machine");
  }
  expect_refused({"record", "no-such-command-here"}, 127, "not found");
  expect_refused({"record", "./no-such-file"}, 127, "no such file");
  std::ofstream(folder_ / "plain") << "text\n";
  expect_refused({"record", "./plain"}, 126, "cannot be executed");
  expect_refused({"record", "/"}, 126, "cannot be executed");
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(Program, RecordWatchesSetUserIdProgramsFromOutsideIfItMay) {
  std::filesystem::copy_file("/bin/true", folder_ / "copy");
  ASSERT_EQ(::chmod((folder_ / "copy").c_str(), 04755), 0);
  if (::geteuid() != 0) {
    expect_refused({"record", "./copy"}, 125, "set-user-ID");
    return;
  }
  const Ran ran = run({"record", "./copy"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("./copy is set-user-ID, so it was watched from outside"), std::string::npos) << ran.err;
}

TEST_F(Program, RecordPassesTheStatusOnAndSaysWhereTheProfileIs) {
  const Ran ran = run({"record", "-o", "a b.db", "sh", "-c", "echo theirs; exit 7"});
  EXPECT_EQ(ran.status, 7) << ran.err;
  EXPECT_EQ(ran.out, "theirs\n");
  EXPECT_NE(ran.err.find("crosstalk: wrote a b.db ("), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("crosstalk report 'a b.db'"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);  // no terminal, no progress line
  const Ran report = run({"report", "a b.db", "--format", "json"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_EQ(nlohmann::json::parse(report.out)["exit_status"], 7);
}

TEST_F(Program, QuietSaysNothing) {
  const Ran ran = run({"record", "-q", "true"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "crosstalk.db"));
}

TEST_F(Program, ForbiddenPerfIsAWarningAndTheRecordingGoesOn) {
  const Ran ran = run({"record", "sh", "-c", "exit 5"}, false);
  EXPECT_EQ(ran.status, 5) << ran.err;
  EXPECT_NE(ran.err.find("crosstalk: warning: perf events are forbidden"), std::string::npos) << ran.err;
  const Ran forced = run({"record", "--event", "task-clock", "true"}, false);
  EXPECT_EQ(forced.status, 125) << forced.err;
  EXPECT_NE(forced.err.find("thread-timer"), std::string::npos) << forced.err;
}

TEST_F(Program, ReportFailsInOneLine) {
  expect_refused({"report", "missing.db"}, 1, "missing.db");
  std::ofstream(folder_ / "no.db") << "this is no database";
  expect_refused({"report", "no.db"}, 1, "no.db");
}

TEST_F(Program, DoctorAnswersInBothForms) {
  const Ran text = run({"doctor"});
  EXPECT_NE(text.out.find("watchpoints"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  const auto report = nlohmann::json::parse(run({"doctor", "--format", "json"}).out);
  EXPECT_EQ(report["can_record"].get<bool>(), text.status == 0);
  const auto forbidden = nlohmann::json::parse(run({"doctor", "--format", "json"}, false).out);
  EXPECT_EQ(forbidden["sees_communication"], true);
  EXPECT_EQ(forbidden["method"], "probe");
}

}  // namespace
}  // namespace crosstalk::driver::program_test
