// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/perf_map.h"

#include <algorithm>
#include <iterator>

#include "base/number.h"

namespace crosstalk::symbolizer {
namespace {

/// Takes a hexadecimal number, with or without 0x, and the blanks after it from the front of `line`.
std::optional<std::uint64_t> take_number(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) {
    line.remove_prefix(2);
  }
  const auto value = take_leading<std::uint64_t>(line, 16);
  if (!value) {
    return std::nullopt;
  }
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
    if (bytes && *bytes > 0 && *bytes <= UINT64_MAX - *begin && !line.empty() && symbols_.size() < none) {
      add(*begin, *begin + *bytes, line);
    }
  }
}

void PerfMap::add(std::uint64_t begin, std::uint64_t end, std::string_view name) {
  const auto number = static_cast<std::uint32_t>(symbols_.size());
  Symbol symbol{begin, end, std::string(name), none, false};
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin() && std::prev(piece)->second.end > begin) {
    --piece;
  }
  while (piece != pieces_.end() && piece->first < end) {
    const auto [old_begin, old] = *piece;
    piece = pieces_.erase(piece);
    Symbol& earlier = symbols_[old.symbol];
    if (earlier.begin < begin && end <= earlier.end) {
      symbol.around = old.symbol;
    } else {
      earlier.replaced = true;
    }
    if (old_begin < begin) {
      pieces_.emplace(old_begin, Piece{begin, old.symbol});
    }
    if (old.end > end) {
      pieces_.emplace(end, Piece{old.end, old.symbol});
    }
  }
  pieces_.insert_or_assign(begin, Piece{end, number});
  symbols_.push_back(std::move(symbol));
}

std::size_t PerfMap::size() const {
  return static_cast<std::size_t>(
      std::count_if(symbols_.begin(), symbols_.end(), [](const Symbol& symbol) { return !symbol.replaced; }));
}

std::optional<std::string> PerfMap::at(std::uint64_t address) const {
  auto piece = pieces_.upper_bound(address);
  if (piece == pieces_.begin() || address >= (--piece)->second.end) {
    return std::nullopt;
  }
  // The other bytes of a replaced symbol belong to the symbol around it, which came earlier: the numbers decrease.
  std::uint32_t at = piece->second.symbol;
  while (at != none && (symbols_[at].replaced || address < symbols_[at].begin || address >= symbols_[at].end)) {
    at = symbols_[at].around;
  }
  return at != none ? std::optional(symbols_[at].name) : std::nullopt;
}

}  // namespace crosstalk::symbolizer
