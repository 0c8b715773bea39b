// SPDX-License-Identifier: Apache-2.0
// The result of attribution: one model for all views and formats of a report. Its names follow the JSON contract
// (docs/report-json.md). Times are seconds, sizes bytes, shares fractions of 1. Unknown values are absent (nullopt),
// never 0, and a warning says why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attribution/model/memory_model.h"
#include "attribution/model/undetected.h"
#include "base/ids.h"
#include "models/cycle_accounting.h"
#include "profile/reader.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

struct CounterSummary;  // counters/counter_rates.h
struct LoopFigures;     // busy/loop_figures.h
struct WeightedStacks;  // stack_model.h

struct Interval {
  double low = 0, high = 0;
};  // 95 %

/// An amount of communication of one sort (true or false sharing).
struct Amount {
  std::optional<double> count;  // estimated communications
  std::optional<Interval> count_ci95;
  std::string count_unknown;     // why there is no count; empty when there is
  std::optional<double> cost_s;  // thread time spent in communicating accesses
  std::optional<Interval> cost_ci95;
  std::optional<double> gain_s;  // of cost_s, what would be saved if the lines no longer moved (estimate/gain.h)
  std::optional<Interval> gain_ci95;
  double detections = 0;           // weighted sum of what was seen; the raw evidence
  std::uint64_t seen = 0;          // communications seen by watchpoints, unweighted
  bool one_processor = false;      // all of it was between threads on one processor: no line had to move
  std::optional<double> payers_s;  // CPU time of the threads that pay for it; no more can be gained
};

struct Cell {
  std::uint32_t producer = 0, consumer = 0;  // thread indices (or CPU numbers); never equal
  Amount true_sharing, false_sharing;
  [[nodiscard]] double cost() const { return true_sharing.cost_s.value_or(0) + false_sharing.cost_s.value_or(0); }
  [[nodiscard]] double detections() const { return true_sharing.detections + false_sharing.detections; }
};
/// Both sorts together, or several rows. Adds intervals end by end, which makes them wider than necessary. The gain is
/// at most the time of the paying threads, if both sorts know it. A sort that is unknown because some accesses go
/// unseen adds nothing to one that was seen.
struct Sum {
  double cost_s = 0;
  std::optional<Interval> cost_ci95;
  std::optional<double> gain_s;
  std::optional<Interval> gain_ci95;
  bool one_processor = false;  // as in Amount, of all that was seen
};
[[nodiscard]] Sum sum_of(const Amount& a, const Amount& b);
/// The gain that reports state: the likely one, or an upper limit. It never exceeds its cost.
struct SaidGain {
  double seconds = 0;
  bool at_most = false;
};
/// nullopt: nothing is known of it. 0: there is none.
[[nodiscard]] std::optional<SaidGain> said_gain(const Sum& sum);
/// Ordered by (producer, consumer). Lists only pairs that communicate.
using Matrix = std::vector<Cell>;

/// The role of a line or an object for the threads that exchange it.
enum class SharingKind : std::uint8_t {
  false_sharing,
  true_sharing,
  shared_counter,
  lock,
  barrier,
  condition,
  spin,
  queue,
  reference_count,
  runtime,
  fetch_add,
};
inline constexpr std::size_t sharing_kinds = 11;
struct KindOf {
  SharingKind kind = SharingKind::true_sharing;
  std::optional<SharingKind> perhaps;  // another kind that fits at least a quarter of it
};
enum class Role { producer, consumer };
struct LineRow {
  std::string file;  // of the innermost code that is the program's own
  std::uint32_t line = 0;
  std::string function;
  Role role = Role::consumer;
  Matrix cells;
  double cost_s = 0;
  std::vector<CallPath> call_paths;              // heaviest first
  std::string through = {};                      // the function called, if the access is in a library; else empty
  Amount true_sharing = {}, false_sharing = {};  // of all pairs
  std::string module = {};                       // path of the line's code; empty: not known
  bool caller_known = true;                      // false: the line is a library's, and who called it is not known
};
/// A pair of source lines that exchange lines of memory. Both ends are spelled out, because indices into
/// Communication::lines would fix its order.
struct LinePair {
  std::string producer_file;
  std::uint32_t producer_line = 0;
  std::string producer_function;
  std::string consumer_file;
  std::uint32_t consumer_line = 0;
  std::string consumer_function;
  std::string object;
  Matrix cells;
  double cost_s = 0;
  std::string producer_through = {}, consumer_through = {};
  Amount true_sharing = {}, false_sharing = {};
  std::string producer_module = {}, consumer_module = {};
  bool producer_caller_known = true, consumer_caller_known = true;
};

