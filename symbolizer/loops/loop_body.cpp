// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loop_body.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "symbolizer/cfg/zydis_decode.h"
#include "symbolizer/loops/instruction_work.h"

namespace crosstalk::symbolizer {
namespace {

bool is_flags(ZydisRegister reg) { return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_FLAGS; }

/// Tracks the registers with values loaded from addresses that change from iteration to iteration.
class Loaded {
 public:
  explicit Loaded(std::span<const Decoded> way) {
    for (const Decoded& decoded : way) {
      for (const ZydisDecodedOperand& operand : decoded.used()) {
        if (writes_register(operand)) {
          written_.insert(whole(operand.reg.value));
        }
      }
    }
    written_.erase(ZYDIS_REGISTER_RSP);
    written_.erase(ZYDIS_REGISTER_RIP);
  }

  /// True if a loaded value determines the address of the instruction's access. Updates the tracked registers.
  bool execute(const Decoded& decoded) {
    bool indirect = false;
    bool taken = false;
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (is_memory(operand)) {
        const bool by_loaded = has(operand.mem.base) || has(operand.mem.index);
        const bool accesses = !touches_no_memory(decoded.instruction);
        indirect = indirect || (by_loaded && accesses);
        const bool moves = written_.contains(whole(operand.mem.base)) || written_.contains(whole(operand.mem.index));
        taken = taken || (accesses ? loads(kind_of(operand)) && (moves || by_loaded) : by_loaded);
      } else if (reads_register(operand) && !is_flags(operand.reg.value)) {
        taken = taken || has(operand.reg.value);
      }
    }
    taken = taken && !clears(decoded);
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (writes_register(operand) && !is_flags(operand.reg.value)) {
        taken ? void(loaded_.insert(whole(operand.reg.value))) : void(loaded_.erase(whole(operand.reg.value)));
      }
    }
    loaded_.erase(ZYDIS_REGISTER_RSP);
    return indirect;
  }

 private:
  [[nodiscard]] bool has(ZydisRegister reg) const { return loaded_.contains(whole(reg)); }
  /// True for xor of a register with itself: it clears the register.
  static bool clears(const Decoded& decoded) {
    return mnemonic_of(decoded.instruction).find("xor") != std::string_view::npos && same_register(decoded);
  }
  std::set<ZydisRegister> written_, loaded_;
};

/// The most bytes that a gather loads: all elements of its destination.
double most_gathered(const Decoded& decoded) { return decoded.operands[0].size / 8.0; }

double elements_of(const Decoded& decoded) {
  return is_gather(decoded.instruction) ? std::max<double>(decoded.operands[0].element_count, 1) : 1;
}

/// Finds the accesses of a way whose addresses were loaded.
void count_indirect(std::span<const Decoded> way, std::span<const Work> work, LoopBodyFacts& facts) {
  Loaded loaded(way);
  for (const Decoded& decoded : way) {
    loaded.execute(decoded);  // an iteration may use addresses that the previous one loaded
  }
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (!loaded.execute(way[i]) && !is_gather(way[i].instruction)) {
      continue;
    }
    facts.indirect = true;
    const bool loads = work[i].loads.value_or(1) > 0;
    facts.indirect_elements += loads ? elements_of(way[i]) : 0;
    facts.indirect_bytes += !loads                          ? 0
                            : is_gather(way[i].instruction) ? most_gathered(way[i])
                                                            : work[i].bytes.value_or(0);
  }
}

void count_stack(const Decoded& decoded, const Work& work, LoopBodyFacts& facts) {
  const bool by_stack = std::any_of(decoded.used().begin(), decoded.used().end(), [](const auto& operand) {
    return is_memory(operand) && operand.mem.base == ZYDIS_REGISTER_RSP;
  });
  facts.stack_accesses += by_stack ? work.loads.value_or(0) + work.stores.value_or(0) : 0;
}

