// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/process_maps.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/number.h"

namespace crosstalk::observer {
namespace {

/// Takes a number off the front of `text`, with the character behind it.
bool take_number(std::string_view& text, int base, char behind, std::uint64_t& value) {
  const auto number = take_leading<std::uint64_t>(text, base);
  if (!number || !text.starts_with(behind)) {
    return false;
  }
  text.remove_prefix(1);
  value = *number;
  return true;
}

// begin-end perms offset major:minor inode   path
std::optional<Mapping> parse_line(std::string_view line) {
  constexpr std::size_t permissions = 4;
  Mapping mapping;
  if (!take_number(line, 16, '-', mapping.begin) || !take_number(line, 16, ' ', mapping.end) ||
      mapping.end <= mapping.begin || line.size() <= permissions) {
    return std::nullopt;
  }
  mapping.readable = line[0] == 'r';
  mapping.writable = line[1] == 'w';
  mapping.executable = line[2] == 'x';
  mapping.shared = line[3] == 's';
  line.remove_prefix(permissions + 1);
  std::uint64_t minor = 0;
  if (!take_number(line, 16, ' ', mapping.offset) || !take_number(line, 16, ':', mapping.device) ||
      !take_number(line, 16, ' ', minor)) {
    return std::nullopt;
  }
  mapping.device = mapping.device << 32U | minor;
  const auto inode = take_leading<std::uint64_t>(line);
  if (!inode) {
    return std::nullopt;
  }
  mapping.inode = *inode;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view deleted = " (deleted)";
  if (line.ends_with(deleted)) {
    line.remove_suffix(deleted.size());
    mapping.deleted = true;
  }
  mapping.path = line;
  return mapping;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto mapping = parse_line(text.substr(0, end))) {
      maps.push_back(std::move(*mapping));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(maps.begin(), maps.end(), [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  return maps;
}

std::vector<Mapping> of_files_or_code(const std::vector<Mapping>& maps) {
  std::vector<Mapping> chosen;
  std::copy_if(maps.begin(), maps.end(), std::back_inserter(chosen),
               [](const Mapping& mapping) { return mapping.inode != 0 || mapping.executable; });
  return chosen;
}

const Mapping* mapping_at(const std::vector<Mapping>& maps, std::uint64_t address) {
  const auto after = std::upper_bound(maps.begin(), maps.end(), address,
                                      [](std::uint64_t at, const Mapping& mapping) { return at < mapping.begin; });
  if (after == maps.begin()) {
    return nullptr;
  }
  const Mapping& mapping = *std::prev(after);
  return mapping.contains(address) ? &mapping : nullptr;
}

bool is_own_data(const std::vector<Mapping>& maps, std::uint64_t address) {
  const auto of_file = [](const Mapping& mapping) { return mapping.inode != 0 && !mapping.shared; };
  const Mapping* const mapping = mapping_at(maps, address);
  if (mapping == nullptr || of_file(*mapping) || mapping->path == "[heap]") {
    return mapping != nullptr;
  }
  // Variables without initial values lie in an anonymous mapping, right behind the file's.
  const Mapping* const before = mapping_at(maps, mapping->begin - 1);
  return mapping->path.empty() && !mapping->shared && before != nullptr && of_file(*before);
}

bool is_watchable(const Mapping* mapping) {
  return mapping != nullptr && mapping->readable && !mapping->path.starts_with("[v");  // [vvar], [vdso], [vsyscall]
}

watch_policy::SharedLine shared_line_in(const Mapping& mapping, std::uint64_t address) {
  watch_policy::SharedLine line;
  if (mapping.shared && mapping.inode != 0) {
    line.device = mapping.device;
    line.inode = mapping.inode;
    line.file_offset = (mapping.offset + (address - mapping.begin)) & ~(std::uint64_t{profile::cache_line} - 1);
    line.known = true;
  }
  return line;
}

std::uint64_t address_of(const std::vector<Mapping>& maps, const watch_policy::SharedLine& line) {
  const auto found = std::find_if(maps.begin(), maps.end(), [&](const Mapping& mapping) {
    return mapping.shared && mapping.readable && mapping.inode == line.inode && mapping.device == line.device &&
           line.file_offset >= mapping.offset && line.file_offset - mapping.offset < mapping.end - mapping.begin;
  });
  return found == maps.end() ? 0 : found->begin + (line.file_offset - found->offset);
}

}  // namespace crosstalk::observer
