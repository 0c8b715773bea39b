// SPDX-License-Identifier: Apache-2.0
// The rows of a profile. Written by ProfileWriter (writer.h), read by ProfileReader (reader.h).
// Times are seconds-free: nanoseconds of CLOCK_MONOTONIC; `Session::begin_ns` is the zero of a report.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/inline_vector.h"
#include "base/registers.h"
#include "profile/arena.h"
#include "profile/records.h"
#include "profile/region_row.h"
#include "profile/watch_trial.h"

namespace crosstalk::profile {

/// Times of accesses to a line in the core's own cache, in picoseconds; 0: not measured.
struct CoreTimes {
  std::uint32_t cycle_ps = 0;
  std::uint32_t locked_ps = 0;   // an atomic read-modify-write, one after another
  std::uint32_t forward_ps = 0;  // from a store to a load of the same word; 1: in no time
};

/// Times that threads ran and waited for a processor. The recorder looks a few times at each thread that lives long
/// enough.
struct ProcessorWaits {
  std::uint32_t threads = 0;  // looked at; 0: nothing is known
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  // ready to run, and no processor was free
};

/// Probes of lines without a result (ProbeCounts in arena.h).
struct SkippedProbes {
  std::uint64_t unreadable = 0, in_handlers = 0, beside_another = 0, went_on = 0;
};

struct Session {
  std::string command;             // as typed, shell-quoted
  std::optional<int> exit_status;  // of the launched command; 128+N for a signal
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;         // last drain, when the recorder was killed
  std::uint64_t begin_unix_ns = 0;  // begin_ns by the wall clock, since 1970 in UTC; 0: not known
  bool complete = false;            // the recorder ended in an orderly way
  std::string source = "clock";     // `imported_source`: perf's recording, with no watches of ours
  std::string source_choice;        // why it is this source: the better ones, with what spoke against each
  std::string method_choice;        // why it is this method (config.method)
  std::string host;                 // uname -n
  std::string kernel;               // uname -r
  std::string architecture;         // uname -m; empty: not known, and x86_64 unless it was imported
  std::string cpu_model;
  std::uint32_t cpus = 0;
  std::uint32_t line_bytes = 64;
  std::string topology;  // Topology::text(); empty: not known
  std::string machine;   // a machine file's text; empty: it was not measured
  CoreTimes core;
  ProcessorWaits waits;
  std::uint64_t memory_bytes = 0;     // arena bytes in use + recorder's peak RSS share
  std::uint64_t recorder_cpu_ns = 0;  // CPU time of the recorder itself, no part of any thread's
  std::string version;                // of crosstalk
  // CPU time of the processes that no thread of the profile has, at least: threads came and went unobserved.
  std::optional<std::uint64_t> unobserved_cpu_ns;
  SkippedProbes skipped_probes;
  WatchTrial watch_trial;  // the self-test of watchpoints at the recording's begin
  SessionConfig config;
};

/// Session::source of a profile imported from a perf.data file.
inline constexpr const char* imported_source = "perf.data";
[[nodiscard]] inline bool is_imported(const Session& session) { return session.source == imported_source; }
/// The settings of an imported session, none of which has a recorder's value. Its profile does not store them.
[[nodiscard]] inline SessionConfig no_settings() {
  SessionConfig config;
  config.period_ns = 0;
  config.budget = 0;
  config.method = Method::none;
  config.watchpoints = 0;
  config.lookahead = 0;
  config.board_slots = 0;
  return config;
}

/// The names in reports and options of `record`.
[[nodiscard]] constexpr const char* name_of(Method method) {
  return method == Method::watch ? "watch" : method == Method::probe ? "probe" : "none";
}
[[nodiscard]] constexpr const char* name_of(Partner partner) {
  switch (partner) {
    case Partner::board:
      return "board";
    case Partner::next_access:
      return "next-access";
    case Partner::next_store:
      return "next-store";
    case Partner::automatic:
      break;
  }
  return "auto";
}
[[nodiscard]] constexpr const char* name_of(SourceKind source) {
  switch (source) {
    case SourceKind::pebs:
      return "pebs";
    case SourceKind::ibs:
      return "ibs";
    case SourceKind::ibs_kmod:
      return "ibs-kmod";
    case SourceKind::counter:
      return "counter";
    case SourceKind::clock:
      break;
  }
  return "clock";
}
/// True if lines were probed instead of watched.
[[nodiscard]] inline bool are_lines_probed(const Session& session) { return session.config.method == Method::probe; }

using EventId = Id<struct EventTag>;          ///< an event in a profile; 0: none is known
using CallChainId = Id<struct CallChainTag>;  ///< a chain of calls in a profile; 0: none

struct ProcessRow {
  ProcessId id;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::string executable;
  std::string command;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;        // 0: not seen to end
  std::optional<int> exit_status;  // known of the launched process only
  bool after_fork = false;
  std::optional<ProcessId> modules_of;             // after fork: the process whose modules it started with
  Observation observation = Observation::unknown;  // not known of what was imported
  std::string unobserved_because;                  // of Observation::none
};

struct ThreadRow {
  ThreadId id;
  ProcessId process;
  std::int32_t tid = 0;
  std::string name;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t stack_low = 0, stack_high = 0, thread_pointer = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t samples = 0, traps = 0, armed = 0, lost = 0;
  std::uint64_t handlers_ns = 0, switches_ns = 0, switches = 0, handler_samples_ns = 0;
  ClockKind clock = ClockKind::automatic;
  std::uint32_t period_us = 0;
  std::uint64_t start_routine = 0;  // code address that it was made to begin at; 0: not known
  // Time on a processor, and time ready to run without one, between the recorder's first and latest look. 0, 0: not
  // known.
  std::uint64_t ran_ns = 0, waited_ns = 0;
};

struct ModuleRow {
  ProcessId process;
  std::uint64_t loaded_ns = 0;
  std::uint64_t unloaded_ns = 0;  // 0: never
  std::uint64_t bias = 0, begin = 0, end = 0;
  std::int64_t tls_offset = 0;
  std::uint64_t tls_size = 0;
  std::string build_id;  // lower-case hex; empty: none
  std::string path;
  bool is_vdso = false;
  std::uint64_t content_hash = 0;  // of a file without a build id (base/file_content.h); 0: not known
  /// The offset in the file of the mapping at `begin`, of what was imported and of what a program mapped itself. The
  /// file's segments give the bias once it is opened; `bias` assumes a file without them.
  std::optional<std::uint64_t> file_offset = {};
};

/// A copy of a code file that could no longer be found at its path: it had been replaced or deleted, or existed in
/// memory only. Modules refer to it by these names.
struct KeptFileRow {
  std::string path, build_id;
  std::uint64_t content_hash = 0;
  std::vector<std::uint8_t> bytes;
};
inline constexpr std::size_t max_kept_file_bytes = std::size_t{256} << 20U;

/// A processor that is not known.
inline constexpr std::uint16_t unknown_cpu = UINT16_MAX;

/// Data that a sample source adds to a clock's. The default means a clock.
struct Measurement {
  SourceKind source = SourceKind::clock;
  WeightUnit unit = WeightUnit::ns;
  std::uint32_t latency_cycles = 0;  // of the access; 0: not known
  std::uint64_t weight = 0;          // in `unit`
  std::uint64_t data_source = 0;     // perf_event's data_src; 0: not known
  bool operator==(const Measurement&) const = default;
};

/// An event that took samples.
struct EventRow {
  EventId id;        // from 1 on, without gaps
  std::string name;  // as the one who recorded called it
  SourceKind source = SourceKind::clock;
  WeightUnit unit = WeightUnit::ns;
  std::uint64_t period = 0;                // in `unit`; 0: it varies, or is not known
  std::uint32_t least_latency_cycles = 0;  // only accesses that took so long are sampled; 0: all are
  bool at_access = false;                  // the sampled instruction is the one that made the access
};

/// True if the processor has dropped samples by their outcome (IBS: those that did not miss L3, or were quick). The
/// remaining ones represent no number of operations.
[[nodiscard]] inline bool is_filtered(const EventRow& event) {
  return event.source == SourceKind::ibs && event.unit == WeightUnit::occurrences;
}

/// User-code addresses, innermost first: the sample's, then those of its callers.
struct CallChainRow {
  CallChainId id;
  std::vector<std::uint64_t> addresses;
};

/// The quantity that a sample represents.
struct Weight {
  std::uint64_t value = 0;
  WeightUnit unit = WeightUnit::ns;
};

struct SampleRow {
  ThreadId thread;
  std::uint64_t time_ns = 0, ip = 0, access_ip = 0, address = 0, cpu_ns = 0;
  WatchId watch;
  StackId stack;
  std::uint32_t previous_handler_ns = 0;  // 0: not known
  std::uint16_t cpu = 0;
  std::uint8_t width = 0;
  AccessKind access = AccessKind::none;
  AddressFrom from = AddressFrom::none;
  std::uint8_t flags = 0;              // SampleFlags
  std::optional<Registers> registers;  // rip is `ip`; absent in the kernel
  Measurement measurement;
  EventId event;
  CallChainId call_chain;  // only in recordings that store call chains themselves
  RegionId region;         // marked by the program, the innermost that the thread was in; 0: none
  /// A clock's samples represent the CPU time since the previous one.
  [[nodiscard]] Weight weight() const {
    return measurement.source == SourceKind::clock ? Weight{cpu_ns, WeightUnit::ns}
                                                   : Weight{measurement.weight, measurement.unit};
  }
  /// The time that the sample represents, ns; 0 if it represents another quantity.
  [[nodiscard]] std::uint64_t time_weight_ns() const {
    return measurement.source == SourceKind::clock || measurement.unit == WeightUnit::cycles ? cpu_ns
           : measurement.unit == WeightUnit::ns                                              ? measurement.weight
                                                                                             : 0;
  }
  /// True if the sample represents time.
  [[nodiscard]] bool is_of_time() const {
    return measurement.source == SourceKind::clock || measurement.unit == WeightUnit::cycles ||
           measurement.unit == WeightUnit::ns;
  }
};

/// The parts of samples to read.
enum class SampleParts : std::uint8_t {
  all,
  accesses,  // all but watch, stack, from and previous_handler_ns, which saves a tenth of the time
};

/// The result of reading a line twice while its sampled thread stood still.
struct ProbedLine {
  std::uint64_t changed = 0;     // bit n: byte n differs
  std::uint32_t gap_ns = 0;      // between the looks
  std::uint64_t value = 0;       // the sampled bytes at the first look,
  std::uint8_t value_bytes = 0;  // as many of them; 0: not known
  bool operator==(const ProbedLine&) const = default;
};

struct WatchRow {
  WatchId id;
  ThreadId thread;  // opened it with a sample
  std::uint64_t time_ns = 0, line = 0;
  InlineVector<WatchWord, max_watch_words> words;
  std::uint32_t threads = 0, armed = 0;
  bool suspected = false;
  std::uint64_t horizon_ns = 0;
  // the sample that opened it, kept here so that samples need no index
  std::uint64_t sample_ip = 0, sample_access_ip = 0, sample_address = 0, sample_cpu_ns = 0;
  std::uint8_t sample_width = 0;
  AccessKind sample_access = AccessKind::none;
  AddressFrom sample_from = AddressFrom::none;
  std::uint8_t sample_flags = 0;
  std::uint16_t sample_cpu = 0;
  StackId sample_stack;
  Measurement sample_measurement;
  [[nodiscard]] Weight sample_weight() const {
    return sample_measurement.source == SourceKind::clock ? Weight{sample_cpu_ns, WeightUnit::ns}
                                                          : Weight{sample_measurement.weight, sample_measurement.unit};
  }
  std::optional<LineState> state;    // of the line while the watch was set up
  std::optional<CloseReason> close;  // absent: still open at the end
  std::uint64_t close_ns = 0;
  std::optional<ProbedLine> probe;  // it was probed, and not watched
};

/// The lowest words of a thread's stack, from rsp upward.
using TrapFrame = std::array<std::uint64_t, trap_frame_words>;

struct TrapRow {
  WatchId watch;
  ThreadId thread;
  std::uint32_t sequence = 0;
  std::uint64_t time_ns = 0, ip = 0;
  std::uint16_t cpu = 0;
  std::uint8_t word = 0;
  bool write_only = false;
  Registers registers;
  StackId stack;
  std::optional<TrapFrame> frame;  // absent for traps that go on with a run
  std::uint64_t line = 0;          // address of the line in the thread's process; 0: that of the watch
  std::optional<LineState> state;  // of the line after the access
};

struct BlockRow {
  ProcessId process;
  std::uint64_t time_ns = 0, begin = 0, bytes = 0, site = 0;
  BlockKind kind = BlockKind::heap;
  StackId stack;
};

/// Memory that processes share, as one of them has mapped it.
struct SharedMappingRow {
  ProcessId process;
  std::uint64_t time_ns = 0, begin = 0, bytes = 0;
  std::uint64_t file_offset = 0;        // of `begin` in what is mapped
  std::uint64_t device = 0, inode = 0;  // of the mapped file, the same in all processes
  std::string name;                     // as /proc/PID/maps has it
};

/// The instructions that a thread was to execute after a sample: see Lookahead in records.h.
struct LookaheadRow {
  ThreadId thread;
  std::uint64_t time_ns = 0, begin = 0;
  std::uint64_t head = 0;  // 0: none
  std::uint32_t instructions = 0, passages = 0, cost_ns = 0;
  LookaheadEnd end = LookaheadEnd::code;
  std::vector<std::uint8_t> branches;  // packed (profile/branch_trace.h)
};

/// A thread made another one; `stack` is the creator's at the time.
struct ThreadCreationRow {
  ThreadId thread;  // the creator
  std::uint64_t time_ns = 0;
  StackId stack;
};

struct StackRow {
  StackId id;
  Registers registers;
  std::vector<std::uint8_t> bytes;  // memory from registers[rsp] upward
};

struct MessageRow {
  std::string code;
  std::string text;
  std::uint64_t count = 1;
};

}  // namespace crosstalk::profile
