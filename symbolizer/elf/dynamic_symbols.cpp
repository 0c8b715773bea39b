// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/dynamic_symbols.h"

#include <algorithm>
#include <map>
#include <optional>

#include "symbolizer/elf/bytes.h"

namespace crosstalk::symbolizer {
namespace {

/// The value with the number `index` of a table.
template <class Value>
std::optional<Value> entry_at(Bytes table, std::uint64_t index) {
  return index > table.size() ? std::nullopt : value_at<Value>(table, index * sizeof(Value));
}

/// The addresses and sizes in the dynamic segment, by their tags.
std::map<std::int64_t, std::uint64_t> dynamic_entries(const ElfFile& file) {
  std::map<std::int64_t, std::uint64_t> entries;
  std::size_t count = 0;
  GElf_Phdr header;
  if (elf_getphdrnum(file.elf(), &count) != 0) {
    return entries;
  }
  for (std::size_t i = 0; i < count && gelf_getphdr(file.elf(), static_cast<int>(i), &header) != nullptr; ++i) {
    if (header.p_type != PT_DYNAMIC) {
      continue;
    }
    const Bytes bytes = file.bytes_at(header.p_vaddr);
    for (std::uint64_t at = 0; at < header.p_filesz / sizeof(Elf64_Dyn); ++at) {
      const auto entry = entry_at<Elf64_Dyn>(bytes, at);
      if (!entry || entry->d_tag == DT_NULL) {
        break;
      }
      entries.emplace(entry->d_tag, entry->d_un.d_val);
    }
  }
  return entries;
}

/// The number of symbols by a GNU hash table: the chain of the last bucket ends with the last symbol.
std::uint64_t count_by_gnu_hash(Bytes table) {
  const auto buckets = entry_at<std::uint32_t>(table, 0), first = entry_at<std::uint32_t>(table, 1),
             filter_words = entry_at<std::uint32_t>(table, 2);
  if (!filter_words) {
    return 0;
  }
  const std::uint64_t begin = 4 + std::uint64_t{2} * *filter_words;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < *buckets; ++i) {
    const auto bucket = entry_at<std::uint32_t>(table, begin + i);
    if (!bucket) {
      return 0;
    }
    last = std::max<std::uint64_t>(last, *bucket);
  }
  while (last >= *first) {
    const auto hash = entry_at<std::uint32_t>(table, begin + *buckets + last - *first);
    ++last;
    if (!hash || (*hash & 1U) != 0) {
      return hash ? last : 0;
    }
  }
  return 0;
}

}  // namespace

std::vector<DynamicSymbol> dynamic_symbols(const ElfFile& file) {
  const auto entries = dynamic_entries(file);
  const auto table = [&](std::int64_t tag) {
    const auto found = entries.find(tag);
    return found != entries.end() ? file.bytes_at(found->second) : Bytes();
  };
  const Bytes symbols = table(DT_SYMTAB), names = table(DT_STRTAB);
  const std::uint64_t count = entries.contains(DT_HASH) ? entry_at<std::uint32_t>(table(DT_HASH), 1).value_or(0)
                                                        : count_by_gnu_hash(table(DT_GNU_HASH));
  std::vector<DynamicSymbol> found;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto symbol = entry_at<Elf64_Sym>(symbols, i);
    if (!symbol) {
      break;
    }
    if (symbol->st_name < names.size()) {
      found.push_back({*symbol, name_at(names, symbol->st_name)});
    }
  }
  return found;
}

}  // namespace crosstalk::symbolizer
