// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>

#include <algorithm>
#include <string_view>

#include "base/build_id.h"
#include "symbolizer/elf/demangle.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t most_units = 1U << 20U;
constexpr std::size_t most_ranges = 1U << 20U;  // of one DIE
constexpr int deepest_nesting = 256;
constexpr int most_references = 16;
constexpr int overlap_limit = 16;

bool by_begin(const FunctionEntry& a, const FunctionEntry& b) { return a.range.begin < b.range.begin; }

bool holds_functions(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_subprogram:  // nested functions of C, Fortran, Ada
    case DW_TAG_lexical_block:
    case DW_TAG_class_type:  // members of local classes
    case DW_TAG_structure_type:
      return true;
    default:
      return false;
  }
}

bool names_scope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
}

/// True if a class without a name is a lambda: it has a member for calls. Compilers do not name the classes of lambdas.
bool is_lambda(Dwarf_Die& nameless_class, WalkBudget& budget) {
  bool called = false;
  for_each_child(nameless_class, budget, [&](Dwarf_Die& child) {
    const char* name = dwarf_tag(&child) == DW_TAG_subprogram ? dwarf_diename(&child) : nullptr;
    called = name != nullptr && std::string_view(name).starts_with("operator()");
    return !called;
  });
  return called;
}

std::string inner_scope(const std::string& scope, Dwarf_Die& die, WalkBudget& budget) {
  const char* name = dwarf_diename(&die);
  const std::string own = name != nullptr                       ? name
                          : dwarf_tag(&die) == DW_TAG_namespace ? "(anonymous namespace)"
                          : is_lambda(die, budget)              ? "{lambda}"
                                                                : "(anonymous)";
  return scope.empty() ? own : scope + "::" + own;
}

bool has_linkage_name(Dwarf_Die& die) {
  return dwarf_hasattr(&die, DW_AT_linkage_name) != 0 || dwarf_hasattr(&die, DW_AT_MIPS_linkage_name) != 0;
}

/// `function`: the function that is or contains `parent`, if a local class takes its name for a scope; or null.
void collect_functions(Unit& unit, Dwarf_Die& parent, const std::string& scope, Dwarf_Die* function, WalkBudget& budget,
                       int depth) {
  if (depth > deepest_nesting) {
    return;
  }
  for_each_child(parent, budget, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) {
      for (const AddressRange& range : code_ranges(child)) {
        unit.functions.push_back({range, child});
      }
      if (!scope.empty() && !has_linkage_name(child)) {
        unit.scopes.emplace(dwarf_dieoffset(&child), scope);
      }
    }
    if (!holds_functions(tag) || dwarf_haschildren(&child) != 1) {
      return true;
    }
    if (names_scope(tag)) {
      const std::string around = function != nullptr ? function_name(unit, *function) : scope;
      collect_functions(unit, child, inner_scope(around, child, budget), nullptr, budget, depth + 1);
    } else {
      collect_functions(unit, child, scope, tag == DW_TAG_subprogram ? &child : function, budget, depth + 1);
    }
    return true;
  });
}

bool states_no_code(Dwarf_Die& die) {
  return dwarf_hasattr(&die, DW_AT_low_pc) == 0 && dwarf_hasattr(&die, DW_AT_ranges) == 0;
}

/// Finds the child scope of `scope` that holds `address`. Searches inside blocks without ranges of their own.
bool descend(Dwarf_Die& scope, std::uint64_t address, WalkBudget& budget, int depth, Dwarf_Die& found) {
  bool done = false;
  for_each_child(scope, budget, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine && tag != DW_TAG_try_block &&
        tag != DW_TAG_catch_block) {
      return true;
    }
    if (dwarf_haspc(&child, address) == 1) {
      found = child;
      done = true;
    } else if (tag == DW_TAG_lexical_block && depth < deepest_nesting && states_no_code(child)) {
      done = descend(child, address, budget, depth + 1, found);
    }
    return !done;
  });
  return done;
}

/// The file that a skeleton unit names, with its directory.
std::string split_name(Dwarf_Die& skeleton) {
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  for (const unsigned each : {DW_AT_dwo_name, DW_AT_GNU_dwo_name}) {
    name = name != nullptr ? name : dwarf_formstring(dwarf_attr(&skeleton, each, &attribute));
  }
  const char* folder = dwarf_formstring(dwarf_attr(&skeleton, DW_AT_comp_dir, &attribute));
  if (name == nullptr) {
    return "a .dwo file";
  }
  return *name == '/' || folder == nullptr ? name : std::string(folder) + "/" + name;
}

}  // namespace

