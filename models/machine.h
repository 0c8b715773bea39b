// SPDX-License-Identifier: Apache-2.0
// A machine's capabilities: plain figures, measured and theoretical. `crosstalk calibrate` measures them,
// docs/machine-json.md describes their file, and busy times are computed with them.
//
// Units are SI: seconds, bytes, hertz, operations a second. A vector operation of n lanes is n flops, a fused
// multiply-add 2 n.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crosstalk::models {

/// The result of repeated tries to measure one quantity. Other work on the machine can only slow a try down, so the
/// best try counts, provided that others came near it.
struct Figure {
  std::optional<double> value;        ///< of the best try; nullopt: refused
  double median = 0;                  ///< of all tries
  double spread = 0;                  ///< by which part of the best the best quarter of the tries differ from it
  std::uint32_t tries = 0;            ///< 0: none was made
  std::uint32_t disturbed = 0;        ///< of them; they count only where fewer than five others are
  std::optional<double> theoretical;  ///< by the processor's manual and its frequency; nullopt: not known
  std::string method;                 ///< how it was measured
  std::string refused;                ///< why there is no value; empty: there is one
};

enum class Width : std::uint8_t { scalar, sse, avx2, avx512 };
enum class Precision : std::uint8_t { double_precision, single_precision };
enum class Operation : std::uint8_t { add, mul, fma };
enum class Level : std::uint8_t { l1d, l2, l3, memory };
/// A loop over arrays: load a; store a; a = b; a = b + s * c. `_streaming`: with non-temporal stores.
enum class Traffic : std::uint8_t { load, store, copy, triad, store_streaming, copy_streaming, triad_streaming };
enum class Scope : std::uint8_t { one_core, all_cores };
/// Independent instructions of one kind.
enum class Instruction : std::uint8_t { integer_add, integer_multiply, branch_not_taken, branch_taken };
/// Instructions that each need the result of the previous one, with their data in the first-level cache.
enum class Chain : std::uint8_t {
  add,                  ///< register
  load,                 ///< a pointer that points to itself
  load_add_store,       ///< `counter++` in memory: through the store buffer
  locked_add,           ///< `lock add` to memory
  locked_exchange,      ///< `xchg` with memory
  locked_compare,       ///< load, then `lock cmpxchg` that succeeds
  branch_mispredicted,  ///< extra cost of a wrong prediction
};
/// Loads for each store among the accesses of a loop.
enum class Mix : std::uint8_t { loads, two_to_one, one_to_one, stores };
enum class Element : std::uint8_t { int32, int64 };
/// Instructions that access no memory; floating-point ones are additions of doubles, in vectors of that width.
enum class Kind : std::uint8_t { nop, integer_add, scalar, sse, avx2, avx512 };
/// Additions of doubles in vectors of a width.
[[nodiscard]] constexpr Kind kind_of(Width width) {
  return static_cast<Kind>(static_cast<int>(Kind::scalar) + static_cast<int>(width));
}

inline constexpr std::array all_widths = {Width::scalar, Width::sse, Width::avx2, Width::avx512};
inline constexpr std::array all_precisions = {Precision::double_precision, Precision::single_precision};
inline constexpr std::array all_operations = {Operation::add, Operation::mul, Operation::fma};
inline constexpr std::array all_levels = {Level::l1d, Level::l2, Level::l3, Level::memory};  // nearest first

/// The names of values in the file, in the order of the enumeration.
template <class Enum>
std::span<const std::string_view> names();
template <>
std::span<const std::string_view> names<Width>();
template <>
std::span<const std::string_view> names<Precision>();
template <>
std::span<const std::string_view> names<Operation>();
template <>
std::span<const std::string_view> names<Level>();
template <>
std::span<const std::string_view> names<Traffic>();
template <>
std::span<const std::string_view> names<Scope>();
template <>
std::span<const std::string_view> names<Instruction>();
template <>
std::span<const std::string_view> names<Chain>();
template <>
std::span<const std::string_view> names<Mix>();
template <>
std::span<const std::string_view> names<Element>();
template <>
std::span<const std::string_view> names<Kind>();

template <class Enum>
[[nodiscard]] std::string_view name(Enum value) {
  return names<Enum>()[static_cast<std::size_t>(value)];
}

/// Values of an operand; an instruction of kind `add` or `mul` does as many flops.
[[nodiscard]] unsigned lanes(Width width, Precision precision);
/// Flops of one instruction.
[[nodiscard]] unsigned flops(Width width, Precision precision, Operation operation);

/// Elements of an operand.
[[nodiscard]] unsigned integer_lanes(Width width, Element element);

/// Bytes that move between a level and the caches closer to the core for each byte that the loop's own instructions
/// load or store. An ordinary store beyond the first level moves its line twice: the line is fetched before and written
/// back after. So a copy moves 3 bytes for 2, a triad 4 for 3. Streaming stores and the first level move the requested
/// bytes only.
[[nodiscard]] double moved_per_requested(Level level, Traffic traffic);

