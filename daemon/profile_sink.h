// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "daemon/row_sink.h"
#include "profile/writer.h"

namespace crosstalk::daemon {

/// Puts rows into a profile. If the profile cannot be written (a full disk), warns once, drops rows, and retries from
/// time to time, so that the recording and the command go on.
class ProfileSink final : public RowSink {
 public:
  /// `warn` receives one line at the first failure, or at once if there is no writer: then all rows are dropped.
  ProfileSink(Result<profile::ProfileWriter> writer, std::function<void(const std::string&)> warn);

  void put(const profile::ProcessRow& row) override { write(row); }
  void put(const profile::ThreadRow& row) override { write(row); }
  void put(const profile::ModuleRow& row) override { write(row); }
  void put(const profile::SampleRow& row) override { count(row, open_.samples); }
  void put(const profile::WatchRow& row) override { write(row); }
  void put(const profile::TrapRow& row) override { count(row, open_.traps); }
  void put(const profile::BlockRow& row) override { write(row); }
  void put(const profile::SharedMappingRow& row) override { write(row); }
  void put(const profile::ThreadCreationRow& row) override { write(row); }
  void put(const profile::ThreadWaitRow& row) override { write(row); }
  void put(const profile::SampledWaitRow& row) override { write(row); }
  void put(const profile::RegionRow& row) override { write(row); }
  void put(const profile::ThreadRegionRow& row) override { write(row); }
  void put(const profile::LookaheadRow& row) override { write(row); }
  void put(const profile::CounterRow& row) { write(row); }
  void put(const profile::ReadingRow& row) override { write(row); }
  void put(const profile::StackRow& row) override { write(row); }
  void put(const profile::MessageRow& row) override { write(row); }
  void put(const profile::EventRow& row) { write(row); }
  void put(const profile::KeptFileRow& row) { write(row); }
  void put(const profile::Session& session) { write(session); }

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
  /// False if the file could not be made, so that no retry helps.
  [[nodiscard]] bool has_file() const { return writer_.has_value(); }
  /// Returns why rows were dropped; empty if all were written.
  [[nodiscard]] const std::string& loss() const { return loss_; }
  /// Resumes writing; the caller then puts again the rows that other rows refer to. Precondition: there is a file.
  void retry() {
    failing_ = false;
    writer_->retry();
  }

 private:
  void note_result(const Result<void>& result);
  template <class Row>
  void write(const Row& row) {
    if (writer_) {
      note_result(writer_->put(row));
    }
  }
  template <class Row>
  void count(const Row& row, std::uint64_t& counter) {
    write(row);
    counter += failing_ ? 0 : 1;
  }

  std::optional<profile::ProfileWriter> writer_;
  std::function<void(const std::string&)> warn_;
  std::string loss_;
  Stored stored_, open_;  // committed, and put since
  bool failing_ = false;
};

}  // namespace crosstalk::daemon
