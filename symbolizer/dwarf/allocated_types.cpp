// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/allocated_types.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "symbolizer/dwarf/lines.h"
#include "symbolizer/dwarf/types.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::uint64_t scope_walk_steps = 100'000;
constexpr int deepest_block = 32;
constexpr int most_type_references = 8;

std::string_view name_of(Dwarf_Die& die) {
  const char* name = dwarf_diename(&die);
  return name != nullptr ? std::string_view(name) : std::string_view();
}

template <std::size_t N>
bool begins_with_any(std::string_view name, const std::array<std::string_view, N>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](auto b) { return name.starts_with(b); });
}

bool is_allocator(std::string_view type) {
  static constexpr std::array<std::string_view, 4> beginnings = {"allocator<", "__new_allocator<", "new_allocator<",
                                                                 "__allocated_ptr<"};
  return begins_with_any(type, beginnings);
}
bool is_owner(std::string_view type) {
  static constexpr std::array<std::string_view, 3> beginnings = {"unique_ptr<", "shared_ptr<", "__shared_ptr<"};
  return begins_with_any(type, beginnings);
}
bool is_maker(std::string_view function) {
  static constexpr std::array<std::string_view, 4> beginnings = {"make_unique<", "make_unique_for_overwrite<",
                                                                 "make_shared<", "make_shared_for_overwrite<"};
  return begins_with_any(function, beginnings);
}

bool has_size(Dwarf_Die& type) {
  Dwarf_Word bytes = 0;
  return dwarf_aggregate_size(&type, &bytes) == 0 && bytes > 0;
}

/// The first template argument that is a type; that of an array for an array (`unique_ptr<T[]>`).
std::optional<Dwarf_Die> first_type_argument(Dwarf_Die die) {
  std::optional<Dwarf_Die> found;
  WalkBudget budget(scope_walk_steps);
  for_each_child(die, budget, [&](Dwarf_Die& child) {
    if (dwarf_tag(&child) != DW_TAG_template_type_parameter) {
      return true;
    }
    found = type_of(child);
    return false;
  });
  if (found && dwarf_tag(&*found) == DW_TAG_array_type) {
    found = type_of(*found);
  }
  return found && has_size(*found) ? found : std::nullopt;
}

/// Removes qualifiers and typedefs from a type.
Dwarf_Die bare(Dwarf_Die type) {
  for (int step = 0; step < deepest_block; ++step) {
    const int tag = dwarf_tag(&type);
    if (tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_typedef &&
        tag != DW_TAG_restrict_type) {
      break;
    }
    const auto inner = type_of(type);
    if (!inner) {
      break;
    }
    type = *inner;
  }
  return type;
}

/// The target type of a variable of `type`, if it is a pointer of the language or of its library.
std::optional<Dwarf_Die> pointed_to(Dwarf_Die type) {
  type = bare(type);
  if (dwarf_tag(&type) == DW_TAG_pointer_type) {
    auto target = type_of(type);
    return target && has_size(*target) ? target : std::nullopt;
  }
  const bool is_class = dwarf_tag(&type) == DW_TAG_class_type || dwarf_tag(&type) == DW_TAG_structure_type;
  return is_class && is_owner(name_of(type)) ? first_type_argument(type) : std::nullopt;
}

/// The class of a method, by its `this`.
std::optional<Dwarf_Die> class_of(Dwarf_Die& function) {
  std::optional<Dwarf_Die> found;
  WalkBudget budget(scope_walk_steps);
  for_each_child(function, budget, [&](Dwarf_Die& child) {
    Dwarf_Attribute attribute;
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) {
      return true;
    }
    if (dwarf_attr_integrate(&child, DW_AT_artificial, &attribute) != nullptr) {
      const auto type = type_of(child);
      Dwarf_Die pointer = type ? bare(*type) : child;
      const auto target = type && dwarf_tag(&pointer) == DW_TAG_pointer_type ? type_of(pointer) : std::nullopt;
      found = target ? std::optional(bare(*target)) : std::nullopt;
    }
    return false;  // `this` is the first
  });
  return found;
}

/// The function itself and its origins: any of them may have the attribute.
std::vector<Dwarf_Die> instances(Dwarf_Die die) {
  std::vector<Dwarf_Die> all = {die};
  Dwarf_Attribute attribute;
  for (int step = 0; step < most_type_references; ++step) {
    Dwarf_Die next;
    if (dwarf_formref_die(dwarf_attr(&all.back(), DW_AT_abstract_origin, &attribute), &next) == nullptr &&
        dwarf_formref_die(dwarf_attr(&all.back(), DW_AT_specification, &attribute), &next) == nullptr) {
      break;
    }
    all.push_back(next);
  }
  return all;
}

std::optional<Dwarf_Die> by_library(Dwarf_Die& scope) {
  for (Dwarf_Die& instance : instances(scope)) {
    if (is_maker(name_of(instance))) {
      if (const auto type = first_type_argument(instance)) {
        return type;
      }
    }
    auto owner = class_of(instance);
    if (owner && is_allocator(name_of(*owner))) {
      return first_type_argument(*owner);
    }
  }
  return std::nullopt;
}

/// A variable of `scope` or of the blocks in it that is declared on `line` and points to something.
std::optional<Dwarf_Die> by_variable(Dwarf_Die& scope, int line, WalkBudget& budget, int depth) {
  std::optional<Dwarf_Die> found;
  for_each_child(scope, budget, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    int declared = 0;
    if (tag == DW_TAG_variable && dwarf_decl_line(&child, &declared) == 0 && declared == line) {
      const auto type = type_of(child);
      found = type ? pointed_to(*type) : std::nullopt;
    } else if (tag == DW_TAG_lexical_block && depth < deepest_block) {
      found = by_variable(child, line, budget, depth + 1);
    }
    return !found;
  });
  return found;
}

int call_line(Dwarf_Die& inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  return dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &line) == 0 ? static_cast<int>(line) : 0;
}

}  // namespace

std::optional<Dwarf_Die> allocated_type(Unit& unit, std::uint64_t address) {
  std::vector<Dwarf_Die> scopes = DebugInfo::scopes_at(unit, address);
  const auto row = line_at(unit, address);
  int line = row ? static_cast<int>(row->source.line) : 0;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (auto type = by_library(*scope)) {
      return type;
    }
    WalkBudget budget(scope_walk_steps);
    if (auto type = line != 0 ? by_variable(*scope, line, budget, 0) : std::nullopt) {
      return type;
    }
    line = dwarf_tag(&*scope) == DW_TAG_inlined_subroutine ? call_line(*scope) : 0;
  }
  return std::nullopt;
}

}  // namespace crosstalk::symbolizer