struct Processor {  // as the operating system numbers it
  std::uint32_t cpu = 0;
  // Numbers of the physical core, package and NUMA node, each from 0 for the whole machine.
  std::uint32_t core = 0, package = 0, node = 0;
  bool operator==(const Processor&) const = default;
};

struct Cache {
  std::uint32_t level = 1;  // data or unified: 1, 2, 3
  std::uint64_t bytes = 0;  // of one
  std::uint32_t line_bytes = 64;
  std::uint32_t ways = 0;           // 0: not known, or fully associative
  std::vector<std::uint32_t> cpus;  // sharing it, ascending
  bool operator==(const Cache&) const = default;
};

/// Identifies a kind of machine: figures hold for all machines with these values.
struct Identity {
  std::string vendor;  // CPUID: "GenuineIntel", "AuthenticAMD", ...
  std::uint32_t family = 0, model = 0, stepping = 0;
  std::string name;              // brand string
  bool virtual_machine = false;  // CPUID says that there is a hypervisor
  bool operator==(const Identity&) const = default;
};

struct Frequency {
  std::optional<double> tsc_hz;           // of the time-stamp counter; nullopt: it is not constant
  std::optional<double> nominal_max_hz;   // allowed by the kernel; nullopt: it does not say (most virtual machines)
  Figure one_core_hz;                     // cycles a second that a chain of dependent additions runs at
  Figure all_cores_hz;                    // the slowest core's, while all run one
  Figure after_avx2_hz, after_avx512_hz;  // right after such multiply-adds, which slow some processors down
};

struct FlopPeak {
  Width width = Width::scalar;
  Precision precision = Precision::double_precision;
  Operation operation = Operation::add;
  Scope scope = Scope::one_core;
  Figure flops_per_s;
};
struct Bandwidth {
  Level level = Level::l1d;
  Traffic traffic = Traffic::load;
  Scope scope = Scope::one_core;
  Figure bytes_per_s;  // moved (see `moved_per_requested`), of all cores together where `scope` says so
};
struct LoadLatency {
  Level level = Level::l1d;
  Figure seconds;  // from a load to the next one, whose address it is
};
struct InstructionRate {
  Instruction instruction = Instruction::integer_add;
  Figure per_s;  // one core
};
struct ChainTime {
  Chain chain = Chain::add;
  Figure seconds;  // of one link
};
/// Costs of a line that two processors use, a < b.
struct ProcessorPair {
  std::uint32_t a = 0, b = 0;
  Figure transfer_s;       // from a store of one to the moment the other sees it, answered in turns
  Figure contended_add_s;  // of one locked addition, while the other does the same without a pause
};

// The figures below are of rooflines. Files of before crosstalk measured them lack them; then all these lists are
// empty.

/// The rate of loops that only load and store, from a level: a roof by width and mix.
struct AccessRate {
  Level level = Level::l1d;
  Width width = Width::scalar;
  Mix mix = Mix::loads;
  std::uint32_t threads = 1;  // one on each physical core
  Figure bytes_per_s;         // that their instructions load and store, of all threads together
};
/// Between the scopes `one_core` and `all_cores` of FlopPeak.
struct ThreadFlops {
  Width width = Width::scalar;
  Precision precision = Precision::double_precision;
  Operation operation = Operation::add;
  std::uint32_t threads = 2;  // one on each physical core: more than 1, fewer than all
  Figure flops_per_s;         // of all threads together
};
/// The time from one result to the next of a chain of floating-point instructions: a unit's latency.
struct FlopLatency {
  Width width = Width::scalar;
  Precision precision = Precision::double_precision;
  Operation operation = Operation::add;
  Figure seconds;
};
/// Operations on whole numbers; an instruction does as many as it has elements. `operation` is `add` or `mul`.
struct IntegerPeak {
  Width width = Width::scalar;
  Element element = Element::int64;
  Operation operation = Operation::add;
  Scope scope = Scope::one_core;
  Figure per_s;
};
/// Limits of one core for instructions of a kind.
struct KindLimits {
  Kind kind = Kind::nop;
  Figure per_cycle;  // independent ones; of `nop`: the retirement width
  Figure buffer;     // so many fit in the re-order buffer between two loads that miss all caches
};
/// Groups of two loads and a store, in order through a level's working set on one core, each followed by `fillers`
/// instructions `nop`, of which fillers / 3 is the intensity in the mansard roofline. The fastest is IPC_M,Max of the
/// level: fillers make no access faster.
struct GroupRate {
  Level level = Level::l1d;
  Width width = Width::scalar;
  std::uint32_t fillers = 0;
  Figure per_cycle;  // memory instructions
};
/// The same groups with independent instructions of a kind behind them: so many that, as near as whole numbers come,
/// these and the memory instructions take the same time, which is the ridge of the mansard roofline. So the re-order
/// buffer is filled as a loop of that kind fills it (eq. 6).
struct RidgeRate {
  Level level = Level::l1d;
  Width width = Width::scalar;    // of the loads and stores
  Kind kind = Kind::integer_add;  // of the fillers
  std::uint32_t fillers = 0;      // 0: the ridge is not known
  Figure per_cycle;               // memory instructions
};
/// SpMV with a dense matrix in CSR format, doubles and indices of 4 bytes, matrix and vector x in certain levels:
/// "A in y, X in x" (SPARCITY D1.2, 2.2.1). A non-zero is 20 bytes and 2 flops, a row 24 bytes.
struct SparseRoof {
  Level matrix = Level::l1d, vector = Level::l1d;
  Scope scope = Scope::one_core;
  std::uint32_t columns = 64;  // and non-zeros of each row
  Figure bytes_per_s;          // that the kernel's instructions load and store, of all cores together
};
/// The same kernel on the matrices of a pair (models/roofline/sparse_pattern.h; 8 elements a line) that fill a level.
struct SparseBand {
  Level matrix = Level::l1d;
  std::uint32_t row_nonzeros = 64;
  Scope scope = Scope::one_core;
  std::uint32_t columns = 0, rows = 0;  // of one core's matrix
  Figure worst, best;                   // flops a second, of all cores together
};

