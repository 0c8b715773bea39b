// SPDX-License-Identifier: Apache-2.0
// Writes a profile file as the run goes on.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "profile/counter_reading.h"
#include "profile/model.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::profile {

struct WriterState;  // writer_state.h

class ProfileWriter {
 public:
  /// Creates `path` (an existing file becomes path.old, its -wal and -shm too; parent directories are made).
  [[nodiscard]] static Result<ProfileWriter> create(const std::string& path);
  ProfileWriter(ProfileWriter&&) noexcept;
  ProfileWriter& operator=(ProfileWriter&&) noexcept;
  ~ProfileWriter();

  // Rows are buffered in the open transaction; commit() makes them readable by others. Every call returns
  // an error at most once for a cause (a full disk, say) and is then ignored until retry().
  [[nodiscard]] Result<void> put(const Session& session);  // replaces
  [[nodiscard]] Result<void> put(const ProcessRow& row);   // replaces by id
  [[nodiscard]] Result<void> put(const ThreadRow& row);    // replaces by id
  [[nodiscard]] Result<void> put(const KeptFileRow& row);  // replaces by what names it
  [[nodiscard]] Result<void> put(const ModuleRow& row);    // replaces by (process, begin, loaded_ns)
  [[nodiscard]] Result<void> put(const SampleRow& row);
  [[nodiscard]] Result<void> put(const WatchRow& row);  // replaces by id
  [[nodiscard]] Result<void> put(const TrapRow& row);
  [[nodiscard]] Result<void> put(const BlockRow& row);
  [[nodiscard]] Result<void> put(const SharedMappingRow& row);
  [[nodiscard]] Result<void> put(const ThreadCreationRow& row);
  [[nodiscard]] Result<void> put(const ThreadWaitRow& row);  // replaces by (thread, kind, site)
  [[nodiscard]] Result<void> put(const SampledWaitRow& row);
  [[nodiscard]] Result<void> put(const RegionRow& row);        // replaces by id
  [[nodiscard]] Result<void> put(const ThreadRegionRow& row);  // replaces by thread and region
  [[nodiscard]] Result<void> put(const LookaheadRow& row);
  [[nodiscard]] Result<void> put(const EventRow& row);    // replaces by id
  [[nodiscard]] Result<void> put(const CounterRow& row);  // replaces by id
  [[nodiscard]] Result<void> put(const ReadingRow& row);
  [[nodiscard]] Result<void> put(const CallChainRow& row);
  [[nodiscard]] Result<void> put(const StackRow& row);    // ids are the caller's, ascending from 1
  [[nodiscard]] Result<void> put(const MessageRow& row);  // adds to count for an equal code and text
  [[nodiscard]] Result<void> commit();
  /// Resumes writing after an error. Rows put since the last successful commit() may be lost: the caller puts those
  /// again that other rows refer to (processes, threads, modules, the session).
  void retry();
  /// Ends the file: commits, checkpoints, leaves one file without -wal.
  [[nodiscard]] Result<void> finish();

 private:
  explicit ProfileWriter(std::unique_ptr<WriterState> state);
  template <class Row>
  [[nodiscard]] Result<void> put_one(const Row& row);
  std::unique_ptr<WriterState> state_;
};

}  // namespace crosstalk::profile
