// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/unwind/frame_rules.h"

#include <dwarf.h>

#include <cstdlib>
#include <limits>
#include <optional>

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t most_rules = 1U << 18U;
constexpr std::size_t longest_expression = 256;  // operations

struct FreeFrame {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }  // NOLINT: libdw says free(3)
};
using DwarfFrame = std::unique_ptr<Dwarf_Frame, FreeFrame>;

std::vector<Operation> copy(const Dwarf_Op* operations, std::size_t count) {
  std::vector<Operation> result;
  for (std::size_t i = 0; i < count && i < longest_expression; ++i) {
    result.push_back({operations[i].atom, operations[i].number, operations[i].number2, operations[i].offset});
  }
  return result;
}

/// `DW_OP_breg<r> offset` and its long form: the usual CFA.
bool is_register_plus_offset(const Dwarf_Op* operations, std::size_t count, FrameRule& rule) {
  if (count != 1) {
    return false;
  }
  const Dwarf_Op& operation = operations[0];
  if (operation.atom >= DW_OP_breg0 && operation.atom <= DW_OP_breg31) {
    rule.cfa_register = static_cast<std::uint8_t>(operation.atom - DW_OP_breg0);
    rule.cfa_offset = static_cast<std::int64_t>(operation.number);
  } else if (operation.atom == DW_OP_bregx && operation.number < register_count) {
    rule.cfa_register = static_cast<std::uint8_t>(operation.number);
    rule.cfa_offset = static_cast<std::int64_t>(operation.number2);
  } else {
    return false;
  }
  return rule.cfa_register < register_count;
}

std::optional<std::int32_t> small(std::uint64_t value) {
  const auto number = static_cast<std::int64_t>(value);
  if (number < std::numeric_limits<std::int32_t>::min() || number > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(number);
}

/// libdw gives a location as an expression on the CFA, with DW_OP_stack_value if it is the value itself.
RegisterRule register_rule(std::uint8_t reg, const Dwarf_Op* operations, std::size_t count) {
  using Kind = RegisterRule::Kind;
  RegisterRule rule{reg, Kind::undefined, 0, {}};
  const bool value = count > 0 && operations[count - 1].atom == DW_OP_stack_value;
  const std::size_t body = count - (value ? 1 : 0);
  const bool on_cfa = body > 0 && operations[0].atom == DW_OP_call_frame_cfa;
  const auto offset = body == 2 && operations[1].atom == DW_OP_plus_uconst ? small(operations[1].number)
                      : body == 1                                          ? std::optional<std::int32_t>(0)
                                                                           : std::nullopt;
  if (on_cfa && offset) {
    rule.kind = value ? Kind::cfa_plus : Kind::at_cfa;
    rule.offset = *offset;
    return rule;
  }
  rule.kind = value ? Kind::expression : Kind::at_expression;
  rule.expression = copy(operations, body);
  // "In register r": the value of that register.
  if (body == 1 && operations[0].atom >= DW_OP_reg0 && operations[0].atom <= DW_OP_reg31) {
    rule.kind = Kind::expression;
    rule.expression = {{static_cast<std::uint8_t>(operations[0].atom - DW_OP_reg0 + DW_OP_breg0), 0, 0, 0}};
  } else if (body == 1 && operations[0].atom == DW_OP_regx) {
    rule.kind = Kind::expression;
    rule.expression = {{DW_OP_bregx, operations[0].number, 0, 0}};
  }
  return rule;
}

void add_register(Dwarf_Frame* frame, std::uint8_t reg, FrameRule& rule) {
  Dwarf_Op space[3];
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, reg, space, &operations, &count) != 0) {
    rule.registers.push_back({reg, RegisterRule::Kind::undefined, 0, {}});
    return;
  }
  if (count == 0) {
    if (operations == space) {  // undefined; a null pointer means the same value
      rule.registers.push_back({reg, RegisterRule::Kind::undefined, 0, {}});
    }
    return;
  }
  rule.registers.push_back(register_rule(reg, operations, count));
}

FrameRule compact(Dwarf_Frame* frame) {
  FrameRule rule;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  bool signal_frame = false;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  const int return_address = dwarf_frame_info(frame, &begin, &end, &signal_frame);
  // On x86-64 it is always column 16; a damaged file may have another one.
  if (return_address != static_cast<int>(Register::rip) || dwarf_frame_cfa(frame, &operations, &count) != 0 ||
      count == 0) {
    return rule;
  }
  rule.known = true;
  rule.signal_frame = signal_frame;
  if (!is_register_plus_offset(operations, count, rule)) {
    rule.cfa_expression = copy(operations, count);
  }
  for (std::uint8_t reg = 0; reg < register_count; ++reg) {
    if (reg != static_cast<std::uint8_t>(Register::rsp) || signal_frame) {
      add_register(frame, reg, rule);
    }
  }
  return rule;
}

}  // namespace

FrameRules::FrameRules(const ElfFile* code, Dwarf* dwarf) {
  if (code != nullptr) {
    eh_frame_.reset(dwarf_getcfi_elf(code->elf()));
  }
  if (dwarf != nullptr) {
    debug_frame_ = dwarf_getcfi(dwarf);
  }
}

const FrameRule& FrameRules::at(std::uint64_t address) {
  const auto found = rules_.find(address);
  if (found != rules_.end()) {
    return found->second;
  }
  if (rules_.size() >= most_rules) {
    rules_.clear();
  }
  return rules_.emplace(address, read(address)).first->second;
}

FrameRule FrameRules::read(std::uint64_t address) {
  for (Dwarf_CFI* cfi : {eh_frame_.get(), debug_frame_}) {
    Dwarf_Frame* found = nullptr;
    if (cfi == nullptr || dwarf_cfi_addrframe(cfi, address, &found) != 0) {
      continue;
    }
    const DwarfFrame frame(found);
    FrameRule rule = compact(frame.get());
    if (rule.known) {
      return rule;
    }
  }
  return {};
}

}  // namespace crosstalk::symbolizer