struct OffsetRow {
  std::uint32_t thread = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint64_t loads = 0, stores = 0;
  std::string field = {}, type = {};  // at the offset; empty: not known
  std::uint64_t field_begin = 0;      // in the object
};                                    // samples and traps seen
/// A field by which threads wait for each other.
struct SyncField {
  std::string field;
  SharingKind kind = SharingKind::lock;
  double cost_s = 0;
};
enum class ObjectKind { global, heap, stack, tls, shared, unknown };
struct ObjectRow {
  std::string name;
  ObjectKind kind = ObjectKind::unknown;
  std::optional<std::uint64_t> size;
  std::string field;         // the field or index with the most communication; empty: none
  std::string allocated_at;  // "file:line function" of the allocation; empty: not allocated
  std::vector<symbolizer::Frame> allocation_path;
  Matrix cells;
  std::vector<OffsetRow> offsets;
  double cost_s = 0;
  Amount true_sharing = {}, false_sharing = {};
  KindOf sharing = {};
  std::string place = {};  // the end of `name`, behind the type: "#3 of 40 allocated at a.cpp:6 in main"; may be empty
  std::string site = {};   // the common name of the allocation site's blocks, if the row has only some; else empty
  std::uint64_t blocks = 0;  // heap blocks that the row is of; 0: of none
  /// If several fields of the object are locks, condition variables or barriers of a library: each of them, most cost
  /// first.
  std::vector<SyncField> sync_fields = {};
};

/// A rate of a loop, per second of CPU time in it and in functions that it calls.
struct Rate {
  std::optional<double> per_s;
  std::optional<Interval> ci95;
  std::string unknown;           // why there is none; empty when there is
  std::uint64_t lookaheads = 0;  // evidence of its amount an iteration; 0: the code alone
  bool counted = false;          // by hardware counters: it rests on neither
};
struct LoopRates {
  Rate iterations, instructions, flops, loads, stores, bytes;
  std::uint64_t steps = 0;     // pairs of samples that the iterations rest on
  double in_callees = 0;       // part of the time of steps that was spent in what the loop calls
  bool through_outer = false;  // from the counter of a loop around and the iterations of a visit
};

