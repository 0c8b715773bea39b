// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/go_functions.h"

#include <gelf.h>

#include <cstring>
#include <optional>
#include <span>

#include "symbolizer/elf/bytes.h"

namespace crosstalk::symbolizer {
namespace {

// The header, by src/internal/abi/symtab.go and src/runtime/symtab.go: magic, two zeros, the least size of an
// instruction and of a pointer, then words.
constexpr std::uint8_t magic_of_1_18 = 0xf0;  // 0xfffffff0
constexpr std::uint8_t magic_of_1_20 = 0xf1;
constexpr std::uint64_t functions_at = 8, text_at = 24, names_at = 32, entries_at = 64;
constexpr std::uint64_t entry_bytes = 8;  // a function's begin, behind the text's, and where its record is
constexpr std::uint64_t name_in_record = 4;

/// In a position-independent program the word is 0 in the file, and a relocation fills it.
std::uint64_t relocated(const ElfFile& file, std::uint64_t address) {
  for (const Section& section : file.sections()) {
    Elf_Data* data = section.type == SHT_RELA ? elf_getdata(section.handle, nullptr) : nullptr;
    GElf_Rela relocation;
    for (int i = 0; data != nullptr && gelf_getrela(data, i, &relocation) != nullptr; ++i) {
      if (relocation.r_offset == address && GELF_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE) {
        return static_cast<std::uint64_t>(relocation.r_addend);
      }
    }
  }
  return 0;
}

/// A linker that is not Go's own puts the table of a position-independent program among other data.
struct Table {
  Bytes bytes;
  std::uint64_t address = 0;
};

std::optional<Table> find_table(const ElfFile& file) {
  constexpr std::uint64_t alignment = 32;
  constexpr std::uint8_t rest_of_magic[] = {0xff, 0xff, 0xff, 0, 0, 1, 8};
  for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro"}) {
    const Section* section = file.section(name);
    const Bytes bytes = section != nullptr ? ElfFile::contents(*section) : Bytes();
    for (std::uint64_t at = 0; at + entries_at < bytes.size(); at += alignment) {
      if ((bytes[at] == magic_of_1_18 || bytes[at] == magic_of_1_20) &&
          std::memcmp(bytes.data() + at + 1, rest_of_magic, sizeof rest_of_magic) == 0) {
        return Table{bytes.subspan(at), section->address + at};
      }
    }
  }
  return std::nullopt;
}

/// `entries`: begins of functions and places of their records, then these records.
std::vector<GoFunction> read_entries(Bytes entries, std::uint64_t count, Bytes names, std::uint64_t text) {
  std::vector<GoFunction> functions;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto first = value_at<std::uint32_t>(entries, i * entry_bytes);
    const auto record = value_at<std::uint32_t>(entries, i * entry_bytes + 4);
    const auto last = value_at<std::uint32_t>(entries, (i + 1) * entry_bytes);
    const auto name = record ? value_at<std::uint32_t>(entries, *record + name_in_record) : std::nullopt;
    const std::string_view words = name ? name_at(names, *name) : std::string_view();
    if (first && last && *first < *last && !words.empty()) {
      functions.push_back({{text + *first, text + *last}, words});
    }
  }
  return functions;
}

}  // namespace

std::vector<GoFunction> go_functions(const ElfFile& file) {
  const auto table = find_table(file);
  const Bytes bytes = table ? table->bytes : Bytes();
  const auto count = value_at<std::uint64_t>(bytes, functions_at);
  const auto text = value_at<std::uint64_t>(bytes, text_at);
  const auto names = value_at<std::uint64_t>(bytes, names_at);
  const auto entries = value_at<std::uint64_t>(bytes, entries_at);
  constexpr std::uint64_t most_functions = 4'000'000;  // a hundred times those of a large program
  if (!entries || *count > most_functions || *entries > bytes.size() || *names > bytes.size() ||
      *count > (bytes.size() - *entries) / entry_bytes) {
    return {};
  }
  const std::uint64_t begin = *text != 0 ? *text : relocated(file, table->address + text_at);
  if (begin > UINT64_MAX - UINT32_MAX) {
    return {};
  }
  return read_entries(bytes.subspan(*entries), *count, bytes.subspan(*names), begin);
}

}  // namespace crosstalk::symbolizer
