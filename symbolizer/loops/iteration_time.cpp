// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/iteration_time.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int warm_up = 4;    // iterations, until the slowest chain leads
constexpr int measured = 12;  // iterations after that

/// Latency of an instruction's computation, without its load, in cycles: on the fastest and slowest cores of the last
/// ten years, and on a usual one of today. Sources: the vendors' optimisation manuals.
struct Latency {
  double least = 1, likely = 1, most = 1;
};
constexpr Latency load_latency{3, 4.5, 6};
constexpr double slower_locked = 1.3;  // among other instructions, than measured back to back

Latency division(const ZydisDecodedInstruction& instruction) {
  return instruction.operand_width == 64 ? Latency{9, 18, 42} : Latency{6, 12, 26};
}

bool named(const ZydisDecodedInstruction& instruction, std::initializer_list<ZydisMnemonic> mnemonics) {
  return std::find(mnemonics.begin(), mnemonics.end(), instruction.mnemonic) != mnemonics.end();
}

bool name_holds(const ZydisDecodedInstruction& instruction, std::initializer_list<std::string_view> parts) {
  const std::string_view name = mnemonic_of(instruction);
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return name.find(part) != std::string_view::npos; });
}

bool is_vector(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.isa_ext) {
    case ZYDIS_ISA_EXT_BASE:
    case ZYDIS_ISA_EXT_LONGMODE:
    case ZYDIS_ISA_EXT_BMI1:
    case ZYDIS_ISA_EXT_BMI2:
    case ZYDIS_ISA_EXT_PAUSE:
      return false;
    default:
      return true;
  }
}

/// True for a plain load or store: it takes only the load's latency, or the time to forward a store.
bool only_moves(const Decoded& decoded) {
  return decoded.instruction.meta.category == ZYDIS_CATEGORY_DATAXFER &&
         std::any_of(decoded.used().begin(), decoded.used().end(), is_memory);
}

Latency latency_of(const Decoded& decoded) {
  const ZydisDecodedInstruction& instruction = decoded.instruction;
  if (only_moves(decoded)) {
    return {0, 0, 0};
  }
  if (named(instruction, {ZYDIS_MNEMONIC_DIV, ZYDIS_MNEMONIC_IDIV})) {
    return division(instruction);
  }
  if (named(instruction, {ZYDIS_MNEMONIC_MUL, ZYDIS_MNEMONIC_IMUL, ZYDIS_MNEMONIC_MULX, ZYDIS_MNEMONIC_CRC32,
                          ZYDIS_MNEMONIC_POPCNT, ZYDIS_MNEMONIC_TZCNT, ZYDIS_MNEMONIC_LZCNT, ZYDIS_MNEMONIC_BSF,
                          ZYDIS_MNEMONIC_BSR, ZYDIS_MNEMONIC_PDEP, ZYDIS_MNEMONIC_PEXT})) {
    return {1, 3, 4};
  }
  if (instruction.mnemonic == ZYDIS_MNEMONIC_PAUSE) {
    return {4, 60, 160};
  }
  if (named(instruction, {ZYDIS_MNEMONIC_RDTSC, ZYDIS_MNEMONIC_RDTSCP})) {
    return {15, 25, 45};
  }
  if (!is_vector(instruction)) {
    return {};
  }
  if (name_holds(instruction, {"div", "sqrt"})) {
    return {10, 14, 25};
  }
  if (name_holds(instruction, {"add", "sub", "mul", "cvt", "max", "min", "cmp", "round", "rcp", "com"})) {
    return {1, 4, 7};
  }
  return {0, 1, 3};
}

/// The latencies assumed for a chain of dependences.
enum class Level : std::uint8_t { least, likely, most };

class CycleFlow {
 public:
  CycleFlow(Level level, const CoreCycles& core) : level_(level), core_(core) {}