struct LoopThread {
  std::uint32_t thread = 0;
  double cpu_s = 0, self_s = 0;
  double waiting_s = 0;  // of cpu_s, in waits for other threads that are measured
  double kernel_s = 0;   // of cpu_s, elsewhere in the kernel
  /// This thread's iterations per second of its CPU time in the loop; absent: not known.
  std::optional<double> iterations_per_s = {};
  std::optional<Interval> iterations_ci95 = {};
};
/// Waits for other threads, asleep or not, from the call to its return.
struct Waited {
  double lock_s = 0, barrier_s = 0, condition_s = 0;
  std::uint64_t count = 0;  // waits; 0 if `sampled`
  bool sampled = false;     // from outside: only the time asleep, by looks at it
  void add(profile::WaitClass what, double seconds) {
    (what == profile::WaitClass::lock      ? lock_s
     : what == profile::WaitClass::barrier ? barrier_s
                                           : condition_s) += seconds;
  }
  [[nodiscard]] double total() const { return lock_s + barrier_s + condition_s; }
};
struct LoopRow {
  std::uint32_t id = 0;
  std::optional<std::uint32_t> parent;
  std::string function, file;
  std::uint32_t line_begin = 0, line_end = 0, depth = 1;
  double cpu_s = 0, self_s = 0, share = 0;
  Interval share_ci95;
  std::string module;
  std::vector<LoopThread> threads;
  std::uint32_t module_file = 0;  // of its header: index into the profile's files, and module address
  std::uint64_t header = 0;
  LoopRates rates{};
  std::shared_ptr<const LoopFigures> figures{};  // null: of loops that take less than a thousandth of the time
  std::optional<Waited> waited{};  // in calls from it; little of that is in cpu_s. Absent: no wait was measured
  std::uint64_t samples = 0;       // evidence of cpu_s
  double kernel_s = 0;             // of cpu_s, in the kernel
  std::string compiled_into{};     // the function of the machine code, where `function` was inlined into another
};
/// A share that rests on fewer samples is a hint: its 95 % interval is half of it or more to each side.
inline constexpr std::uint64_t few_samples = 20;
/// A place in the program's own code that makes a call.
struct CallerRow {
  std::string function, file;
  std::uint32_t line = 0;
  double share = 0;  // of the calls' time whose caller is known
};
struct FunctionRow {
  std::string function, file, module;
  std::uint32_t line = 0;
  double self_s = 0, share = 0;
  std::uint64_t samples = 0;            // evidence of self_s
  double kernel_s = 0;                  // of self_s, in system calls and page faults
  std::vector<CallerRow> callers = {};  // of a library's, those of the program's own, most first; empty: not known
};
/// Time in the kernel, by system call or other entry.
struct KernelRow {
  std::string name;  // of the system call; in brackets where it is none, or not known which
  bool system_call = true;
  double self_s = 0, share = 0;
  std::uint64_t samples = 0;
  std::vector<CallerRow> callers = {};  // as of functions
};
struct CodeLineRow {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  double self_s = 0, share = 0;
};

/// An instruction of a function, and its figures.
struct InstructionRow {
  std::uint64_t address = 0;  // the module's own
  std::string text;
  std::vector<symbolizer::Frame> frames;  // innermost first; empty: not known
  double share = 0;                       // of all CPU time
  Matrix cells, produced;                 // as consumer, and as producer
  Amount true_sharing, false_sharing;     // of `cells`
};
/// The machine code of a function.
struct FunctionCode {
  std::string function, module;
  std::uint64_t begin = 0;  // the module's own address
  double cost_s = 0;        // of communications that one of its instructions takes part in, each once
  double share = 0;         // of all CPU time
  std::vector<InstructionRow> instructions;
};

