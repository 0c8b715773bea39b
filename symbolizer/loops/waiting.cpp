// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/waiting.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

Update update_of(const Decoded& decoded) {
  const ZydisDecodedOperand* memory = memory_operand(decoded);
  if (memory == nullptr || kind_of(*memory) != AccessKind::load_store) {
    return Update::none;
  }
  if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_XCHG) {
    return Update::exchange;
  }
  if ((decoded.instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) == 0) {
    return Update::plain;
  }
  if (is_compare_exchange(decoded.instruction)) {
    return Update::compare_exchange;
  }
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
      return Update::add;
    case ZYDIS_MNEMONIC_XADD:
      return Update::fetch_add;
    default:
      return Update::bits;
  }
}

/// Registers that a way writes, by the largest ones that contain them.
std::set<ZydisRegister> written_by(std::span<const Decoded> way) {
  std::set<ZydisRegister> written;
  for (const Decoded& decoded : way) {
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (writes_register(operand)) {
        written.insert(whole(operand.reg.value));
      }
    }
  }
  written.erase(ZYDIS_REGISTER_RIP);
  return written;
}

bool is_left_alone(ZydisRegister reg, const std::set<ZydisRegister>& written) {
  return reg == ZYDIS_REGISTER_NONE || !written.contains(whole(reg));
}

/// Inputs of a value: registers at the begin of the way, and `a_load`.
using Sources = std::set<ZydisRegister>;
constexpr ZydisRegister a_load = ZYDIS_REGISTER_NONE;

/// True for `xor %eax, %eax` and the like: the result depends on nothing.
bool clears(const Decoded& decoded) {
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
      return same_register(decoded);
    default:
      return false;
  }
}

/// Definitions and uses along one way round a loop.
class WayValues {
 public:
  void execute(const Decoded& decoded) {
    const Sources read = read_by(decoded);
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (!writes_register(operand)) {
        continue;
      }
      const ZydisRegister reg = whole(operand.reg.value);
      // A write of a part counts for the whole register: the test reads that part.
      Sources now = read;
      if ((operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0 && !swaps(decoded)) {
        now.merge(Sources(of(reg)));
      }
      values_[reg] = std::move(now);
    }
  }

  [[nodiscard]] Sources of(ZydisRegister reg) const {
    const auto value = values_.find(reg);
    return value != values_.end() ? value->second : Sources{reg};
  }

  [[nodiscard]] Sources read_by(const Decoded& decoded) const {
    if (clears(decoded)) {
      return {};
    }
    if (swaps(decoded)) {
      return {a_load};  // the result is the old value in memory
    }
    Sources read;
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (reads_register(operand) && operand.reg.value != ZYDIS_REGISTER_RIP) {
        read.merge(Sources(of(whole(operand.reg.value))));
      }
    }
    if (const auto* memory = memory_operand(decoded); memory != nullptr && loads(kind_of(*memory))) {
      read.insert(a_load);
    }
    return read;
  }

  /// Call it after the whole way: adds the inputs of those registers in earlier iterations.
  [[nodiscard]] Sources over_iterations(const Sources& sources) const {
    Sources all;
    std::vector<ZydisRegister> open(sources.begin(), sources.end());
    while (!open.empty()) {
      const ZydisRegister reg = open.back();
      open.pop_back();
      const auto value = values_.find(reg);
      if (all.insert(reg).second && value != values_.end()) {
        open.insert(open.end(), value->second.begin(), value->second.end());
      }
    }
    return all;
  }

  /// True if an iteration computes the register from its value in the previous iteration: a counter, a sum.
  [[nodiscard]] bool goes_on(ZydisRegister reg) const {
    const auto value = values_.find(reg);
    return value != values_.end() && over_iterations(value->second).contains(reg);
  }

 private:
  static bool swaps(const Decoded& decoded) {
    const Update update = update_of(decoded);
    return update == Update::exchange || update == Update::compare_exchange;
  }
  std::map<ZydisRegister, Sources> values_;  // of registers that have been written
};

