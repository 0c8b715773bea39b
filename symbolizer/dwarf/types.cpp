// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/types.h"

#include <dwarf.h>

#include <vector>

#include "symbolizer/dwarf/debug_info.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int deepest_type = 64;  // nesting of types, and of their names
constexpr std::uint64_t type_walk_steps = 1'000'000;

std::optional<std::uint64_t> number(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr_integrate(&die, name, &attribute), &value) != 0) {
    return std::nullopt;
  }
  return value;
}

bool is_alias(int tag) {
  return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
         tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

bool has_members(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

Dwarf_Die strip(Dwarf_Die type) {
  for (int depth = 0; depth < deepest_type && is_alias(dwarf_tag(&type)); ++depth) {
    const auto inner = type_of(type);
    if (!inner) {
      break;
    }
    type = *inner;
  }
  return type;
}

std::optional<std::uint64_t> dimension(Dwarf_Die& subrange) {
  if (const auto count = number(subrange, DW_AT_count)) {
    return count;
  }
  const auto last = number(subrange, DW_AT_upper_bound);
  return last && *last != UINT64_MAX ? std::optional(*last + 1) : std::nullopt;
}

std::vector<std::uint64_t> dimensions(Dwarf_Die& array) {
  std::vector<std::uint64_t> counts;
  WalkBudget budget(type_walk_steps);
  for_each_child(array, budget, [&](Dwarf_Die& child) {
    if (dwarf_tag(&child) == DW_TAG_subrange_type) {
      counts.push_back(dimension(child).value_or(0));
    }
    return counts.size() < deepest_type;
  });
  return counts;
}

std::string name_of(Dwarf_Die type, int depth);

std::string name_of_target(Dwarf_Die& type, int depth) {
  const auto target = type_of(type);
  return target ? name_of(*target, depth + 1) : "void";
}

/// The type's name with qualifiers in the customary order, whatever the order of their entries.
std::string qualified_name(Dwarf_Die type, int depth) {
  bool is_const = false;
  bool is_volatile = false;
  bool is_atomic = false;
  for (; depth <= deepest_type && dwarf_tag(&type) != DW_TAG_typedef && is_alias(dwarf_tag(&type)); ++depth) {
    is_const = is_const || dwarf_tag(&type) == DW_TAG_const_type;
    is_volatile = is_volatile || dwarf_tag(&type) == DW_TAG_volatile_type;
    is_atomic = is_atomic || dwarf_tag(&type) == DW_TAG_atomic_type;
    const auto target = type_of(type);
    const std::string qualifiers =
        std::string(is_const ? "const " : "") + (is_volatile ? "volatile " : "") + (is_atomic ? "_Atomic " : "");
    if (!target) {
      return qualifiers + "void";
    }
    type = *target;
    if (dwarf_tag(&type) == DW_TAG_typedef || !is_alias(dwarf_tag(&type))) {
      return qualifiers + name_of(type, depth + 1);
    }
  }
  return "...";
}

std::string name_of(Dwarf_Die type, int depth) {
  if (depth > deepest_type) {
    return "...";
  }
  if (const char* name = dwarf_diename(&type)) {
    return name;
  }
  switch (dwarf_tag(&type)) {
    case DW_TAG_pointer_type:
      return name_of_target(type, depth) + "*";
    case DW_TAG_reference_type:
      return name_of_target(type, depth) + "&";
    case DW_TAG_rvalue_reference_type:
      return name_of_target(type, depth) + "&&";
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_atomic_type:
    case DW_TAG_restrict_type:
      return qualified_name(type, depth);
    case DW_TAG_array_type: {
      std::string text = name_of_target(type, depth);
      for (const std::uint64_t count : dimensions(type)) {
        text += "[" + (count != 0 ? std::to_string(count) : "") + "]";
      }
      return text;
    }
    case DW_TAG_subroutine_type:
      return name_of_target(type, depth) + "()";
    case DW_TAG_union_type:
      return "union";
    case DW_TAG_enumeration_type:
      return "enum";
    default:
      return "struct";
  }
}

struct Member {
  std::string name;  // empty for a base class or an anonymous struct
  Dwarf_Die type{};
  std::uint64_t offset = 0;
};

std::optional<std::uint64_t> member_offset(Dwarf_Die& member) {
  if (const auto bits = number(member, DW_AT_data_bit_offset)) {
    return *bits / 8;
  }
  return dwarf_hasattr(&member, DW_AT_data_member_location) != 0 ? number(member, DW_AT_data_member_location)
                                                                 : std::optional<std::uint64_t>(0);
}

/// The member of a struct, class or union that holds byte `offset`.
std::optional<Member> member_at(Dwarf_Die& type, std::uint64_t offset) {
  std::optional<Member> found;
  WalkBudget budget(type_walk_steps);
  for_each_child(type, budget, [&](Dwarf_Die& child) {
    const int tag = dwarf_tag(&child);
    // A static member has only a declaration: it is not in the object.
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(&child, DW_AT_declaration) != 0 ||
        dwarf_hasattr(&child, DW_AT_external) != 0) {
      return true;
    }
    const auto begin = member_offset(child);
    const auto inner = type_of(child);
    const auto bytes = inner ? size_of(*inner) : std::nullopt;
    if (!begin || !bytes || offset < *begin || offset - *begin >= *bytes) {
      return true;
    }
    const char* name = tag == DW_TAG_member ? dwarf_diename(&child) : nullptr;
    found = Member{name != nullptr ? name : "", *inner, *begin};
    return false;
  });
  return found;
}

bool reserved(const std::string& name) {
  return name.size() > 1 && name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

/// The state of the search: an object of `type` at offset `path.offset` in the whole object.
struct Place {
  FieldPath path;
  Dwarf_Die type{};
};

/// Moves from an array to its element at `place.path.offset + offset`. False if it cannot.
bool enter_array(Place& place, Dwarf_Die& array, std::uint64_t& offset) {
  const auto element = type_of(array);
  const auto bytes = element ? size_of(*element) : std::nullopt;
  if (!bytes || *bytes == 0) {
    return false;
  }
  std::uint64_t index = offset / *bytes;
  place.path.offset += index * *bytes;
  offset %= *bytes;
  const auto counts = dimensions(array);
  std::string text;
  for (std::size_t i = counts.size(); i-- > 0;) {
    const bool outermost = i == 0;
    if (!outermost && counts[i] == 0) {
      return false;
    }
    text.insert(0, "[" + std::to_string(outermost ? index : index % counts[i]) + "]");
    index = outermost ? 0 : index / counts[i];
  }
  place.path.path += text;
  place.type = *element;
  return true;
}

bool enter_member(Place& place, Dwarf_Die& type, std::uint64_t& offset) {
  const auto member = member_at(type, offset);
  if (!member) {
    return false;
  }
  const bool hidden = reserved(member->name);
  Dwarf_Die inner = strip(member->type);
  // Enters arrays of libraries for their elements (std::array), except those that only pad a type (pthread_barrier_t).
  if (hidden && (dwarf_tag(&inner) != DW_TAG_array_type || dwarf_tag(&type) == DW_TAG_union_type)) {
    return false;
  }
  if (!hidden && !member->name.empty()) {
    place.path.path += (place.path.path.empty() ? "" : ".") + member->name;
  }
  place.path.offset += member->offset;
  offset -= member->offset;
  place.type = member->type;
  return true;
}

/// True if the step added nothing to the path: a base class without a visible member is no field of its own.
bool is_unnamed_step(const Place& before, const Place& after) { return before.path.path == after.path.path; }

}  // namespace

std::optional<Dwarf_Die> type_of(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (dwarf_formref_die(dwarf_attr_integrate(&die, DW_AT_type, &attribute), &type) == nullptr) {
    return std::nullopt;
  }
  return type;
}

std::optional<std::uint64_t> size_of(Dwarf_Die type) {
  Dwarf_Word bytes = 0;
  if (dwarf_aggregate_size(&type, &bytes) != 0) {
    return std::nullopt;
  }
  return bytes;
}

std::string type_name(Dwarf_Die& type) { return name_of(type, 0); }

std::optional<FieldPath> field_at(Dwarf_Die type, std::uint64_t offset) {
  const auto bytes = size_of(type);
  if (!bytes || offset >= *bytes) {
    return std::nullopt;
  }
  Place place{{"", "", 0, *bytes}, type};
  Place named = place;  // the last place that added to the path
  for (int depth = 0; depth < deepest_type; ++depth) {
    Dwarf_Die bare = strip(place.type);
    const int tag = dwarf_tag(&bare);
    const Place before = place;
    const bool entered = tag == DW_TAG_array_type ? enter_array(place, bare, offset)
                         : has_members(tag)       ? enter_member(place, bare, offset)
                                                  : false;
    if (!entered) {
      break;
    }
    if (!is_unnamed_step(before, place)) {
      named = place;
    }
  }
  named.path.type = type_name(named.type);
  named.path.bytes = size_of(named.type).value_or(0);
  return named.path;
}

}  // namespace crosstalk::symbolizer