struct ThreadSummary {
  std::uint32_t index = 0;
  std::int32_t pid = 0, tid = 0;
  std::string name;
  std::optional<double> cpu_s;
  std::uint64_t samples = 0;
  std::optional<double> kernel_share;  // of the time that its samples stand for; none: they stand for no time
  bool brief = false;  // it has lived for some milliseconds or a few sampling periods: what is seen of it stands for
                       // others like it
  std::optional<double> communication_s;  // cost of its communicating accesses, as consumer; none: not known
  std::string start_routine = {};         // the program's own function that it began in; empty: not known, not asked
  bool listed = true;                     // fits the filter; others are here for their names
  std::optional<models::CycleAccount> waits = {};  // of its elapsed time; none: when it began or ended is not known
  ProcessId process = {};                          // index into Analysis::processes
};
/// A place at which threads waited for others.
struct WaitPlace {
  struct Thread {
    std::uint32_t thread = 0;
    double waited_s = 0;
    std::uint64_t count = 0;
  };
  /// An object that threads waited for.
  struct Object {
    std::string name, field;  // field: empty: none
    std::string place = {};   // as of ObjectRow
    ObjectKind kind = ObjectKind::unknown;
    double waited_s = 0;
  };
  profile::WaitKind kind = profile::WaitKind::all;
  std::string function, file;  // empty: not known, or places for which the thread's table had no room
  std::uint32_t line = 0;
  std::optional<std::uint32_t> loop;  // LoopRow::id of the innermost that has one
  double waited_s = 0;
  std::uint64_t count = 0;
  std::vector<Thread> threads;  // by index
  // Only waits that looks from outside have sampled have these, and no count:
  bool sampled = false;
  std::uint64_t looks = 0;           // that found threads asleep there
  Interval waited_ci95 = {};         // of waited_s
  std::string through = {};          // the library's function that is called; empty: none
  bool for_end = false;              // of another thread: no wait for a lock, barrier or condition
  std::vector<Object> objects = {};  // most first; empty: not known
};
/// The time of a thread in a region that the program marks, inner regions included.
struct RegionThread {
  std::uint32_t thread = 0;
  std::uint64_t entries = 0, samples = 0;
  double elapsed_s = 0;         // by the thread's own clock
  std::optional<double> cpu_s;  // by samples; none: the thread was not sampled
  Interval cpu_ci95;
  std::optional<Waited> waited;  // for other threads; none: waits were not measured
  models::CycleAccount waits;    // of elapsed_s
};
struct RegionSummary {
  std::uint32_t id = 0;
  std::optional<std::uint32_t> parent;  // id of the one that it lies in
  std::uint32_t depth = 0;              // 0: it lies in none
  std::string name, path;               // path: "outer > inner"
  // All threads together:
  std::uint64_t entries = 0, samples = 0;
  double elapsed_s = 0;
  std::optional<double> cpu_s;
  Interval cpu_ci95;
  std::optional<double> imbalance;  // models::imbalance() of their work; none: of less than two threads, or not known
  models::CycleAccount waits;
  std::vector<RegionThread> threads;  // by index
};
/// A processor of the recorded machine with samples.
struct ProcessorSummary {
  std::uint32_t cpu = 0;
  std::optional<double> cpu_s;  // of threads, by the samples of their clocks; none: another source took them
  std::uint64_t samples = 0;
  double kernel_share = 0;
};
struct Warning {
  std::string code, message;
};

struct SamplingSummary {
  std::string source, method, estimator;
  std::uint64_t samples = 0, lost = 0, armed = 0, traps = 0;
  std::uint64_t with_address = 0, user_mode = 0;  // samples
  std::optional<double> unknown_frames;           // share of samples whose function is unknown
  struct Event {
    std::string name;
    std::uint64_t period = 0;
    std::string unit;
    std::uint64_t samples = 0;
    std::string source = {};                 // "clock", "pebs", "ibs", "ibs-kmod", "counter"
    std::uint32_t least_latency_cycles = 0;  // only accesses that took so long were sampled; 0: all were
  };
  std::vector<Event> events;
  std::optional<double> overhead_fraction;
  double handlers_s = 0, switches_s = 0;
  double stand_ins_s = 0;  // in the collector's functions that stand in for malloc and others; by samples
  std::uint64_t memory_bytes = 0;
  std::string source_choice = {};     // why it is this source; empty: not known
  std::uint64_t unknown_writers = 0;  // probes that saw a store of which nobody knows whose it was
  std::string settings_unknown = {};  // why neither settings nor what recording took are known; empty: they are
  std::string method_choice = {};     // why it is this method; empty: not known
  std::string partner = {};           // how partners were looked for by watchpoints; empty: they were not
};

/// Upper limits of the cost of communication that no watch saw, by sort, with 97.5 % confidence.
struct UnseenCost {
  double true_s = 0, false_s = 0;
};
struct UnseenOfConsumer {
  std::uint32_t consumer = 0;  // thread index
  UnseenCost cost;             // of all pairs with this consumer together that are not listed
};
struct Unseen {
  UnseenCost cost;                          // of all threads together
  std::vector<UnseenOfConsumer> consumers;  // by thread; nothing is known of threads that are not here
};

