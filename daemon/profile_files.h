// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/output_files.h"
#include "daemon/process_table.h"
#include "daemon/profile_file.h"
#include "daemon/profile_sink.h"
#include "daemon/row_sink.h"
#include "profile/writer.h"

namespace crosstalk::daemon {

/// The files of a recording: one, or one after the other (`record --switch-output`). Not thread-safe.
///
/// A switch divides the recording at a moment. Rows arrive late: the observer and the rings hold them back for some
/// milliseconds, and a watch that spans the moment traps until its horizon. So the file that ends stays open beside the
/// next one for a while, and each row goes to the file of its own time. A watch goes to the file in which it began,
/// with its sample and all of its traps: its sample's weight is there, and a part of a watch in each file would be two
/// watches that end early. Rows that come after the file was finished are dropped and counted.
class ProfileFiles final : public RowSink {
 public:
  /// `first`: the first file, or the only one if there are no `names` for others. Rows of an only one stay as they are.
  ProfileFiles(profile::ProfileWriter first, std::optional<SwitchedFiles> names,
               std::function<void(const std::string&)> warn);

  /// Begins the recording. `processes` has the rows that others refer to, and outlives this.
  void begin(const ProcessTable& processes, std::uint64_t time_ns);
  /// Divides the recording at this moment, and begins the next file. Totals still go to the one that ends. If the file
  /// cannot be made, warns, and drops all rows up to the next one. `last_watch`: the last one that has begun.
  void begin_next(std::uint64_t time_ns, std::uint32_t last_watch, const profile::Session& session);
  /// Ends the file that ends: totals go to the next one from now on, which begins empty.
  void hand_over();
  /// Finishes the file that has ended, and removes surplus files. Does nothing if there is none.
  void finish_ended();
  /// The file to which hand_over() has handed over, for the rows that its rows will refer to.
  [[nodiscard]] RowSink& present() { return *present_; }

  void put(const profile::ProcessRow& row) override;
  void put(const profile::ThreadRow& row) override;
  void put(const profile::ModuleRow& row) override;
  void put(const profile::SampleRow& row) override;
  void put(const profile::WatchRow& row) override;
  void put(const profile::TrapRow& row) override;
  void put(const profile::BlockRow& row) override;
  void put(const profile::SharedMappingRow& row) override;
  void put(const profile::ThreadCreationRow& row) override;
  void put(const profile::ThreadWaitRow& row) override;
  void put(const profile::SampledWaitRow& row) override;
  void put(const profile::RegionRow& row) override;
  void put(const profile::ThreadRegionRow& row) override;
  void put(const profile::LookaheadRow& row) override;
  void put(const profile::ReadingRow& row) override;
  void put(const profile::StackRow& row) override;
  void put(const profile::MessageRow& row) override { put_total(row); }
  void put(const profile::CounterRow& row) { put_total(row); }
  void put(const profile::EventRow& row) { put_total(row); }
  void put(const profile::KeptFileRow& row) { put_total(row); }
  void put(const profile::Session& session) { put_total(session); }

  /// Totals that are put from now on count up to `now_ns`.
  void set_now(std::uint64_t now_ns);
  void commit();
  /// Finishes all files. Call it after the last commit.
  void finish();
  /// Returns the number of samples and traps since the last call that came after their file was finished.
  [[nodiscard]] std::uint64_t take_late();

  /// True while rows of the present file are dropped, and retry() may help.
  [[nodiscard]] bool may_retry() const { return sink().failing() && sink().has_file(); }
  void retry();
  /// Returns why rows of the file that totals go to were dropped; empty if all were written.
  [[nodiscard]] const std::string& loss() const { return sink().loss(); }

  /// Sums over all files, finished ones included.
  [[nodiscard]] ProfileSink::Stored stored() const;
  /// Returns why rows were dropped first; empty if all were written.
  [[nodiscard]] const std::string& first_loss() const { return first_loss_.empty() ? loss() : first_loss_; }
  /// Null: there is one file.
  [[nodiscard]] const SwitchedFiles* names() const { return names_ ? &*names_ : nullptr; }

 private:
  [[nodiscard]] ProfileFile& with_totals() { return ended_ && !handed_over_ ? *ended_ : *present_; }
  [[nodiscard]] const ProfileSink& sink() const;
  [[nodiscard]] Result<profile::ProfileWriter> make_next();
  template <class Row>
  void put_total(const Row& row) {
    whole_ ? whole_->put(row) : with_totals().put(row);
  }
  template <class Row, class Moment>
  bool put_at(const Row& row, Moment moment);
  template <class Row>
  void put_told_once(const Row& row, std::uint64_t time_ns);
  template <class Row>
  void put_in(ProfileFile& file, const Row& row);
  [[nodiscard]] bool ended_before(std::uint64_t end_ns) const;
  void close(ProfileFile& file);

  std::function<void(const std::string&)> warn_;  // of the files: once
  std::unique_ptr<ProfileSink> whole_;            // of a recording with one file
  std::optional<SwitchedFiles> names_;
  Result<profile::ProfileWriter> first_ = fail(ErrorCode::system, "");  // until begin()
  std::unique_ptr<ProfileFile> present_, ended_;
  const ProcessTable* processes_ = nullptr;
  bool handed_over_ = false;
  std::optional<profile::StackRow> stack_;  // of the next row, which decides on its file
  StackId last_stack_;
  std::uint64_t late_ = 0;
  ProfileSink::Stored stored_;  // in finished files
  std::string first_loss_;
};

}  // namespace crosstalk::daemon