struct Machine {
  Identity identity;
  std::string host, kernel, measured_at, version;  // uname -n, uname -r, ISO 8601 in UTC, crosstalk's version
  std::string extended_at;                         // when figures were added that an older crosstalk did not measure
  bool quick = false;                              // measured with fewer tries
  double measuring_s = 0;                          // how long it took
  std::uint64_t memory_bytes = 0;
  std::uint64_t page_bytes = 4096;    // in the measurement of memory
  std::vector<Processor> processors;  // ascending by cpu
  std::vector<Cache> caches;
  Frequency frequency;
  std::vector<FlopPeak> flops;
  std::vector<Bandwidth> bandwidths;
  std::vector<LoadLatency> latencies;
  std::vector<InstructionRate> instructions;
  std::vector<ChainTime> chains;
  std::vector<ProcessorPair> pairs;
  std::vector<AccessRate> accesses;
  std::vector<ThreadFlops> thread_flops;
  std::vector<FlopLatency> flop_latencies;
  std::vector<IntegerPeak> integers;
  std::vector<KindLimits> kinds;
  std::vector<GroupRate> groups;
  std::vector<RidgeRate> ridges;
  std::vector<SparseRoof> sparse_roofs;
  std::vector<SparseBand> sparse_bands;
  std::vector<std::string> notes;  // caveats of the figures

  // Null: the file lacks the figure. A figure in the file may still be refused.
  [[nodiscard]] const Figure* flops_of(Width width, Precision precision, Operation operation, Scope scope) const;
  [[nodiscard]] const Figure* bandwidth_of(Level level, Traffic traffic, Scope scope) const;
  [[nodiscard]] const Figure* latency_of(Level level) const;
  [[nodiscard]] const Figure* rate_of(Instruction instruction) const;
  [[nodiscard]] const Figure* time_of(Chain chain) const;
  [[nodiscard]] const Figure* accesses_of(Level level, Width width, Mix mix, std::uint32_t threads) const;
  [[nodiscard]] const KindLimits* limits_of(Kind kind) const;
  /// The fastest group; null: none has a value.
  [[nodiscard]] const Figure* most_of_groups(Level level, Width width) const;
  [[nodiscard]] const RidgeRate* ridge_of(Level level, Width width, Kind kind) const;
  /// Accepts the processors in either order.
  [[nodiscard]] const ProcessorPair* pair_of(std::uint32_t a, std::uint32_t b) const;
  /// The effective peak of a level: its fastest bandwidth with certain moved bytes. Leaves out ordinary stores beyond
  /// the first level, because some processors do not fetch lines that are stored to as a whole.
  [[nodiscard]] const Figure* peak_bandwidth(Level level, Scope scope) const;
  /// The highest measured rate of a precision over all widths and operations: the effective peak of the units.
  [[nodiscard]] const Figure* peak_flops(Precision precision, Scope scope) const;
  /// The first cache of a level; null: the machine has none.
  [[nodiscard]] const Cache* cache_of(std::uint32_t level) const;
};

/// Refuses impossible values and names the field as in the file: figures that are not positive or absurd, a figure
/// without value or reason, a duplicate, caches that do not grow, a memory faster than the first level.
[[nodiscard]] Result<void> validate(const Machine& machine);

/// Removes the figures that `validate` refuses, and those that contradict others; the reason replaces each. Disturbed
/// tries give figures that are too slow, so the slower one of two contradictory figures is wrong.
void refuse_nonsense(Machine& machine);

/// Returns the number of figures that are in the file without a value.
[[nodiscard]] std::size_t count_refused(const Machine& machine);

/// True if the machine lacks figures that this version of crosstalk measures: its file is of an older one.
[[nodiscard]] bool lacks_figures(const Machine& machine);

/// Refuses figures of another kind of machine than `here`, and names the first field that differs. Compares the
/// processor's identity, the processors' numbers and the caches.
[[nodiscard]] Result<void> check_same_machine(const Machine& file, const Machine& here);

}  // namespace crosstalk::models