std::vector<AddressRange> code_ranges(Dwarf_Die& die) {
  std::vector<AddressRange> ranges;
  if (states_no_code(die)) {
    return ranges;
  }
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t offset = 0;
  while (ranges.size() < most_ranges && (offset = dwarf_ranges(&die, offset, &base, &begin, &end)) > 0) {
    if (begin != 0 && begin < end) {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

std::unique_ptr<DebugInfo> DebugInfo::open(const ElfFile& file) {
  if (!file.has_contents(".debug_info") && !file.has_contents(".zdebug_info")) {
    return nullptr;
  }
  Dwarf* dwarf = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (dwarf == nullptr) {
    return nullptr;
  }
  std::unique_ptr<DebugInfo> info(new DebugInfo(dwarf));
  info->list_units();
  return info->units_.empty() ? nullptr : std::move(info);
}

void DebugInfo::list_units() {
  // dwarf_next_unit, not dwarf_get_units: the latter opens every .dwo file.
  Dwarf_Half version = 0;
  Dwarf_Off offset = 0;
  Dwarf_Off next = 0;
  std::size_t header_bytes = 0;
  while (units_.size() < most_units && dwarf_next_unit(dwarf_.get(), offset, &next, &header_bytes, &version, nullptr,
                                                       nullptr, nullptr, nullptr, nullptr) == 0) {
    Unit entry;
    if (dwarf_offdie(dwarf_.get(), offset + header_bytes, &entry.root) != nullptr) {
      const int tag = dwarf_tag(&entry.root);
      if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit || tag == DW_TAG_partial_unit) {
        for (const AddressRange& range : code_ranges(entry.root)) {
          ranges_.push_back({range, static_cast<std::uint32_t>(units_.size())});
        }
        units_.push_back(std::move(entry));
      }
    }
    if (next <= offset) {
      break;
    }
    offset = next;
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.range.begin < b.range.begin; });
}

Unit* DebugInfo::unit_at(std::uint64_t address) {
  auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                               [](std::uint64_t a, const UnitRange& entry) { return a < entry.range.begin; });
  for (int tries = 0; next != ranges_.begin() && tries < overlap_limit; ++tries) {
    --next;
    if (next->range.contains(address)) {
      return &units_[next->unit];
    }
  }
  return nullptr;
}

Dwarf_Die& DebugInfo::content(Unit& unit) {
  if (!unit.content_known) {
    unit.content_known = true;
    unit.content = unit.root;
    Dwarf_Die split{};
    std::uint8_t type = 0;
    if (dwarf_cu_info(unit.root.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        type == DW_UT_skeleton) {
      if (split.addr != nullptr) {
        unit.content = split;
      } else {
        unit.split_missing = split_name(unit.root);
      }
    }
  }
  return unit.content;
}

std::optional<DebugInfo::Supplement> DebugInfo::wanted_supplement() const {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf_.get(), &name, &id);
  if (bytes <= 0 || dwarf_getalt(dwarf_.get()) != nullptr) {
    return std::nullopt;
  }
  return Supplement{name, hexadecimal({static_cast<const std::byte*>(id), static_cast<std::size_t>(bytes)})};
}

void DebugInfo::supplement(ElfFile file) {
  supplement_file_ = std::move(file);
  supplement_.reset(dwarf_begin_elf(supplement_file_->elf(), DWARF_C_READ, nullptr));
  if (supplement_) {
    dwarf_setalt(dwarf_.get(), supplement_.get());
  }
}

std::string DebugInfo::missing() const {
  if (const auto wanted = wanted_supplement()) {
    return "refers to " + wanted->name +
           " (made by dwz), which is not here: names and types that are there are not "
           "known; install it, or give it under --sysroot";
  }
  const auto lacks = [](const Unit& unit) { return !unit.split_missing.empty(); };
  const auto first = std::find_if(units_.begin(), units_.end(), lacks);
  const auto count = std::count_if(units_.begin(), units_.end(), lacks);
  if (count == 0) {
    return {};
  }
  return "is in " + first->split_missing + (count > 1 ? " and " + std::to_string(count - 1) + " more files" : "") +
         ", which " + (count > 1 ? "are" : "is") + " not here: inlined functions and variables have no names";
}

void DebugInfo::list_functions(Unit& unit) {
  if (unit.functions_known) {
    return;
  }
  unit.functions_known = true;
  WalkBudget budget(unit_walk_steps);
  collect_functions(unit, content(unit), {}, nullptr, budget, 0);
  std::stable_sort(unit.functions.begin(), unit.functions.end(), by_begin);
}

std::vector<Dwarf_Die> DebugInfo::scopes_at(Unit& unit, std::uint64_t address) {
  list_functions(unit);
  std::vector<Dwarf_Die> scopes;
  auto next = std::upper_bound(unit.functions.begin(), unit.functions.end(), address,
                               [](std::uint64_t a, const FunctionEntry& entry) { return a < entry.range.begin; });
  for (int tries = 0; next != unit.functions.begin() && tries < overlap_limit && scopes.empty(); ++tries) {
    --next;
    if (next->range.contains(address)) {
      scopes.push_back(next->die);
    }
  }
  if (scopes.empty()) {
    return scopes;
  }
  WalkBudget budget(unit_walk_steps);
  Dwarf_Die scope = scopes.back();
  Dwarf_Die inner{};
  for (int depth = 0; depth < deepest_nesting && descend(scope, address, budget, 0, inner); ++depth) {
    if (dwarf_tag(&inner) == DW_TAG_inlined_subroutine) {
      scopes.push_back(inner);
    }
    scope = inner;
  }
  return scopes;
}

std::string function_name(const Unit& unit, Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (const char* text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
        text != nullptr && *text != '\0') {
      return demangle(text);
    }
  }
  const char* name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_name, &attribute));
  if (name == nullptr) {
    return {};
  }
  // GCC names the parts that it makes of a function, like a parallel region's, by their symbols.
  if (std::string shown = demangle(name); shown != name) {
    return shown;
  }
  // From a concrete instance over its abstract one to the declaration in a class: any of them may be in a scope.
  Dwarf_Die at = die;
  for (int step = 0; step < most_references; ++step) {
    if (const auto scope = unit.scopes.find(dwarf_dieoffset(&at)); scope != unit.scopes.end()) {
      return scope->second + "::" + name;
    }
    Dwarf_Die next;
    if (dwarf_formref_die(dwarf_attr(&at, DW_AT_abstract_origin, &attribute), &next) == nullptr &&
        dwarf_formref_die(dwarf_attr(&at, DW_AT_specification, &attribute), &next) == nullptr) {
      break;
    }
    at = next;
  }
  return name;
}

}  // namespace crosstalk::symbolizer
