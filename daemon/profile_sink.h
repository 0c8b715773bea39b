// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/row_sink.h"
#include "profile/writer.h"

namespace crosstalk::daemon {

/// Puts rows into a profile. If the profile cannot be written (a full disk), warns once, drops rows, and retries from
/// time to time, so that the recording and the command go on.
class ProfileSink final : public RowSink {
 public:
  /// `warn` receives one line at the first failure.
  ProfileSink(profile::ProfileWriter writer, std::function<void(const std::string&)> warn)
      : writer_(std::move(writer)), warn_(std::move(warn)) {}

  void put(const profile::ProcessRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::ThreadRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::ModuleRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::SampleRow& row) override { count(writer_.put(row), open_.samples); }
  void put(const profile::WatchRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::TrapRow& row) override { count(writer_.put(row), open_.traps); }
  void put(const profile::BlockRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::SharedMappingRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::ThreadCreationRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::ThreadWaitRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::RegionRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::ThreadRegionRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::LookaheadRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::CounterRow& row) { note_result(writer_.put(row)); }
  void put(const profile::ReadingRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::StackRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::MessageRow& row) override { note_result(writer_.put(row)); }
  void put(const profile::EventRow& row) { note_result(writer_.put(row)); }
  void put(const profile::KeptFileRow& row) { note_result(writer_.put(row)); }
  void put(const profile::Session& session) { note_result(writer_.put(session)); }

  void commit();
  /// Leaves one file. Call it after the last commit.
  void finish();

  /// Counts of committed rows.
  struct Stored {
    std::uint64_t samples = 0, traps = 0;
  };
  [[nodiscard]] const Stored& stored() const { return stored_; }
  /// True while rows are dropped.
  [[nodiscard]] bool failing() const { return failing_; }
  /// Returns why rows were dropped; empty if all were written.
  [[nodiscard]] const std::string& loss() const { return loss_; }
  /// Resumes writing; the caller then puts again the rows that other rows refer to.
  void retry() {
    failing_ = false;
    writer_.retry();
  }

 private:
  void note_result(const Result<void>& result);
  void count(const Result<void>& result, std::uint64_t& counter);

  profile::ProfileWriter writer_;
  std::function<void(const std::string&)> warn_;
  std::string loss_;
  Stored stored_, open_;  // committed, and put since
  bool failing_ = false;
};

}  // namespace crosstalk::daemon
