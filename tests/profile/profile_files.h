// SPDX-License-Identifier: Apache-2.0
// A directory for a test's profiles, and one row of each kind with every field set.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "profile/reader.h"
#include "profile/writer.h"

namespace crosstalk::profile::test {

class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "crosstalk-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline ProfileWriter created(const std::string& path) {
  Result<ProfileWriter> writer = ProfileWriter::create(path);
  if (!writer) {
    ADD_FAILURE() << writer.error().message;
    std::abort();
  }
  return std::move(*writer);
}

inline Session a_session() {
  Session session;
  session.command = "./server --port 'a b'";
  session.exit_status = 143;
  session.begin_ns = 1'000'000'000'000;
  session.begin_unix_ns = 1'795'000'000'123'456'789;
  session.end_ns = 1'000'500'000'000;
  session.complete = true;
  session.method_choice = "watchpoints do not fire";
  session.host = "host";
  session.kernel = "6.1.0";
  session.cpu_model = "A CPU @ 2 GHz";
  session.source_choice = "pebs: not an Intel processor; clock: chosen";
  session.cpus = 8;
  session.memory_bytes = 123456;
  session.recorder_cpu_ns = 987;
  session.unobserved_cpu_ns = 654;
  session.version = "0.1.0";
  session.watch_trial = {TrialVerdict::partly, trial_locked | trial_load, 3, "an emulator", "take another"};
  session.config.budget = 0.05;
  session.config.clock = ClockKind::perf;
  session.config.method = Method::probe;
  session.config.partner = Partner::next_store;
  session.config.board_slots = 256;
  session.config.seed = 0xffffffffffffffffU;
  return session;
}

inline ProcessRow a_process(std::uint32_t id) {
  ProcessRow row;
  row.id = ProcessId{id};
  row.pid = 4000 + static_cast<std::int32_t>(id);
  row.parent_pid = 1;
  row.executable = "/usr/bin/server";
  row.command = "server --port 80";
  row.begin_ns = 1'000'000'000'100;
  row.end_ns = 1'000'400'000'000;
  row.exit_status = id == 0 ? std::optional<int>(143) : std::nullopt;
  row.after_fork = id != 0;
  row.modules_of = id != 0 ? std::optional<ProcessId>(ProcessId{0}) : std::nullopt;
  row.observation = id != 0 ? Observation::none : Observation::injected;
  row.unobserved_because = id != 0 ? "it is a 32-bit program" : "";
  return row;
}

inline ThreadRow a_thread(std::uint32_t id) {
  ThreadRow row;
  row.id = ThreadId{id};
  row.tid = 4100 + static_cast<std::int32_t>(id);
  row.name = "worker";
  row.begin_ns = 1'000'000'000'200;
  row.end_ns = 1'000'300'000'000;
  row.stack_low = 0x7f0000000000;
  row.stack_high = 0x7f0000800000;
  row.thread_pointer = 0x7f0000900000;
  row.cpu_ns = 5'000'000;
  row.samples = 9, row.traps = 8, row.armed = 7, row.lost = 6;
  row.handlers_ns = 5, row.switches_ns = 4, row.switches = 3, row.handler_samples_ns = 2;
  row.clock = ClockKind::posix;
  row.period_us = 4000;
  return row;
}

/// All traps, by watch and sequence.
inline std::vector<TrapRow> traps_of(const ProfileReader& reader) {
  std::vector<std::vector<TrapRow>> by_watch(reader.watches().size());
  const Result<void> read = reader.for_each_trapped_watch(
      [&](std::size_t watch, std::span<const TrapRow> traps) {
        EXPECT_TRUE(by_watch.at(watch).empty()) << "visited twice";
        by_watch.at(watch).assign(traps.begin(), traps.end());
      },
      [&] { by_watch.assign(by_watch.size(), {}); });
  EXPECT_TRUE(read);
  std::vector<TrapRow> all;
  for (const std::vector<TrapRow>& traps : by_watch) {
    all.insert(all.end(), traps.begin(), traps.end());
  }
  return all;
}

inline SampleRow a_sample() {
  SampleRow row;
  row.time_ns = 1'000'000'100'000;
  row.ip = 0x555555554010;
  row.access_ip = 0x555555554008;
  row.address = 0x7f0000001238;
  row.cpu_ns = 4'000'000;
  row.watch = WatchId{7};
  row.stack = StackId{1};
  row.cpu = 3;
  row.width = 8;
  row.access = AccessKind::load_store;
  row.from = AddressFrom::retired;
  row.flags = sample_armed | sample_eligible;
  row.previous_handler_ns = 2500;
  return row;
}

}  // namespace crosstalk::profile::test
