// SPDX-License-Identifier: Apache-2.0
// The records that a target writes into its rings, and that the daemon reads.
//
// Passive data, fixed layouts, shared between processes of one build: `arena_version` (arena.h) changes with
// any of them. Times are CLOCK_MONOTONIC nanoseconds; addresses are the target's virtual addresses; sizes
// are bytes. A record starts on 8 bytes; its `size` counts the header and any tail (text, stack bytes).
// A reader copies a header before it trusts it: the other side may be corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/registers.h"

namespace crosstalk::profile {

enum class RecordType : std::uint16_t {
  padding = 0,  // fills the ring up to its end; only a header (8 bytes) is guaranteed
  process_start = 1,
  process_end = 2,
  thread_start = 3,
  thread_end = 4,
  module_load = 5,
  module_unload = 6,
  sample = 7,
  watch_open = 8,
  watch_trap = 9,
  watch_close = 10,
  block = 11,
  message = 12,
  shared_mapping = 13,
  lookahead = 14,
  thread_creation = 15,
  counter_reading = 16,  // counter_reading.h
  line_probe = 17,
  sampled_wait = 18,
};

struct RecordHeader {
  RecordType type = RecordType::padding;
  std::uint16_t size = 0;  // bytes, header included, a multiple of 8
  std::uint32_t tail = 0;  // bytes of tail in use after the fixed part
};
static_assert(sizeof(RecordHeader) == 8);

/// The way in which a process was observed.
enum class Observation : std::uint32_t {
  unknown = 0,
  preloaded = 1,  // by the library, which was in it from its start
  outside = 2,    // by events of the kernel, nothing being in it
  injected = 3,   // by the library, which was brought in while it ran
  none = 4,       // not at all
};

/// A process (or a new program in it, after exec) has attached to the arena. Tail: executable path, NUL,
/// command line with NULs between arguments.
struct ProcessStart {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::uint32_t after_fork = 0;      // 1: made by fork (no exec), shares its parent's modules
  std::uint32_t registers_free = 0;  // debug registers this process could get, 0..4
  Observation observation = Observation::unknown;
  std::uint32_t own_totals = 0;  // 1: its threads' totals begin with this exec; 0: with the threads
};

/// A process ended normally (exit or exec seen from inside). A killed process writes none.
struct ProcessEnd {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::int32_t pid = 0;
  std::uint32_t exec = 0;  // 1: about to exec another program
};

/// First record of a thread in its ring. Tail: its start routine, 8 bytes, if known.
struct ThreadStart {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint64_t stack_low = 0;  // [low, high) of its stack; 0, 0 when unknown
  std::uint64_t stack_high = 0;
  std::uint64_t thread_pointer = 0;  // fs base; 0 when unknown
  char name[16] = {};
};

struct ThreadEnd {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t cpu_ns = 0;  // CPU time of the thread's whole life (CLOCK_THREAD_CPUTIME_ID)
  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;
  char name[16] = {};  // its last one; empty when it could not say
};

/// A module (executable, shared library, vdso) is mapped. Tail: its path (empty for the vdso).
struct ModuleLoad {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t bias = 0;   // address at run time - address in the file's headers (dlpi_addr)
  std::uint64_t begin = 0;  // [begin, end): all its PT_LOAD segments, at run time
  std::uint64_t end = 0;
  std::int64_t tls_offset = 0;  // start of its TLS block - thread pointer, for static TLS
  std::uint64_t tls_size = 0;   // 0: none, or not static
  std::uint8_t build_id[20] = {};
  std::uint8_t build_id_size = 0;  // 0: none
  std::uint8_t is_vdso = 0;
  std::uint8_t is_part = 0;  // of a file, mapped by the program itself; `bias` is only a guess
  std::uint8_t reserved[1] = {};
  std::uint64_t file_offset = 0;  // of a part: where in the file it begins
};

struct ModuleUnload {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Origin of a sample's data address.
enum class AddressFrom : std::uint8_t {
  none = 0,      // not found
  retired = 1,   // the access just before the interrupted instruction: the one that took the time
  next = 2,      // the next access that the thread will make
  hardware = 3,  // a PMU said so
};

enum SampleFlags : std::uint8_t {
  sample_in_kernel = 1,  // the clock ran out inside the kernel; ip is the instruction after the system call
  sample_on_stack = 2,   // data address on the thread's own stack
  sample_suspected = 4,  // the board knew the line from another thread
  sample_armed = 8,      // this sample opened a watch: see the watch_open with the same watch id
  sample_eligible = 16,  // the sample could have opened a watch: it counts in its stratum
  sample_waiting = 32,   // the thread was in a wait that is measured (wait_table.h), on the processor
};
inline constexpr std::uint8_t all_sample_flags =
    sample_in_kernel | sample_on_stack | sample_suspected | sample_armed | sample_eligible | sample_waiting;

/// The source of a sample.
enum class SourceKind : std::uint8_t {
  clock = 0,     // the thread's clock of CPU time
  pebs = 1,      // Intel's precise events
  ibs = 2,       // AMD's instruction-based sampling, through the kernel
  ibs_kmod = 3,  // the same, through our kernel module
  counter = 4,   // any other event of perf, whose samples point to somewhere behind what it counts
};

/// The unit of a sample's weight. Weights of different units are never added.
enum class WeightUnit : std::uint8_t {
  ns = 0,
  accesses = 1,
  micro_ops = 2,
  cycles = 3,       // of the processor, at whatever frequency it ran
  occurrences = 4,  // of the event that took the sample, where it is none of these
};

/// One sample of a source: an access of a thread, and the quantity that it represents.
struct Sample {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t ip = 0;                   // the interrupted instruction
  std::uint64_t access_ip = 0;            // the instruction that `address` belongs to; 0: none
  std::uint64_t address = 0;              // data address; 0: none
  std::uint64_t cpu_ns = 0;               // thread CPU time since the thread's previous sample (or its start)
  std::uint32_t watch = 0;                // the watch that it opened; 0: none
  std::uint32_t previous_handler_ns = 0;  // CPU time of the handler of the previous sample, without watching; 0: none
  std::uint16_t cpu = 0;                  // the processor it ran on
  std::uint8_t width = 0;                 // bytes accessed; 0: unknown
  AccessKind access = AccessKind::none;
  AddressFrom from = AddressFrom::none;
  std::uint8_t flags = 0;         // SampleFlags
  std::uint8_t has_stack = 0;     // 1: a StackSlice and its bytes follow as tail
  std::uint8_t event = 0;         // the memory event that took it, by its number in the session; 0: it was the clock
  std::uint64_t weight = 0;       // how much it stands for, in `weight_unit`; a clock's is `cpu_ns`, whatever is here
  std::uint64_t data_source = 0;  // perf_event's data_src; 0: unknown
  std::uint32_t latency_cycles = 0;  // of the access; 0: unknown
  SourceKind source = SourceKind::clock;
  WeightUnit weight_unit = WeightUnit::ns;
  std::uint16_t region = 0;  // innermost one, by its number in ThreadRegions (region_table.h); 0: none
  Registers registers;       // interrupted; rip is `ip` again
};

/// A slice of a thread's stack with the registers to unwind it. In a tail, `bytes` bytes of stack
/// memory starting at registers[rsp] follow.
struct StackSlice {
  Registers registers;
  std::uint64_t bytes = 0;
};

inline constexpr std::size_t max_watch_words = 4;

/// A watch continues for this long after another thread has first accessed the line, even beyond its horizon. A trap
/// that moves the watchpoints of other threads takes half of this time.
inline constexpr std::uint64_t verdict_ns = 400'000;

/// One watched piece of a line.
struct WatchWord {
  std::uint8_t offset = 0;  // in the line
  std::uint8_t length = 0;  // 1, 2, 4 or 8 bytes; 0: unused
  std::uint16_t reserved = 0;
  float probability = 1;  // of choosing this word, given the sample
};

/// The values of a line's eight words, as a hash of 16 bits each: enough to tell whether a word has changed between two
/// moments.
struct LineState {
  static constexpr std::uint32_t words = 8;
  std::uint16_t word[words] = {};
  bool operator==(const LineState&) const = default;
};

/// After a sample, a line is watched in the other threads of its process and, if processes share its memory, in the
/// threads of those (docs/ring-records.md). Watches observe runs of accesses: a thread's word watch goes read+write ->
/// (its first trap) write only -> (its next trap) off, and returns to read+write when another thread traps on the line.
/// So the trap sequence is the sequence of the line's owners, with each owner's first access and first store.
struct WatchOpen {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t line = 0;   // address of the line
  std::uint32_t watch = 0;  // unique within the arena, > 0
  std::uint32_t words = 0;
  WatchWord word[max_watch_words];
  std::uint32_t threads = 0;    // that can be armed, and the sampled one
  std::uint32_t armed = 0;      // of the others, how many were watched
  std::uint32_t suspected = 0;  // 1: the board named the partner's word
  std::uint32_t has_state = 0;  // 1: `state` was read
  std::uint64_t horizon_ns = 0;
  LineState state;  // while the watch was set up
};

/// Words of 8 bytes of a thread's stack from rsp upward: compilers spill registers there.
inline constexpr std::size_t trap_frame_words = 16;

/// A watched access happened; a trap is reported after its instruction.
struct WatchTrap {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t ip = 0;  // the instruction after the access
  std::uint32_t watch = 0;
  std::uint32_t sequence = 0;  // order of this trap among those of its watch, from 0, over all threads
  std::uint16_t cpu = 0;
  std::uint8_t word = 0;        // index into WatchOpen::word
  std::uint8_t write_only = 0;  // 1: the watch was for stores only, so this was a store
  std::uint8_t has_stack = 0;   // 1: `bytes` of stack follow the registers
  std::uint8_t has_frame = 0;   // 1: `frame` was read; not if the trap continues its owner's run (write_only)
  std::uint8_t has_state = 0;   // 1: `state` was read
  std::uint8_t reserved = 0;
  std::uint64_t line = 0;  // address of the line in the trapped thread's process; 0: as in WatchOpen
  LineState state;         // after the access
  std::uint64_t frame[trap_frame_words] = {};
  StackSlice stack;  // registers always; stack bytes as tail when has_stack
};

/// A sampled thread stood still while its line was read twice: other threads stored the bytes that differ. Replaces a
/// watch, and shares the numbering of watches.
struct LineProbe {
  RecordHeader header;
  std::uint64_t time_ns = 0;    // the sample's
  std::uint64_t line = 0;       // address of the line
  std::uint64_t changed = 0;    // bit n: byte n of the line differs between the two looks
  std::uint32_t watch = 0;      // unique within the arena, > 0
  std::uint32_t gap_ns = 0;     // from the first look to the second
  std::uint32_t threads = 0;    // threads of the process alive at the time, the sampled one included
  std::uint32_t suspected = 0;  // 1: the board knew the line from another thread
  std::uint64_t value = 0;      // the sampled bytes at the first look, as far as they lie in the line
  std::uint32_t value_bytes = 0;
  std::uint32_t reserved = 0;
};

enum class CloseReason : std::uint32_t { horizon = 1, full = 2, stopped = 4 };

struct WatchClose {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint32_t watch = 0;
  CloseReason reason = CloseReason::horizon;
  std::uint32_t traps = 0;
  std::uint32_t reserved = 0;
};

enum class BlockKind : std::uint32_t { heap = 1, mapping = 2 };

/// A memory block that a sample or trap touched, with its allocation site. Written once for each block.
struct Block {
  RecordHeader header;
  std::uint64_t time_ns = 0;  // when it was first seen in a sample; it was allocated before
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t site = 0;  // return address of the allocating call
  BlockKind kind = BlockKind::heap;
  std::uint32_t reserved = 0;
};

/// Memory that processes share (mmap with MAP_SHARED, or a System V segment), as the writing process maps it. Written
/// once for each mapping, when a sample first touches it. Tail: its name in /proc/PID/maps.
struct SharedMapping {
  RecordHeader header;
  std::uint64_t time_ns = 0;  // when it was first seen in a sample; it was mapped before
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;  // of `begin` in what is mapped
  // Device and inode of the mapped file, the same in all processes. Memory without a file has them, too.
  std::uint64_t device = 0;  // major << 32 | minor
  std::uint64_t inode = 0;
};

/// The reason why a lookahead ended.
enum class LookaheadEnd : std::uint8_t {
  whole = 1,   // at its head: all iterations are complete
  length = 2,  // it was too long
  value = 3,   // the way, or where a store goes, depends on what is not interpreted
  code = 4,    // an instruction is not interpreted: system calls, string instructions
  room = 5,    // it touched memory, or turned, at too many places
};

/// The instructions that the thread will execute after a sample, interpreted ahead
/// (collectors/access/lookahead.h). Tail: the path (profile/branch_trace.h).
struct Lookahead {
  RecordHeader header;
  std::uint64_t time_ns = 0;  // the sample's
  std::uint64_t begin = 0;    // the sample's instruction, the first that is interpreted
  std::uint64_t head = 0;     // target of the first jump back; 0: none was taken
  std::uint32_t instructions = 0;
  std::uint32_t passages = 0;  // of the head
  std::uint32_t cost_ns = 0;   // CPU time of the thread that it took
  LookaheadEnd end = LookaheadEnd::code;
  std::uint8_t reserved[3] = {};
};

/// The thread calls pthread_create. Its frames hold the variables that it shares with the new thread and later waits
/// for. Not written for every call: see collectors/in_target/threads/creations.h. Tail: the stack's bytes.
struct ThreadCreation {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  StackSlice stack;
};

/// The looks that a SampledWait is about.
enum class LookKind : std::uint8_t {
  all = 0,      // all of them
  asleep = 1,   // those that found the thread asleep, in whatever
  waiting = 2,  // of these, those in one call that waits on a futex
};

/// Looks at a thread from outside, at moments drawn by chance. Each stands for the time since the look before. Tail:
/// the stack's bytes.
struct SampledWait {
  RecordHeader header;
  std::uint64_t time_ns = 0;  // of the last look at the thread
  std::uint64_t futex = 0;    // its address; 0: not known, or there is none
  std::uint64_t looked_ns = 0;
  /// Uncertainty, ns: the root of the sum of t^2 over the looks before which the thread ran. The time of the others is
  /// exact.
  std::uint64_t spread_ns = 0;
  std::int64_t slept_ns = 0;  // of all looks: of `looked_ns`, the time asleep by the scheduler, which is a tick behind
  std::uint32_t looks = 0;
  LookKind kind = LookKind::all;
  std::uint8_t slept_known = 0;
  std::uint8_t reserved[2] = {};
  StackSlice stack;  // of waiting: rip, rsp and the registers of the call's arguments; the others are not known
};

/// A message for the user. Tail: text, one line.
struct Message {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  char code[32] = {};  // stable, snake_case
};

static_assert(sizeof(Sample) == 88 + sizeof(Registers));
static_assert(sizeof(WatchOpen) == 104);
static_assert(std::is_trivially_copyable_v<Sample> && std::is_trivially_copyable_v<WatchTrap>);

}  // namespace crosstalk::profile
