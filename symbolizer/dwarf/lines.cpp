// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/lines.h"

#include <dwarf.h>

#include <algorithm>

namespace crosstalk::symbolizer {
namespace {

/// Line and file of the call that a DW_TAG_inlined_subroutine replaced.
SourceLine call_site(Dwarf_Die& inlined) {
  SourceLine site;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &value) == 0 && value <= UINT32_MAX) {
    site.line = static_cast<std::uint32_t>(value);
  }
  site.file = file_of(inlined, DW_AT_call_file);
  return site;
}

}  // namespace

std::string absolute_file(Dwarf_Die& unit_root, const char* name) {
  if (name == nullptr || *name == '\0') {
    return {};
  }
  if (*name == '/') {
    return name;
  }
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(&unit_root, DW_AT_comp_dir, &attribute));
  return folder == nullptr || *folder == '\0' ? std::string(name) : std::string(folder) + "/" + name;
}

std::string file_of(Dwarf_Die& die, unsigned attribute_name) {
  Dwarf_Attribute attribute;
  Dwarf_Word index = 0;
  Dwarf_Die root;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  // Not dwarf_decl_file: it asserts that the unit has a file table. The index refers to the unit that states it.
  if (dwarf_attr_integrate(&die, attribute_name, &attribute) == nullptr || dwarf_formudata(&attribute, &index) != 0 ||
      dwarf_cu_die(attribute.cu, &root, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr ||
      dwarf_getsrcfiles(&root, &files, &count) != 0 || index >= count) {
    return {};
  }
  return absolute_file(root, dwarf_filesrc(files, index, nullptr, nullptr));
}

std::optional<LineRow> line_at(Unit& unit, std::uint64_t address) {
  Dwarf_Line* line = dwarf_getsrc_die(&unit.root, address);
  if (line == nullptr) {
    return std::nullopt;
  }
  LineRow row{{}, line};
  int number = 0;
  if (dwarf_lineno(line, &number) == 0 && number > 0) {
    row.source.line = static_cast<std::uint32_t>(number);
  }
  row.source.file = absolute_file(unit.root, dwarf_linesrc(line, nullptr, nullptr));
  return row;
}

std::vector<Frame> inline_chain(Unit& unit, std::uint64_t address, const SourceLine& line) {
  std::vector<Dwarf_Die> scopes = DebugInfo::scopes_at(unit, address);
  std::vector<Frame> frames;
  frames.reserve(scopes.size());
  SourceLine source = line;
  std::reverse(scopes.begin(), scopes.end());
  for (Dwarf_Die& scope : scopes) {
    const bool inlined = dwarf_tag(&scope) == DW_TAG_inlined_subroutine;
    frames.push_back({function_name(unit, scope), source, inlined});
    if (inlined) {
      source = call_site(scope);
    }
  }
  return frames;
}

}  // namespace crosstalk::symbolizer
