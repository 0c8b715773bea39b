// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/instruction_work.h"

#include <string_view>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

/// Operations on each element, by the mnemonic without its v and its type (addpd: "add").
double operations_of(std::string_view name) {
  if (is_fused(name)) {
    return 2;
  }
  for (const std::string_view one :
       {"addsub", "hadd", "hsub", "add", "sub", "mul", "div", "min", "max", "sqrt", "rsqrt", "rcp"}) {
    if (name.starts_with(one)) {
      return 1;
    }
  }
  return 0;
}

bool is_x87_arithmetic(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_FADD:
    case ZYDIS_MNEMONIC_FADDP:
    case ZYDIS_MNEMONIC_FIADD:
    case ZYDIS_MNEMONIC_FSUB:
    case ZYDIS_MNEMONIC_FSUBP:
    case ZYDIS_MNEMONIC_FISUB:
    case ZYDIS_MNEMONIC_FSUBR:
    case ZYDIS_MNEMONIC_FSUBRP:
    case ZYDIS_MNEMONIC_FISUBR:
    case ZYDIS_MNEMONIC_FMUL:
    case ZYDIS_MNEMONIC_FMULP:
    case ZYDIS_MNEMONIC_FIMUL:
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
    case ZYDIS_MNEMONIC_FIDIVR:
    case ZYDIS_MNEMONIC_FSQRT:
      return true;
    default:
      return false;
  }
}

/// The floating-point operations of an instruction. The end of its name gives width and type: ss, sd, ps, pd, sh, ph.
std::optional<double> flops_of(const Decoded& decoded) {
  if (is_x87_arithmetic(decoded.instruction.mnemonic)) {
    return 1;
  }
  std::string_view name = mnemonic_of(decoded.instruction);
  const bool vector =
      !decoded.used().empty() && is_register(decoded.operands[0]) && x86::is_vector(decoded.operands[0].reg.value);
  if (!vector || name.size() < 4 || name.front() == 'p' || name.starts_with("vp")) {
    return 0;  // integers
  }
  const std::string_view type = name.substr(name.size() - 2);
  const double bits = type.back() == 's' ? 32 : type.back() == 'd' ? 64 : type.back() == 'h' ? 16 : 0;
  const bool packed = type.front() == 'p';
  if (bits == 0 || (!packed && type.front() != 's')) {
    return 0;
  }
  name.remove_prefix(name.front() == 'v' ? 1 : 0);
  if (name.starts_with("dp")) {
    return std::nullopt;  // an immediate chooses the elements
  }
  const double operations = operations_of(name);
  if (operations > 0 && x86::is_masked(decoded.instruction)) {
    return std::nullopt;
  }
  return operations * (packed ? decoded.operands[0].size / bits : 1);
}

void count_accesses(const Decoded& decoded, Work& work) {
  // Compare-and-exchange instructions always store, if need be the old value (Intel SDM vol. 2, CMPXCHG: "the
  // destination operand receives a write cycle without regard to the result of the comparison").
  const bool stores_always = is_compare_exchange(decoded.instruction);
  const bool varies = x86::is_repeated(decoded.instruction) || x86::is_masked(decoded.instruction);
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    if (!is_memory(operand) || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
      continue;
    }
    const AccessKind kind = kind_of(operand);
    if (kind == AccessKind::none) {
      continue;
    }
    const bool conditional =
        !stores_always && (operand.actions & (ZYDIS_OPERAND_ACTION_CONDREAD | ZYDIS_OPERAND_ACTION_CONDWRITE)) != 0;
    if (varies || conditional || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) {
      work.loads = loads(kind) ? std::nullopt : work.loads;
      work.stores = stores(kind) ? std::nullopt : work.stores;
      work.bytes.reset();
      continue;
    }
    const double bytes = operand.size / 8.0;
    const auto add = [](std::optional<double>& to, double amount) { to ? void(*to += amount) : void(); };
    add(work.loads, loads(kind) ? 1 : 0);
    add(work.stores, stores(kind) ? 1 : 0);
    add(work.bytes, bytes * ((loads(kind) ? 1 : 0) + (stores(kind) ? 1 : 0)));
  }
}

}  // namespace

bool is_fused(std::string_view name) {
  return name.starts_with("fmadd") || name.starts_with("fmsub") || name.starts_with("fnmadd") ||
         name.starts_with("fnmsub");
}

std::optional<Work> work_of(std::span<const std::uint8_t> code) {
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    return std::nullopt;
  }
  Work work;
  work.instructions = 1;
  work.flops = flops_of(decoded);
  if (!touches_no_memory(decoded.instruction)) {
    count_accesses(decoded, work);
  }
  return work;
}

}  // namespace crosstalk::symbolizer