/// An object whose lines several threads use in turn, one of them storing, by samples alone. Its producers, consumers
/// and cost are not known.
struct SampledUse {
  std::string object;
  std::set<std::uint32_t> threads;  // their indices
  double time_s = 0;                // CPU time of their samples in the object: an upper limit of the cost
  std::uint64_t samples = 0;        // at lines that several of them were sampled at
};

struct Communication {
  Matrix cells, cores, invalidations;
  Amount true_sharing, false_sharing;  // of all pairs
  std::optional<Unseen> unseen;        // absent: the estimator cannot tell
  Undetected undetected;               // of all threads, whatever the evidence
  std::vector<LineRow> lines;          // most cost first
  std::vector<LinePair> line_pairs;    // most cost first
  std::vector<ObjectRow> objects;      // most cost first
  /// Most time first; only objects that `objects` does not have. Empty if watchpoints could show everything.
  std::vector<SampledUse> sampled_uses;
};

/// Tells if watchpoints could show all communication (watch_sight.h).
struct WatchSight {
  enum class Sees : std::uint8_t { everything, part, nothing };
  Sees sees = Sees::everything;  // also where nothing speaks against it
  std::string because = {};      // of the others: why, words that follow a colon
  std::string unseen = {};       // of `part`: the accesses that may go unseen, in words
  std::string remedy = {};       // a remedy; empty: none is known
  bool found_late = false;       // by what the watches did not see, not by the recorder's self-test
};

/// The first information for a reader. Sentences are complete and plain.
struct Finding {
  std::string sentence;
  double cost_s = 0;
  std::string kind = {};  // sharing_kind_name(), "loop", "kernel", "hint", "blind" or "none"
  std::optional<double> gain_s = {};
  std::optional<Interval> gain_ci95 = {};
  std::string object = {}, producer = {}, consumer = {};  // the latter two: "file:line"; empty: none, or not known
  std::string advice = {};                                // a change to make, a sentence; empty: none
};

struct Analysis {
  profile::Session session;
  std::vector<profile::ProcessRow> processes;
  std::vector<ThreadSummary> threads;
  std::vector<ProcessorSummary> processors;  // by number
  std::vector<Warning> warnings;
  SamplingSummary sampling;
  Communication communication;
  WatchSight sight = {};               // the part that watchpoints could show
  std::vector<LoopRow> loops;          // by share, parents may come after children; ids are stable
  std::vector<WaitPlace> wait_places;  // most first
  std::vector<RegionSummary> regions;  // each right before those inside it
  std::vector<FunctionRow> functions;
  std::vector<KernelRow> kernel;  // most first
  std::vector<CodeLineRow> code_lines;
  std::vector<FunctionCode> code;    // as requested, the costliest first; empty: none was
  std::vector<Finding> findings;     // the most important first; never empty
  double duration_s = 0, cpu_s = 0;  // of all threads
  std::string build_id = {};         // of the program that was launched; empty: it has none, or that is not known
  std::string shares_of = {};  // an event, where no sample stands for time: shares are of it, and times are not known
  std::string program_missing = {};  // why its file cannot be read for names, with a remedy; empty: it can
  Memory memory = {};                // by hardware samples alone
  std::shared_ptr<const CounterSummary> counters = {};  // by hardware counters; null: none was read
  std::shared_ptr<const WeightedStacks> stacks = {};    // null: not asked for
  std::string left_alone = {};  // why the collector stepped aside from the program; empty: it did not
  std::string filter = {};      // the options that restrict rows; empty: none
};

/// True if `cpu_s` is known. It is not for a program that could not be observed, and for events that do not represent
/// time.
[[nodiscard]] bool cpu_time_known(const Analysis& analysis);

}  // namespace crosstalk::attribution
