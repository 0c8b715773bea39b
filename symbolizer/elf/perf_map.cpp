// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/perf_map.h"

#include <algorithm>
#include <charconv>

#include "symbolizer/elf/text_file.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int map_overlap_limit = 16;

/// Takes a hexadecimal number, with or without 0x, and the blanks behind it from the front of `line`.
std::optional<std::uint64_t> take_number(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) {
    line.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  if (error != std::errc()) {
    return std::nullopt;
  }
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  const std::size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
  if (blanks == 0) {
    return std::nullopt;
  }
  line.remove_prefix(blanks);
  return value;
}

}  // namespace

PerfMap::PerfMap(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    const auto begin = take_number(line);
    const auto bytes = begin ? take_number(line) : std::nullopt;
    if (bytes && *bytes > 0 && !line.empty()) {
      symbols_.push_back({*begin, *bytes, std::string(line)});
    }
  }
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
  // Keep the last of equal ones.
  const auto kept = std::unique(symbols_.rbegin(), symbols_.rend(),
                                [](const Symbol& a, const Symbol& b) { return a.begin == b.begin; });
  symbols_.erase(symbols_.begin(), kept.base());
}

std::optional<PerfMap> PerfMap::read(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? std::optional(PerfMap(*text)) : std::nullopt;
}

std::optional<std::string> PerfMap::at(std::uint64_t address) const {
  auto next = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                               [](std::uint64_t a, const Symbol& symbol) { return a < symbol.begin; });
  for (int tries = 0; next != symbols_.begin() && tries < map_overlap_limit; ++tries) {
    --next;
    if (address - next->begin < next->bytes) {
      return next->name;
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::symbolizer
