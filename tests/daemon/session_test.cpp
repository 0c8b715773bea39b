// SPDX-License-Identifier: Apache-2.0
// Whole sessions with programs that observe themselves.
#include "daemon/session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "profile/reader.h"
#include "profile/switched_files.h"

namespace crosstalk::daemon::session_test {
namespace {

using profile::ProfileReader;

class ASession : public ::testing::Test {
 protected:
  ASession() {
    std::string name = (std::filesystem::temp_directory_path() / "crosstalk-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~ASession() override { std::filesystem::remove_all(directory_); }

  RecordOptions options(const std::vector<std::string>& command) {
    RecordOptions options;
    options.output = path();
    options.command = command;
    options.collector = EMPTY_COLLECTOR;
    options.source_name = "clock";
    options.method_choice = "watchpoints fire here";
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    return options;
  }

  RecordOutcome record(const std::vector<std::string>& command) {
    const Result<RecordOutcome> outcome = daemon::record(options(command));
    if (!outcome) {
      ADD_FAILURE() << outcome.error().message;
      return {};
    }
    return *outcome;
  }

  ProfileReader read() {
    Result<ProfileReader> reader = ProfileReader::open(path());
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      std::abort();
    }
    return std::move(*reader);
  }

  static std::vector<profile::SampleRow> samples(const ProfileReader& reader) {
    std::vector<profile::SampleRow> rows;
    const Result<void> result = reader.for_each_sample([&](const profile::SampleRow& row) { rows.push_back(row); });
    EXPECT_TRUE(result) << result.error().message;
    return rows;
  }

  static std::optional<profile::MessageRow> message(const ProfileReader& reader, const std::string& code) {
    for (const profile::MessageRow& row : reader.messages()) {
      if (row.code == code) {
        return row;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string path() const { return directory_ + "/p.db"; }

  std::string directory_;
  std::vector<std::string> warnings_;
};

TEST_F(ASession, RecordsWhatTheCommandWrites) {
  RecordOptions with = options({FAKE_TARGET, "samples", "100"});
  with.warnings.push_back({"a_warning", "from before", 1});
  const Result<RecordOutcome> outcome = daemon::record(with);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 0);
  EXPECT_EQ(outcome->totals.samples, 100U);
  EXPECT_NEAR(outcome->totals.overhead, 0.01, 1e-4);
  const ProfileReader reader = read();
  EXPECT_TRUE(reader.session().complete);
  EXPECT_EQ(reader.session().exit_status, 0);
  EXPECT_EQ(reader.session().method_choice, "watchpoints fire here");
  EXPECT_GT(reader.session().cpus, 0U);
  EXPECT_GT(reader.session().memory_bytes, 0U);
  EXPECT_GT(reader.session().recorder_cpu_ns, 0U);
  ASSERT_EQ(reader.processes().size(), 1U);
  EXPECT_EQ(reader.processes()[0].exit_status, 0);
  EXPECT_EQ(reader.processes()[0].executable, "/bin/fake");
  EXPECT_EQ(reader.processes()[0].command, "fake 'an argument'");
  ASSERT_EQ(reader.threads().size(), 1U);
  EXPECT_EQ(reader.threads()[0].cpu_ns, 100U * 1'000'000 + 500);
  EXPECT_EQ(reader.threads()[0].samples, 100U);
  EXPECT_GT(reader.threads()[0].end_ns, reader.threads()[0].begin_ns);
  const auto rows = samples(reader);
  ASSERT_EQ(rows.size(), 100U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].ip, 0x1000 + i);
    EXPECT_EQ(rows[i].stack.value != 0, i % 10 == 0);
  }
  EXPECT_TRUE(message(reader, "a_warning"));
  EXPECT_EQ(message(reader, "a_message")->text, "from the target");
  EXPECT_FALSE(message(reader, "records_lost"));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_FALSE(std::filesystem::exists(path() + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(path() + "-shm"));
}

TEST_F(ASession, PassesTheExitStatusOn) {
  EXPECT_EQ(record({FAKE_TARGET, "exit", "0"}).exit_status, 0);
  EXPECT_EQ(record({FAKE_TARGET, "exit", "3"}).exit_status, 3);
  EXPECT_EQ(record({FAKE_TARGET, "kill"}).exit_status, 137);
  const ProfileReader reader = read();
  EXPECT_EQ(reader.session().exit_status, 137);
  EXPECT_EQ(reader.processes().at(0).exit_status, 137);
  EXPECT_EQ(samples(reader).size(), 1U);
}

TEST_F(ASession, ACommandThatCanNotBeExecutedLeavesThePreviousProfile) {
  std::ofstream(path()) << "previous";
  const auto code_of = [&](const std::vector<std::string>& command) {
    const Result<RecordOutcome> outcome = daemon::record(options(command));
    EXPECT_FALSE(outcome);
    return outcome.error().code;
  };
  EXPECT_EQ(code_of({"no-such-command-anywhere"}), ErrorCode::not_found);
  EXPECT_EQ(code_of({"/etc/passwd"}), ErrorCode::not_executable);
  const std::string script = directory_ + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_EQ(code_of({script}), ErrorCode::not_found);
  std::string text;
  std::getline(std::ifstream(path()), text);
  EXPECT_EQ(text, "previous");
  EXPECT_FALSE(std::filesystem::exists(path() + ".old"));
}

TEST_F(ASession, AnUnwritableOutputIsAnErrorBeforeTheStart) {
  RecordOptions bad = options({"touch", directory_ + "/started"});
  bad.output = "/proc/nowhere/p.db";
  const Result<RecordOutcome> outcome = daemon::record(bad);
  ASSERT_FALSE(outcome);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/started"));
}

TEST_F(ASession, ExecIsAnotherProcessOfTheSamePid) {
  EXPECT_EQ(record({FAKE_TARGET, "exec"}).exit_status, 0);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.processes().size(), 2U);
  EXPECT_EQ(reader.processes()[0].pid, reader.processes()[1].pid);
  EXPECT_FALSE(reader.processes()[0].exit_status.has_value());
  EXPECT_EQ(reader.processes()[1].exit_status, 0);
  std::map<std::uint32_t, int> by_process;
  for (const profile::SampleRow& row : samples(reader)) {
    ++by_process[reader.threads()[row.thread.value].process.value];
  }
  EXPECT_EQ(by_process, (std::map<std::uint32_t, int>{{0, 1}, {1, 3}}));
}

TEST_F(ASession, AForksChildIsAProcessWithItsParentsModules) {
  EXPECT_EQ(record({FAKE_TARGET, "fork"}).exit_status, 0);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.processes().size(), 2U);
  const auto child = std::find_if(reader.processes().begin(), reader.processes().end(),
                                  [](const profile::ProcessRow& row) { return row.after_fork; });
  ASSERT_NE(child, reader.processes().end());
  const ProcessId parent{1 - child->id.value};
  EXPECT_EQ(child->modules_of, parent);
  EXPECT_EQ(child->parent_pid, reader.processes()[parent.value].pid);
  EXPECT_GT(child->end_ns, 0U);
  EXPECT_EQ(samples(reader).size(), 2U);
}

TEST_F(ASession, ShortLivedThreadsUseSlotsAgain) {
  EXPECT_EQ(record({FAKE_TARGET, "threads", "200"}).exit_status, 0);
  const ProfileReader reader = read();
  EXPECT_EQ(reader.threads().size(), 201U);
  std::set<std::uint32_t> threads;
  std::set<std::uint64_t> ips;
  for (const profile::SampleRow& row : samples(reader)) {
    threads.insert(row.thread.value);
    ips.insert(row.ip);
  }
  EXPECT_EQ(threads.size(), 200U);
  EXPECT_EQ(ips.size(), 200U);
  for (const profile::ThreadRow& thread : reader.threads()) {
    EXPECT_EQ(thread.process, ProcessId{0});
    EXPECT_GT(thread.end_ns, 0U);
    EXPECT_LE(thread.samples, 1U);
  }
}

TEST_F(ASession, AFullRingIsCountedAndSaid) {
  const RecordOutcome outcome = record({FAKE_TARGET, "full"});
  const ProfileReader reader = read();
  const auto lost = message(reader, "records_lost");
  ASSERT_TRUE(lost);
  EXPECT_EQ(samples(reader).size(), outcome.totals.samples);
  EXPECT_GE(outcome.totals.samples + lost->count, 20000U);  // thread_end may be among the lost
  EXPECT_EQ(reader.threads()[0].lost, lost->count);
}

TEST_F(ASession, CorruptRingsAreSkippedAndTheRestIsKept) {
  EXPECT_EQ(record({FAKE_TARGET, "corrupt"}).exit_status, 0);
  const ProfileReader reader = read();
  EXPECT_GE(message(reader, "ring_corrupt").value_or(profile::MessageRow{}).count, 2U);
  const auto rows = samples(reader);
  EXPECT_EQ(rows.front().ip, 0x1000U);
  EXPECT_EQ(rows.back().ip, 0x1003U);
}

TEST_F(ASession, ALostAnnouncementStillGivesAProcess) {
  EXPECT_EQ(record({FAKE_TARGET, "unannounced"}).exit_status, 0);
  const ProfileReader reader = read();
  ASSERT_EQ(reader.processes().size(), 1U);
  EXPECT_EQ(samples(reader).size(), 1U);
}

TEST_F(ASession, ACommandThatNeverAttachesIsSaid) {
  EXPECT_EQ(record({"sh", "-c", "exit 4"}).exit_status, 4);
  EXPECT_TRUE(message(read(), "not_observed"));
}

TEST_F(ASession, ProcessesLeftBehindAreWaitedForASecondOnly) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(record({FAKE_TARGET, "leave"}).exit_status, 0);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(elapsed, 0.9);
  EXPECT_LT(elapsed, 3);
  EXPECT_TRUE(message(read(), "children_left_running"));
}

TEST_F(ASession, SaysHowItGoes) {
  RecordOptions with = options({FAKE_TARGET, "samples", "3000"});
  std::vector<Progress> progress;
  with.progress = [&](const Progress& now) { progress.push_back(now); };
  ASSERT_TRUE(daemon::record(with));
  ASSERT_GE(progress.size(), 2U);
  EXPECT_GT(progress.back().samples, progress.front().samples);
  EXPECT_EQ(progress.back().threads, 1U);
  EXPECT_NEAR(progress.back().overhead, 0.01, 1e-3);
}

TEST_F(ASession, BeginsANewProfileFromTimeToTime) {
  RecordOptions with = options({FAKE_TARGET, "steady", "500", "2"});
  with.warnings.push_back({"a_warning", "from before", 1});
  with.switch_ns = 300'000'000;
  const Result<RecordOutcome> outcome = daemon::record(with);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 0);
  EXPECT_FALSE(std::filesystem::exists(path())) << "all have names of their own";
  const std::vector<std::string> files = profile::switched_files(path());
  ASSERT_GE(files.size(), 3U);
  EXPECT_EQ(files.size(), outcome->files_made);
  EXPECT_EQ(files.size(), outcome->files_kept);
  EXPECT_EQ(files.front(), outcome->first_output);
  EXPECT_EQ(files.back(), outcome->output);
  std::uint64_t rows = 0, cpu_ns = 0, counted = 0, end_ns = 0;
  for (const std::string& file : files) {
    const Result<ProfileReader> reader = ProfileReader::open(file);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_FALSE(std::filesystem::exists(file + "-wal"));
    const profile::Session& session = reader->session();
    EXPECT_TRUE(session.complete);
    EXPECT_TRUE(end_ns == 0 || session.begin_ns == end_ns) << "no gap, no overlap";
    EXPECT_EQ(session.exit_status.has_value(), file == outcome->output);
    EXPECT_GT(session.recorder_cpu_ns, 0U);
    EXPECT_TRUE(message(*reader, "a_warning"));
    ASSERT_LE(reader->threads().size(), 1U);
    for (const profile::ThreadRow& thread : reader->threads()) {
      EXPECT_LE(thread.cpu_ns, session.end_ns - session.begin_ns);
      cpu_ns += thread.cpu_ns;
      counted += thread.samples;
    }
    rows += samples(*reader).size();
    end_ns = session.end_ns;
  }
  EXPECT_EQ(rows, outcome->totals.samples);
  EXPECT_EQ(counted, rows);
  EXPECT_EQ(outcome->stored_samples, rows);
  EXPECT_EQ(cpu_ns, rows * 1'000'000 + 500) << "as the target says at its end";
}

