// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/variables.h"

#include <dwarf.h>

#include <cstring>
#include <span>

#include "symbolizer/dwarf/lines.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int deepest_nesting = 256;

struct Location {
  std::uint64_t value = 0;
  bool tls = false;
};

template <class Number>
std::optional<std::uint64_t> operand(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 1 + sizeof(Number)) {
    return std::nullopt;
  }
  Number value{};
  std::memcpy(&value, bytes.data() + 1, sizeof value);
  return value;
}

/// The address, or TLS offset, behind an index into .debug_addr.
std::optional<std::uint64_t> indexed_value(Dwarf_Attribute& location) {
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  Dwarf_Attribute entry;
  if (dwarf_getlocation(&location, &operations, &count) != 0 || count == 0 ||
      dwarf_getlocation_attr(&location, operations, &entry) != 0) {
    return std::nullopt;
  }
  Dwarf_Addr address = 0;
  Dwarf_Word number = 0;
  if (dwarf_formaddr(&entry, &address) == 0) {
    return address;
  }
  return dwarf_formudata(&entry, &number) == 0 ? std::optional<std::uint64_t>(number) : std::nullopt;
}

/// Locations of static storage are a few known bytes. They are matched raw, because libdw keeps every expression that
/// it parses, also those of all locals of a large program.
std::optional<Location> static_location(Dwarf_Die& variable) {
  Dwarf_Attribute attribute;
  Dwarf_Block block;
  if (dwarf_attr(&variable, DW_AT_location, &attribute) == nullptr || dwarf_formblock(&attribute, &block) != 0 ||
      block.length == 0) {
    return std::nullopt;
  }
  const std::span<const std::uint8_t> bytes(block.data, block.length);
  const std::uint8_t last = bytes.back();
  const bool tls = bytes.size() > 1 && (last == DW_OP_form_tls_address || last == DW_OP_GNU_push_tls_address);
  std::optional<std::uint64_t> value;
  switch (bytes[0]) {
    case DW_OP_addr:
      value = operand<std::uint64_t>(bytes);
      break;
    case DW_OP_const8u:
      value = tls ? operand<std::uint64_t>(bytes) : std::nullopt;
      break;
    case DW_OP_const4u:
      value = tls ? operand<std::uint32_t>(bytes) : std::nullopt;
      break;
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index:
      value = indexed_value(attribute);
      break;
    case DW_OP_constx:
    case DW_OP_GNU_const_index:
      value = tls ? indexed_value(attribute) : std::nullopt;
      break;
    default:
      break;
  }
  return value ? std::optional(Location{*value, tls}) : std::nullopt;
}

}  // namespace

std::optional<Dwarf_Die> Variables::find(std::uint64_t value, bool tls) {
  const auto& variables = tls ? tls_ : globals_;
  for (const Depth depth : {Depth::outside_functions, Depth::everything}) {
    if (depth_ < depth) {
      read(depth);
    }
    if (const auto found = variables.find(value); found != variables.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

void Variables::read(Depth depth) {
  depth_ = depth;
  for (Unit& unit : info_.units()) {
    WalkBudget budget(unit_walk_steps);
    collect(DebugInfo::content(unit), budget, 0);
  }
}

void Variables::collect(Dwarf_Die& parent, WalkBudget& budget, int nesting) {
  if (nesting > deepest_nesting) {
    return;
  }
  for_each_child(parent, budget, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_variable) {
      add(child);
      return true;
    }
    const bool function_part =
        tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine;
    if (tag == DW_TAG_namespace || tag == DW_TAG_module || (function_part && depth_ == Depth::everything)) {
      collect(child, budget, nesting + 1);
    }
    return true;
  });
}

void Variables::add(Dwarf_Die& variable) {
  if (const auto location = static_location(variable)) {
    (location->tls ? tls_ : globals_).try_emplace(location->value, variable);
  }
}

SourceLine Variables::declared(Dwarf_Die& variable) {
  SourceLine line;
  int number = 0;
  if (dwarf_decl_line(&variable, &number) == 0 && number > 0) {
    line.line = static_cast<std::uint32_t>(number);
  }
  line.file = file_of(variable, DW_AT_decl_file);
  return line;
}

}  // namespace crosstalk::symbolizer
