// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/jump_tables.h"

#include <algorithm>
#include <cstring>

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t look_back = 16;  // instructions before the jump
constexpr std::uint64_t most_entries = 4096;

struct Dispatch {
  std::uint64_t table = 0;
  std::uint64_t entries = 0;
  bool relative = false;
};

std::optional<Dispatch> dispatch_before(std::span<const Instruction> before, const ReadBytes& read) {
  std::optional<std::uint64_t> table;
  std::optional<std::uint64_t> base;
  bool offsets = false;
  const std::size_t count = std::min(before.size(), look_back);
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& instruction = before[before.size() - 1 - i];
    const Operands operands = table_operands(read(instruction.address), instruction.address);
    table = table ? table : operands.table_address;
    base = base ? base : operands.lea_address;
    offsets = offsets || operands.wide_load_scale.has_value();
    if (operands.compare_bound && *operands.compare_bound < most_entries) {
      if (offsets && base) {
        return Dispatch{*base, *operands.compare_bound + 1, true};
      }
      return table ? std::optional(Dispatch{*table, *operands.compare_bound + 1, false}) : std::nullopt;
    }
  }
  return std::nullopt;
}

template <class Entry>
Entry entry_at(std::span<const std::uint8_t> bytes, std::uint64_t index) {
  Entry value;
  std::memcpy(&value, bytes.data() + index * sizeof(Entry), sizeof(Entry));
  return value;
}

}  // namespace

std::vector<std::uint64_t> jump_table_targets(std::span<const Instruction> before, AddressRange range,
                                              const ReadBytes& read) {
  const auto dispatch = dispatch_before(before, read);
  if (!dispatch) {
    return {};
  }
  const auto bytes = read(dispatch->table);
  if (bytes.size() < dispatch->entries * (dispatch->relative ? 4 : 8)) {
    return {};
  }
  std::vector<std::uint64_t> targets;
  for (std::uint64_t i = 0; i < dispatch->entries; ++i) {
    const std::uint64_t target =
        dispatch->relative
            ? dispatch->table + static_cast<std::uint64_t>(std::int64_t{entry_at<std::int32_t>(bytes, i)})
            : entry_at<std::uint64_t>(bytes, i);
    if (range.contains(target)) {
      targets.push_back(target);
    } else if (targets.empty() || !dispatch->relative) {
      return {};  // no table; GCC's `.cold` cases are the one reason for a target outside
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

}  // namespace crosstalk::symbolizer