/// Starts bare_recorder on the fake target's "wait" and returns when that is running.
class ARecorderOfItsOwn : public ASession {
 protected:
  void start() {
    const std::string ready = directory_ + "/ready";
    recorder_ = ::fork();
    if (recorder_ == 0) {
      ::execl(BARE_RECORDER, BARE_RECORDER, path().c_str(), FAKE_TARGET, "wait", ready.c_str(), nullptr);
      ::_exit(126);
    }
    for (int i = 0; i < 500 && !std::filesystem::exists(ready); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(std::filesystem::exists(ready));
  }
  int finish() const {
    int status = 0;
    ::waitpid(recorder_, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  pid_t recorder_ = -1;
};

TEST_F(ARecorderOfItsOwn, PassesSigtermOnAndFinishesTheProfile) {
  start();
  ::kill(recorder_, SIGTERM);
  EXPECT_EQ(finish(), 143);
  const ProfileReader reader = read();
  EXPECT_TRUE(reader.session().complete);
  EXPECT_EQ(reader.session().exit_status, 143);
  EXPECT_FALSE(std::filesystem::exists(path() + "-wal"));
}

TEST_F(ARecorderOfItsOwn, ManyInterruptsDoNotLoseTheProfile) {
  start();
  for (int i = 0; i < 5; ++i) {
    ::kill(recorder_, SIGINT);
  }
  EXPECT_EQ(finish(), 130);
  EXPECT_TRUE(read().session().complete);
}

TEST_F(ARecorderOfItsOwn, KilledItLeavesAReadableProfileAndTheCommandAlive) {
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(2300));
  ::kill(recorder_, SIGKILL);
  EXPECT_EQ(finish(), 137);
  const ProfileReader reader = read();
  EXPECT_FALSE(reader.session().complete);
  EXPECT_FALSE(reader.session().exit_status.has_value());
  EXPECT_GT(reader.session().end_ns, reader.session().begin_ns + 1'000'000'000);
  EXPECT_GT(samples(reader).size(), 50U);
  ASSERT_EQ(reader.processes().size(), 1U);
  EXPECT_GT(reader.threads().at(0).cpu_ns, 0U);  // totals are kept up to date
  const pid_t command = reader.processes()[0].pid;
  EXPECT_EQ(::kill(command, 0), 0);
  ::kill(command, SIGKILL);
}

}  // namespace
}  // namespace crosstalk::daemon::session_test