  void execute(const Decoded& decoded) {
    if (decoded.instruction.meta.category == ZYDIS_CATEGORY_CALL) {
      return;
    }
    const bool independent = is_zeroing(decoded);
    double ready = 0;
    double address_ready = 0;
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (is_memory(operand)) {
        address_ready = std::max({address_ready, at(operand.mem.base), at(operand.mem.index)});
      } else if (reads_register(operand) && !independent) {
        ready = std::max(ready, at(operand.reg.value));
      }
    }
    if (touches_no_memory(decoded.instruction)) {
      ready = std::max(ready, address_ready);  // lea
    } else {
      ready = std::max(ready, load(decoded, address_ready));
    }
    const bool locked = is_locked(decoded);
    const double slower = level_ == Level::most ? slower_locked : 1;
    const double done = ready + (locked ? slower * core_.locked : pick(latency_of(decoded)));
    write(decoded, done);
    end_ = std::max(end_, done);
    fence_ = locked ? std::max(fence_, done) : fence_;
  }
  [[nodiscard]] double end() const { return end_; }

  static bool is_locked(const Decoded& decoded) {
    if ((decoded.instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) {
      return true;
    }
    // xchg with memory is locked by itself.
    return decoded.instruction.mnemonic == ZYDIS_MNEMONIC_XCHG &&
           std::any_of(decoded.used().begin(), decoded.used().end(), is_memory);
  }

 private:
  // Segment, base and its number of writes, index likewise, scale, displacement: equal places have equal addresses.
  using Place = std::tuple<int, int, std::uint32_t, int, std::uint32_t, int, std::int64_t>;

  [[nodiscard]] double pick(const Latency& latency) const {
    return level_ == Level::least ? latency.least : level_ == Level::likely ? latency.likely : latency.most;
  }
  static bool is_zeroing(const Decoded& decoded) {
    return name_holds(decoded.instruction, {"xor", "sub"}) && same_register(decoded);
  }
  // The program counter is always ready, and so is a register that the loop does not write.
  [[nodiscard]] double at(ZydisRegister reg) const {
    const auto found = registers_.find(whole(reg));
    return found == registers_.end() ? 0 : found->second.ready;
  }
  [[nodiscard]] std::uint32_t writes_of(ZydisRegister reg) const {
    const auto found = registers_.find(whole(reg));
    return found == registers_.end() ? 0 : found->second.writes;
  }
  [[nodiscard]] Place place_of(const ZydisDecodedOperand& operand) const {
    const auto& m = operand.mem;
    return {m.segment,
            whole(m.base),
            writes_of(m.base),
            whole(m.index),
            writes_of(m.index),
            m.scale,
            m.disp.has_displacement ? m.disp.value : 0};
  }
  /// The cycle at which the instruction's loaded data are ready; 0 if it loads nothing.
  [[nodiscard]] double load(const Decoded& decoded, double address_ready) const {
    double ready = 0;
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (!is_memory(operand)) {
        continue;
      }
      const double start = std::max(address_ready, fence_);
      if (!loads(kind_of(operand))) {
        ready = std::max(ready, start);
        continue;
      }
      const auto stored = memory_.find(place_of(operand));
      // Some cores rename the word of a store, so that a load of it takes no time.
      const double forward = level_ == Level::least  ? std::min(1.0, core_.forward)
                             : level_ == Level::most ? std::max(load_latency.most, core_.forward)
                                                     : core_.forward;
      const bool atomic = is_locked(decoded);  // its own latency holds the load
      const double through = stored == memory_.end() ? 0 : stored->second + (atomic ? 0 : forward);
      ready = std::max({ready, start + (atomic ? 0 : pick(load_latency)), through});
    }
    return ready;
  }
  void write(const Decoded& decoded, double done) {
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (is_memory(operand) && !touches_no_memory(decoded.instruction) && stores(kind_of(operand))) {
        memory_[place_of(operand)] = done;
      }
    }
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (writes_register(operand)) {
        Value& value = registers_[whole(operand.reg.value)];
        value.ready = is_stack_engine(decoded, operand) ? value.ready : done;
        ++value.writes;
      }
    }
  }
  /// True for push and pop: they move the stack pointer without a wait.
  static bool is_stack_engine(const Decoded& decoded, const ZydisDecodedOperand& operand) {
    return operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && operand.reg.value == ZYDIS_REGISTER_RSP &&
           named(decoded.instruction, {ZYDIS_MNEMONIC_PUSH, ZYDIS_MNEMONIC_POP});
  }

  struct Value {
    double ready = 0;
    std::uint32_t writes = 0;
  };
  Level level_;
  CoreCycles core_;
  std::unordered_map<int, Value> registers_;
  std::map<Place, double> memory_;
  double fence_ = 0, end_ = 0;
};

