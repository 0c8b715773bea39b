// SPDX-License-Identifier: Apache-2.0
// The processes and threads of a recording, from its records.
//
// Gives ids in the profile at the first sample. A recording of a whole machine has thousands of processes: only the
// sampled ones get into the profile, with all of their threads, and the ones whose code they have from a fork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "collectors/perf_data/records.h"
#include "collectors/perf_import/mappings.h"
#include "profile/writer.h"

namespace crosstalk::perf_import {

/// The row of a thread.
struct Task {
  std::size_t process = 0;
  std::int32_t tid = 0;
  const std::string* name = nullptr;
  std::uint64_t begin_ns = 0, end_ns = 0;  // 0: not known
  std::uint64_t samples = 0, cpu_ns = 0, lost = 0;
  std::optional<ThreadId> id;
};

class Tasks {
 public:
  [[nodiscard]] Result<void> add(const perf_data::Comm& comm, std::uint64_t time_ns);
  [[nodiscard]] Result<void> add(const perf_data::Fork& fork, std::uint64_t time_ns);
  void add(const perf_data::Exit& exit, std::uint64_t time_ns);
  [[nodiscard]] Result<void> add(const perf_data::Mapping& mapping, std::uint64_t time_ns);
  void add(const perf_data::BuildId& id) { build_ids_.add(id, names_); }

  /// The thread that a sample is of, with an id; valid until the next call.
  [[nodiscard]] Result<Task*> sampled(std::int32_t pid, std::int32_t tid);
  /// Returns the number of threads that were put.
  [[nodiscard]] std::uint64_t threads() const { return numbered_threads_; }
  /// Returns the number of files without a known build id, in the processes that were put.
  [[nodiscard]] std::size_t unidentified_files() const { return unidentified_.size(); }
  /// Returns the files without a build id that are no longer those that were recorded, in the processes that were put.
  [[nodiscard]] std::vector<std::string> replaced_files() const;
  /// Adds to the lost samples of a thread, or of the first if the thread is not known.
  void lose(std::int32_t tid, std::uint64_t count);

  /// `of_this_host`: the recording is of this machine, so the files here may be those that were recorded.
  [[nodiscard]] Result<void> put(profile::ProfileWriter& writer, std::uint64_t begin_ns, bool of_this_host);

 private:
  struct Process {
    std::int32_t pid = 0, parent_pid = -1;
    std::uint64_t begin_ns = 0, end_ns = 0;
    std::optional<std::size_t> modules_of;
    CodeMappings mappings;
    std::vector<std::size_t> threads;
    bool sampled = false;
    std::optional<ProcessId> id;
  };

  [[nodiscard]] Result<std::size_t> new_process(std::int32_t pid);
  [[nodiscard]] Result<std::size_t> process_of(std::int32_t pid);
  [[nodiscard]] Result<std::size_t> new_thread(std::size_t process, std::int32_t tid);
  [[nodiscard]] Result<std::size_t> thread_of(std::int32_t pid, std::int32_t tid);
  [[nodiscard]] Result<void> check_room() const;
  [[nodiscard]] Result<void> execute(std::int32_t pid, std::int32_t tid, std::uint64_t time_ns);
  void number_process(std::size_t process);
  void number_the_rest();
  [[nodiscard]] bool is_replaced_here(const CodeMapping& mapping);
  [[nodiscard]] Result<void> put_process(profile::ProfileWriter& writer, std::size_t index, std::uint64_t begin_ns);

  std::vector<Process> processes_;
  std::vector<Task> threads_;
  std::unordered_map<std::int32_t, std::size_t> process_of_pid_, thread_of_tid_;  // the latest of each number
  std::uint32_t numbered_processes_ = 0, numbered_threads_ = 0;
  std::vector<std::size_t> by_id_;  // processes, in the order of their ids
  std::size_t mappings_ = 0;
  bool of_this_host_ = false;
  std::unordered_set<const std::string*> unidentified_;
  std::map<std::tuple<const std::string*, std::uint64_t, std::uint64_t>, bool> replaced_;  // by name and inode
  std::uint64_t lost_of_nobody_ = 0;
  Names names_;
  BuildIds build_ids_;
  ModuleRows module_rows_;
};

}  // namespace crosstalk::perf_import