/// True if one of the jumps depends on loads alone. If a counter decides, too, the loop ends by itself.
bool leaves_by_loads(std::span<const Decoded> way, std::span<const std::size_t> decisions) {
  WayValues values;
  std::vector<Sources> conditions;
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (std::find(decisions.begin(), decisions.end(), i) != decisions.end()) {
      conditions.push_back(values.read_by(way[i]));
    }
    values.execute(way[i]);
  }
  return std::any_of(conditions.begin(), conditions.end(), [&](const Sources& condition) {
    const Sources all = values.over_iterations(condition);
    return all.contains(a_load) &&
           std::none_of(all.begin(), all.end(), [&](ZydisRegister reg) { return values.goes_on(reg); });
  });
}

/// True for a retried update. A compare and exchange that expects a loaded value fails only if another thread has
/// stored in between: the loop waits for nobody. A lock instead expects the one value for "free".
bool tries_an_update_again(std::span<const Decoded> way) {
  WayValues values;
  std::vector<Sources> expected;
  for (const Decoded& decoded : way) {
    if (update_of(decoded) == Update::compare_exchange) {
      expected.push_back(values.of(ZYDIS_REGISTER_RAX));
    }
    values.execute(decoded);
  }
  return std::any_of(expected.begin(), expected.end(),
                     [&](const Sources& each) { return values.over_iterations(each).contains(a_load); });
}

}  // namespace

Update update_of(std::span<const std::uint8_t> code) {
  Decoded decoded;
  return decode_full(code, decoded) ? update_of(decoded) : Update::none;
}

std::optional<LoadedRegister> loaded_register(std::span<const std::span<const std::uint8_t>> way, std::size_t load) {
  Decoded loading;
  if (load >= way.size() || !decode_full(way[load], loading) || memory_operand(loading) == nullptr) {
    return std::nullopt;
  }
  const ZydisMnemonic mnemonic = loading.instruction.mnemonic;
  const bool plain = mnemonic == ZYDIS_MNEMONIC_MOV || mnemonic == ZYDIS_MNEMONIC_MOVZX ||
                     mnemonic == ZYDIS_MNEMONIC_MOVSX || mnemonic == ZYDIS_MNEMONIC_MOVSXD;
  if (!plain || kind_of(*memory_operand(loading)) != AccessKind::load || !is_register(loading.operands[0])) {
    return std::nullopt;
  }
  const ZydisRegister filled = whole(loading.operands[0].reg.value);
  const auto reg = integer_register(filled);
  for (std::size_t i = 0; i < way.size(); ++i) {
    Decoded other;
    if (i != load && (!decode_full(way[i], other) || writes(other, filled))) {
      return std::nullopt;
    }
  }
  return reg ? std::optional(LoadedRegister{*reg, static_cast<std::uint8_t>(memory_operand(loading)->size / 8)})
             : std::nullopt;
}

Waiting waits(std::span<const std::span<const std::uint8_t>> way, std::span<const std::size_t> decisions) {
  std::vector<Decoded> decoded(way.size());
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (!decode_full(way[i], decoded[i]) || decoded[i].instruction.meta.category == ZYDIS_CATEGORY_CALL ||
        decoded[i].instruction.meta.category == ZYDIS_CATEGORY_SYSCALL) {
      return Waiting::no;
    }
  }
  const std::set<ZydisRegister> written = written_by(decoded);
  bool looks = false;
  bool pauses = false;
  for (const Decoded& instruction : decoded) {
    pauses = pauses || instruction.instruction.mnemonic == ZYDIS_MNEMONIC_PAUSE;
    const ZydisDecodedOperand* memory = memory_operand(instruction);
    if (memory == nullptr) {
      continue;
    }
    const Update update = update_of(instruction);
    const bool tries = update == Update::exchange || update == Update::compare_exchange || update == Update::bits;
    if (!is_left_alone(memory->mem.base, written) || !is_left_alone(memory->mem.index, written) ||
        (stores(kind_of(*memory)) && !tries)) {
      return Waiting::no;
    }
    looks = true;
  }
  if (!looks || tries_an_update_again(decoded) || !leaves_by_loads(decoded, decisions)) {
    return Waiting::no;
  }
  return pauses ? Waiting::surely : Waiting::perhaps;
}

}  // namespace crosstalk::symbolizer