/// Cycles that an iteration adds to the slowest chain.
double chain(std::span<const Decoded> path, Level level, const CoreCycles& core) {
  CycleFlow flow(level, core);
  double begun = 0;
  for (int iteration = 0; iteration < warm_up + measured; ++iteration) {
    begun = iteration == warm_up ? flow.end() : begun;
    for (const Decoded& instruction : path) {
      flow.execute(instruction);
    }
  }
  return (flow.end() - begun) / measured;
}

bool is_bounded(const Decoded& decoded) {
  const auto& instruction = decoded.instruction;
  if (x86::is_repeated(instruction)) {
    return false;
  }
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_GATHER:
    case ZYDIS_CATEGORY_AVX2GATHER:
    case ZYDIS_CATEGORY_SCATTER:
      return named(instruction, {ZYDIS_MNEMONIC_RDTSC, ZYDIS_MNEMONIC_RDTSCP});
    default:
      return !named(instruction, {ZYDIS_MNEMONIC_CPUID, ZYDIS_MNEMONIC_RDRAND, ZYDIS_MNEMONIC_RDSEED});
  }
}

/// nullopt without instructions, or if one has no bounded time.
std::optional<std::vector<Decoded>> decode_path(std::span<const std::span<const std::uint8_t>> path) {
  std::vector<Decoded> decoded(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!decode_full(path[i], decoded[i]) || !is_bounded(decoded[i])) {
      return std::nullopt;
    }
  }
  return decoded.empty() ? std::nullopt : std::optional(std::move(decoded));
}

}  // namespace

std::optional<IterationTime> iteration_time(std::span<const std::span<const std::uint8_t>> path,
                                            const CoreCycles& core) {
  const auto decoded = decode_path(path);
  if (!decoded) {
    return std::nullopt;
  }
  constexpr double widest = 8;  // instructions a cycle, fused pairs counted as two
  constexpr double usual = 4;
  constexpr double narrow = 2;
  const auto count = static_cast<double>(decoded->size());
  IterationTime time;
  time.least = std::max(count / widest, chain(*decoded, Level::least, core));
  time.likely = std::max({time.least, count / usual, chain(*decoded, Level::likely, core)});
  // Nothing overlaps, not even work that could.
  time.most = std::max(time.likely, count / narrow + chain(*decoded, Level::most, core));
  return time;
}

std::optional<double> chain_cycles(std::span<const std::span<const std::uint8_t>> path, const CoreCycles& core) {
  const auto decoded = decode_path(path);
  return decoded ? std::optional(chain(*decoded, Level::likely, core)) : std::nullopt;
}

std::optional<IterationTime> over_ways(std::span<const Way> ways, const CoreCycles& core) {
  std::optional<IterationTime> all;
  double likely = 0;
  for (const Way& way : ways) {
    const auto one = iteration_time(way.code, core);
    if (!one) {
      return std::nullopt;
    }
    all = all ? IterationTime{std::min(all->least, one->least), 0, std::max(all->most, one->most)} : *one;
    likely += one->likely;
  }
  if (all) {
    all->likely = likely / static_cast<double>(ways.size());
  }
  return all;
}

}  // namespace crosstalk::symbolizer
