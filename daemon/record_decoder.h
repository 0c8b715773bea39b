// SPDX-License-Identifier: Apache-2.0
// Decodes ring records into the rows of a profile. Needs no arena and no kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/module_table.h"
#include "daemon/process_table.h"
#include "daemon/region_table.h"
#include "daemon/row_sink.h"
#include "daemon/scheduler_times.h"
#include "daemon/slot_table.h"
#include "daemon/told_once.h"
#include "daemon/watch_joiner.h"
#include "profile/counter_reading.h"
#include "profile/ring_reader.h"

namespace crosstalk::daemon {

/// Interprets the records of all slots. For each pass over the rings, call
///   1. open_slot() for slots that went live,
///   2. announce() for every record of the pass,
///   3. decode() for every record, slot by slot,
///   4. close_slot() for slots whose thread is gone.
/// Not thread-safe.
class RecordDecoder {
 public:
  /// Adds the identity of the file to a module that a process has mapped (module_files.h).
  using Identify = std::function<void(std::int32_t pid, profile::ModuleRow& row)>;
  explicit RecordDecoder(RowSink& sink, Identify identify = {});

  void open_slot(std::uint32_t slot, std::int32_t pid, std::int32_t tid, std::uint64_t now_ns);
  /// Takes process_start records, which other records of the pass may need; ignores the rest. decode()
  /// applies them in order of time: a pass may hold several of one pid, or a parent's and its child's, and slots have
  /// no order.
  void announce(std::uint32_t slot, const profile::RecordView& record);
  /// Interprets a record. Drops an impossible one and counts it in malformed().
  void decode(std::uint32_t slot, const profile::RecordView& record);
  /// Takes over the slot's counters. After an exec the kernel continues to count from the former program's, so these
  /// are subtracted; nothing changes until they are known.
  void update_totals(std::uint32_t slot, SlotTotals totals);
  /// Returns the CPU time of the samples in our stand-ins, ns.
  [[nodiscard]] std::uint64_t stand_ins_ns() const { return modules_.collector_ns(); }
  void update_processor_times(std::uint32_t slot, const SchedulerTimes& times);
  /// Updates the waits of the slot's thread so far (wait_rows.h).
  void update_waits(std::uint32_t slot, std::vector<profile::ThreadWaitRow> rows);
  /// Learns the regions that the slot's thread marks (region_table.h); call it before interpreting samples in them.
  void learn_regions(std::uint32_t slot, const RegionsSeen& seen) { regions_.learn(slot, seen); }
  void update_regions(std::uint32_t slot, const RegionsSeen& seen);
  /// Renames the slot's thread.
  void rename(std::uint32_t slot, const std::string& name);
  /// Returns the file that the slot's process executes; empty if unknown.
  [[nodiscard]] std::string executable(std::uint32_t slot) const;
  void close_slot(std::uint32_t slot, std::uint64_t now_ns);
  /// True if an exec has replaced the slot's process.
  [[nodiscard]] bool superseded(std::uint32_t slot) const;

  void add_unobserved(profile::ProcessRow row) { processes_table_.add_unobserved(std::move(row)); }
  void end_process(std::int32_t pid, std::uint64_t time_ns);
  void set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns);

  /// Puts all changed rows into the sink; call it before each commit. Gives up on records of watches that are
  /// missing for longer than `patience_ns`.
  void flush(std::uint64_t now_ns);
  /// Puts the rows that other rows refer to again. Call it if rows may have been lost.
  void put_everything();
  /// Keeps what begin_file() needs from now on.
  void keep_for_later_files() { told_.emplace(); }
  /// Puts into `file` all rows of the living that later rows may refer to: processes, threads, modules, regions, and
  /// what collectors tell only once. Call it after flush() and keep_for_later_files().
  void begin_file(RowSink& file);
  /// Calls `visit(const profile::ModuleRow&)` for each module that a living process has mapped.
  template <class Visit>
  void for_each_module(Visit visit) const {
    for (const ProcessId process : processes_table_.living()) {
      for (const profile::ModuleRow& row : modules_.present(process)) {
        visit(row);
      }
    }
  }
  /// Frees the state of ended processes and threads. Call it after a commit that did not fail.
  void evict(std::uint64_t now_ns);
  /// Ends the session.
  void finish();

  [[nodiscard]] const ProcessTable& process_table() const { return processes_table_; }
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t traps() const { return traps_; }
  [[nodiscard]] std::uint64_t watches() const { return watches_.opened(); }

  static constexpr std::uint64_t patience_ns = 5'000'000'000;
  /// Records of a process, or of its children about it, arrive within this time of its end.
  static constexpr std::uint64_t remember_ended_ns = 5'000'000'000;

 private:
  struct Slot {
    bool open = false;
    std::uint32_t index = 0;
    std::int32_t pid = 0, tid = 0;
    std::uint64_t since_ns = 0;
    std::optional<ThreadId> thread;
    std::optional<ProcessId> process;
    std::optional<std::uint64_t> waits;    // the thread's number of waits when last put
    bool announced = false;                // `process` comes from a process_start in this very ring
    std::optional<ProcessId> executed_by;  // the previous program: the kernel's clocks of the thread continue from it
  };

  /// Totals of a program's thread at its exec.
  struct Carried {
    std::optional<ThreadId> thread;
    bool known = false;
    std::uint64_t cpu_ns = 0, switches = 0;
  };

  struct Announcement {
    std::uint32_t slot = 0;
    profile::ProcessStart start;
    std::string executable, command;
  };
  void handle_announcements();
  ThreadId thread_of(Slot& slot, std::uint64_t time_ns);
  ProcessId process_of(Slot& slot, std::uint64_t time_ns);
  void settle_process(Slot& slot);
  void note_executing(ProcessId process);
  void carry(const Slot& slot, const SlotTotals& totals);
  [[nodiscard]] std::string said_in(const Slot& slot, std::string text) const;
  StackId put_stack(const Registers& registers, std::span<const std::byte> bytes);

  void handle(Slot& slot, const profile::RecordView& view, const profile::ThreadStart& record);
  void handle(Slot& slot, const profile::ThreadEnd& record);
  void handle(Slot& slot, const profile::ProcessEnd& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::ModuleLoad& record);
  void handle(Slot& slot, const profile::ModuleUnload& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::Sample& record);
  bool handle(Slot& slot, const profile::WatchOpen& record);
  bool handle(Slot& slot, const profile::LineProbe& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::WatchTrap& record);
  bool handle(Slot& slot, const profile::Block& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::SharedMapping& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::Lookahead& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::ThreadCreation& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::CounterReading& record);
  bool handle(Slot& slot, const profile::RecordView& view, const profile::SampledWait& record);
  void handle(Slot& slot, const profile::RecordView& view, const profile::Message& record);
  bool dispatch(Slot& slot, const profile::RecordView& record);

  RowSink* sink_;
  Identify identify_;
  ProcessTable processes_table_;
  WatchJoiner watches_;
  RegionTable regions_;
  SlotTable<Slot> slots_;
  std::vector<Announcement> announcements_;
  std::unordered_map<std::uint32_t, Carried> carried_;  // by process
  ModuleTable modules_;
  std::optional<ToldOnce> told_;  // nullopt: the recording has one file
  profile::StackRow stack_;       // its buffer is used again
  std::uint32_t last_stack_ = 0;
  std::string first_program_;  // the first process's; empty: none yet
  std::uint64_t malformed_ = 0, samples_ = 0, traps_ = 0;
};

}  // namespace crosstalk::daemon