void count_instruction(std::span<const std::uint8_t> code, const Decoded& decoded, const Work& work,
                       LoopBodyFacts& facts) {
  facts.instructions += 1;
  facts.calls = facts.calls || decoded.instruction.meta.category == ZYDIS_CATEGORY_CALL;
  if (const auto flops = flops_by_kind(code)) {
    facts.flops.add(*flops);
  }
  if (const auto integers = integers_of(code)) {
    facts.integers.add(*integers);
  } else {
    facts.integers_fixed = false;
  }
  facts.memory_instructions += work.loads.value_or(1) + work.stores.value_or(1) > 0 ? 1 : 0;
  facts.gathered_bytes += is_gather(decoded.instruction) ? most_gathered(decoded) : 0;
  facts.only_gathers_vary = facts.only_gathers_vary && (work.bytes || is_gather(decoded.instruction));
  facts.loads += work.loads.value_or(0);
  facts.stores += work.stores.value_or(0);
  facts.access_bytes += work.bytes.value_or(0);
  facts.gathers += is_gather(decoded.instruction) ? 1 : 0;
  facts.scatters += decoded.instruction.meta.category == ZYDIS_CATEGORY_SCATTER ? 1 : 0;
  facts.streaming_stores += is_streaming(decoded.instruction) ? 1 : 0;
  if (!touches_no_memory(decoded.instruction)) {
    count_stack(decoded, work, facts);
  }
}

/// The way's instructions without floating-point arithmetic.
std::vector<std::span<const std::uint8_t>> without_fpu(const Way& way) {
  std::vector<std::span<const std::uint8_t>> rest;
  std::copy_if(way.code.begin(), way.code.end(), std::back_inserter(rest), [](const auto& code) {
    const auto flops = flops_by_kind(code);
    return flops && flops->flops == 0;
  });
  return rest;
}

void scale(LoopBodyFacts& facts, double by) {
  for (double* figure :
       {&facts.instructions, &facts.loads, &facts.stores, &facts.access_bytes, &facts.stack_accesses,
        &facts.streaming_stores, &facts.gathers, &facts.scatters, &facts.flops.other, &facts.memory_instructions,
        &facts.gathered_bytes, &facts.indirect_elements, &facts.indirect_bytes}) {
    *figure *= by;
  }
  for (double& operations : facts.integers.of) {
    operations *= by;
  }
  for (double& flops : facts.flops.of) {
    flops *= by;
  }
}

}  // namespace

std::optional<LoopBodyFacts> loop_body_facts(std::span<const Way> ways, const CoreCycles& core) {
  LoopBodyFacts facts;
  double chain = 0;
  double chain_rest = 0;
  bool chains_known = true;
  for (const Way& way : ways) {
    std::vector<Decoded> decoded(way.code.size());
    std::vector<Work> works;
    for (std::size_t i = 0; i < way.code.size(); ++i) {
      const auto work = work_of(way.code[i]);
      if (!work || !decode_full(way.code[i], decoded[i])) {
        return std::nullopt;
      }
      works.push_back(*work);
      count_instruction(way.code[i], decoded[i], *work, facts);
    }
    count_indirect(decoded, works, facts);
    const auto of_way = chain_cycles(way.code, core);
    chains_known = chains_known && of_way;
    chain += of_way.value_or(0);
    chain_rest += chain_cycles(without_fpu(way), core).value_or(0);
  }
  if (ways.empty()) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(ways.size());
  facts.one_way = ways.size() == 1;
  facts.indirect = facts.indirect || facts.gathers + facts.scatters > 0;
  scale(facts, 1 / count);
  if (chains_known) {
    facts.chain = chain / count;
    facts.chain_is_fpu = chain_rest < chain / 2;
  }
  return facts;
}

WaitsFor waits_for(std::span<const std::uint8_t> code) {
  const auto work = work_of(code);
  Decoded decoded;
  if (!work || !decode_full(code, decoded)) {
    return WaitsFor::nothing;
  }
  const bool vector = !decoded.used().empty() && is_register(decoded.operands[0]) &&
                      ZydisRegisterGetClass(decoded.operands[0].reg.value) >= ZYDIS_REGCLASS_X87 &&
                      ZydisRegisterGetClass(decoded.operands[0].reg.value) <= ZYDIS_REGCLASS_ZMM;
  if (!work->loads || *work->loads > 0) {
    return !work->flops || *work->flops > 0 ? WaitsFor::loaded_fpu : WaitsFor::load;
  }
  if (!work->stores || *work->stores > 0) {
    return WaitsFor::store;
  }
  return vector ? WaitsFor::fpu : WaitsFor::nothing;
}

}  // namespace crosstalk::symbolizer
