// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/loop_work.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace crosstalk::reference {
namespace {

struct LoopKey {
  std::uint32_t file = 0;
  std::uint64_t header = 0;  // module address
  auto operator<=>(const LoopKey&) const = default;
};

struct LoopSums {
  LoopRow row;
  std::optional<LoopKey> parent;
};

/// Returns the frame at a loop's header that has the loop's source: the innermost one in the loop's own lines.
const symbolizer::Frame* home_of(const symbolizer::Loop& loop, const symbolizer::CodeLocation& header) {
  for (const symbolizer::Frame& frame : header.frames) {
    const auto& at = frame.source;
    if (at.file == loop.begin.file && loop.begin.line <= at.line && at.line <= loop.end.line) {
      return &frame;
    }
  }
  return header.frames.empty() ? nullptr : &header.frames.front();
}

class LoopTable {
 public:
  LoopTable(const RawCounts& raw, symbolizer::Symbolizer& symbolizer, std::span<const ModuleId> modules)
      : raw_(raw), symbolizer_(symbolizer), modules_(modules) {}

  void add(const RawCode& code, std::uint64_t address) {
    const symbolizer::FunctionLoops* function = symbolizer_.loops(modules_[code.file], address);
    if (function == nullptr) {
      return;
    }
    const auto innermost = function->innermost(address);
    const Work work = work_of(code);
    for (std::uint32_t at = innermost.value_or(symbolizer::Loop::no_parent); at != symbolizer::Loop::no_parent;
         at = function->loops[at].parent) {
      LoopRow& row = sums(code.file, *function, at).row;
      row.work += work;
      if (at == *innermost) {
        row.self += work;
      }
      if (function->loops[at].header == address) {
        row.iterations += code.executions;
      }
    }
  }

  [[nodiscard]] std::vector<LoopRow> rows() const {
    std::vector<LoopKey> order;
    for (const auto& [key, sums] : loops_) {
      if (sums.row.work.instructions > 0) {
        order.push_back(key);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](const LoopKey& a, const LoopKey& b) {
      return loops_.at(a).row.work.instructions > loops_.at(b).row.work.instructions;
    });
    std::map<LoopKey, std::size_t> place;
    for (const LoopKey& key : order) {
      place.emplace(key, place.size());
    }
    std::vector<LoopRow> result;
    for (const LoopKey& key : order) {
      const LoopSums& sums = loops_.at(key);
      result.push_back(sums.row);
      if (sums.parent && place.contains(*sums.parent)) {
        result.back().parent = place.at(*sums.parent);
      }
    }
    return result;
  }

 private:
  LoopSums& sums(std::uint32_t file, const symbolizer::FunctionLoops& function, std::uint32_t index) {
    const symbolizer::Loop& loop = function.loops[index];
    const auto [entry, fresh] = loops_.try_emplace({file, loop.header});
    LoopSums& sums = entry->second;
    if (!fresh) {
      return sums;
    }
    LoopRow& row = sums.row;
    row.depth = loop.depth;
    row.file = loop.begin.file;
    row.line_begin = loop.begin.line;
    row.line_end = std::max(loop.begin.line, loop.end.line);
    row.module = raw_.files[file];
    if (const auto* home = home_of(loop, symbolizer_.locate(modules_[file], loop.header))) {
      row.function = home->function;
    }
    if (loop.parent != symbolizer::Loop::no_parent) {
      sums.parent = LoopKey{file, function.loops[loop.parent].header};
    }
    return sums;
  }

  const RawCounts& raw_;
  symbolizer::Symbolizer& symbolizer_;
  std::span<const ModuleId> modules_;
  std::map<LoopKey, LoopSums> loops_;
};

}  // namespace

Work& Work::operator+=(const Work& other) {
  instructions += other.instructions;
  flops += other.flops;
  loads += other.loads;
  stores += other.stores;
  load_bytes += other.load_bytes;
  store_bytes += other.store_bytes;
  return *this;
}

Work work_of(const RawCode& code) {
  return {code.executions, code.flops, code.loads, code.stores, code.load_bytes, code.store_bytes};
}

std::vector<LoopRow> loop_rows(const RawCounts& raw, const ModuleMap& map, symbolizer::Symbolizer& symbolizer,
                               std::span<const ModuleId> modules) {
  LoopTable table(raw, symbolizer, modules);
  for (const RawCode& code : raw.codes) {
    if (const auto address = map.of_offset(code.file, code.offset); address && code.executions > 0) {
      table.add(code, *address);
    }
  }
  return table.rows();
}

}  // namespace crosstalk::reference
