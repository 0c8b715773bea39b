// SPDX-License-Identifier: Apache-2.0
// From the records of rings to the rows of a profile. Knows no ring, no arena and no kernel.
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
#include "daemon/watch_joiner.h"
#include "profile/counter_reading.h"
#include "profile/ring_reader.h"

namespace crosstalk::daemon {

/// Interprets the records of all slots. Use, for each pass over the rings: open_slot() for slots that went
/// live; announce() for every record of the pass; then interpret() for every record of the pass, slot by
/// slot; then close_slot() for slots whose thread is gone. Not thread-safe.
class RecordDecoder {
 public:
  /// Completes a module that a process has mapped by what identifies its file (module_files.h).
  using Identify = std::function<void(std::int32_t pid, profile::ModuleRow& row)>;
  RecordDecoder(RowSink& sink, std::uint32_t slot_count, Identify identify = {});

  void open_slot(std::uint32_t slot, std::int32_t pid, std::int32_t tid, std::uint64_t now_ns);
  /// Takes process_start records, which others of the same pass may need; ignores all others. They take effect
  /// in order of their times with the first interpret() after them: a pass may hold several of one pid, and
  /// a parent's beside its child's, in slots of any order.
  void announce(std::uint32_t slot, const profile::RecordView& record);
  /// A record that cannot be true is dropped and counted in malformed().
  void interpret(std::uint32_t slot, const profile::RecordView& record);
  /// As the slot counts. A thread that has executed another program counts on: what it had counted by then is known
  /// from its former slot, and until that is told the totals of the new one are left as they are.
  void update_totals(std::uint32_t slot, SlotTotals totals);
  /// Of the threads' CPU time, what the functions took that stand in for the program's, by the samples there.
  [[nodiscard]] std::uint64_t stand_ins_ns() const { return stand_ins_ns_; }
  void update_processor_times(std::uint32_t slot, const SchedulerTimes& times);
  /// What the slot's thread has waited so far (wait_rows.h).
  void update_waits(std::uint32_t slot, std::vector<profile::ThreadWaitRow> rows);
  /// The regions that the slot's thread marks (region_table.h), before samples that were taken in them; and its sums.
  void learn_regions(std::uint32_t slot, const RegionsSeen& seen) { regions_.learn(slot, seen); }
  void update_regions(std::uint32_t slot, const RegionsSeen& seen);
  /// The slot's thread has this name now.
  void rename(std::uint32_t slot, const std::string& name);
  /// The file that the slot's process executes; empty when that is not known.
  [[nodiscard]] std::string executable(std::uint32_t slot) const;
  void close_slot(std::uint32_t slot, std::uint64_t now_ns);
  /// True when the slot's process is not the youngest of its pid any more: an exec has replaced it.
  [[nodiscard]] bool superseded(std::uint32_t slot) const;

  void add_unobserved(profile::ProcessRow row) { processes_table_.add_unobserved(std::move(row)); }
  void end_process(std::int32_t pid, std::uint64_t time_ns);
  void set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns);

  /// Makes all rows that have changed known to the sink; before each commit. Watches that wait for records
  /// longer than `patience_ns` are settled.
  void flush(std::uint64_t now_ns);
  /// Puts again what other rows refer to: rows since some time may be lost.
  void put_everything();
  /// Forgets what is over and has been put for good: after a commit that did not fail.
  void evict(std::uint64_t now_ns);
  /// The end of the session.
  void finish();

  [[nodiscard]] const ProcessTable& process_table() const { return processes_table_; }
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t traps() const { return traps_; }
  [[nodiscard]] std::uint64_t watches() const { return watches_.opened(); }

  static constexpr std::uint64_t patience_ns = 5'000'000'000;
  /// What a process wrote, and what its children say of it, has come so long after its end.
  static constexpr std::uint64_t memory_ns = 5'000'000'000;

 private:
  struct Slot {
    bool open = false;
    std::int32_t pid = 0, tid = 0;
    std::uint64_t since_ns = 0;
    std::optional<ThreadId> thread;
    std::optional<ProcessId> process;
    std::optional<std::uint64_t> waits;    // how often its thread had waited when that was put
    bool announced = false;                // `process` is what a process_start in this very ring said
    std::optional<ProcessId> executed_by;  // the program before: the kernel's clocks of the thread go on from there
  };

  /// What a program's thread had used when it executed the next one.
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
  void heed_announcements();
  ThreadId thread_of(Slot& slot, std::uint64_t time_ns);
  ProcessId process_of(Slot& slot, std::uint64_t time_ns);
  void settle_process(Slot& slot);
  void note_executing(ProcessId process);
  void carry(const Slot& slot, const SlotTotals& totals);
  [[nodiscard]] std::string said_in(const Slot& slot, std::string text) const;
  StackId put_stack(const Registers& registers, std::span<const std::byte> bytes);

  void take(Slot& slot, const profile::RecordView& view, const profile::ThreadStart& record);
  void take(Slot& slot, const profile::ThreadEnd& record);
  void take(Slot& slot, const profile::ProcessEnd& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::ModuleLoad& record);
  void take(Slot& slot, const profile::ModuleUnload& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::Sample& record);
  bool take(Slot& slot, const profile::WatchOpen& record);
  bool take(Slot& slot, const profile::LineProbe& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::WatchTrap& record);
  bool take(Slot& slot, const profile::Block& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::SharedMapping& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::Lookahead& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::ThreadCreation& record);
  bool take(Slot& slot, const profile::RecordView& view, const profile::CounterReading& record);
  void take(Slot& slot, const profile::RecordView& view, const profile::Message& record);
  bool dispatch(Slot& slot, const profile::RecordView& record);

  RowSink* sink_;
  Identify identify_;
  ProcessTable processes_table_;
  WatchJoiner watches_;
  RegionTable regions_;
  std::vector<Slot> slots_;
  std::vector<Announcement> announcements_;
  std::unordered_map<std::uint32_t, Carried> carried_;  // by process
  ModuleTable modules_;
  profile::StackRow stack_;  // its buffer is used again
  std::uint32_t last_stack_ = 0;
  std::string first_program_;  // of the first process; empty: there was none yet
  std::uint64_t malformed_ = 0, samples_ = 0, stand_ins_ns_ = 0, traps_ = 0;
};

}  // namespace crosstalk::daemon
