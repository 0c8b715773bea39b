// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/resolver.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "attribution/program/own_code.h"
#include "symbolizer/symbolizer.h"
#include "tests/reference/loop_work.h"
#include "tests/reference/module_map.h"

namespace crosstalk::reference {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void add(Cells& cells, ThreadPair threads, const Counts& counts) {
  Counts& cell = cells[threads];
  cell.true_sharing += counts.true_sharing;
  cell.false_sharing += counts.false_sharing;
}

/// Rows of a table, most communications first, then by key.
template <class Row, class Key, class Make>
std::vector<Row> rows(const std::map<Key, Cells>& table, Make make) {
  std::vector<Row> result;
  result.reserve(table.size());
  for (const auto& [key, cells] : table) {
    result.push_back(make(key, cells));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Row& a, const Row& b) { return total(a.cells) > total(b.cells); });
  return result;
}

/// Resolves addresses, each once.
class Names {
 public:
  explicit Names(const RawCounts& raw) : raw_(raw), map_(parts_of(raw.files), raw.segments), symbolizer_(options()) {
    for (const std::string& file : raw.files) {
      modules_.push_back(symbolizer_.add_module({file, {}, false}));
    }
  }

  [[nodiscard]] const ModuleMap& map() const { return map_; }
  [[nodiscard]] symbolizer::Symbolizer& symbolizer() { return symbolizer_; }
  [[nodiscard]] const std::vector<ModuleId>& modules() const { return modules_; }

  const SourceSite& site(CodeIndex index) {
    const auto [entry, fresh] = sites_.try_emplace(index);
    if (fresh) {
      entry->second = find_site(raw_.codes[index]);
    }
    return entry->second;
  }

  DataName data(const DataPair& pair) {
    if (pair.block > 0) {
      return block(raw_.blocks[pair.block - 1]);
    }
    const auto place = map_.of_address(pair.address);
    if (!place) {
      return {hex("memory at ", pair.address / page_bytes * page_bytes), {}, {}};
    }
    if (const auto symbol = symbolizer_.data_symbol(modules_[place->file], place->address)) {
      return {symbol->name, "global", symbol->bytes};
    }
    return {"data of " + base_name(raw_.files[place->file]), "global", {}};
  }

 private:
  static symbolizer::Options options() {
    symbolizer::Options options;
    options.debuginfod = false;  // a reference needs no network
    return options;
  }

  static std::vector<std::vector<LoadedPart>> parts_of(const std::vector<std::string>& files) {
    std::vector<std::vector<LoadedPart>> parts;
    parts.reserve(files.size());
    for (const std::string& file : files) {
      parts.push_back(loaded_parts(file));
    }
    return parts;
  }

  static std::string hex(const char* before, std::uint64_t value) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%s0x%llx", before, static_cast<unsigned long long>(value));
    return text.data();
  }

  SourceSite find_site(const RawCode& code) {
    const auto address = map_.of_offset(code.file, code.offset);
    if (!address) {
      return {};
    }
    const auto& location = symbolizer_.locate(modules_[code.file], *address);
    if (location.frames.empty()) {
      return {};
    }
    const symbolizer::Frame& frame = location.frames.front();
    return {frame.source.file, frame.function, frame.source.line};
  }

  static std::string what(const HeapBlock& block, const std::optional<symbolizer::AllocatedType>& type) {
    if (!type || type->bytes > block.bytes) {
      return "heap block";
    }
    const std::uint64_t count = block.bytes / type->bytes;
    return type->name + (count > 1 ? "[" + std::to_string(count) + "]" : "");
  }

  DataName block(const HeapBlock& block) {
    const auto place = map_.of_address(block.caller - 1);  // within the call
    if (!place) {
      return {"heap block of " + std::to_string(block.bytes) + " bytes", "heap", {}};
    }
    const auto type = symbolizer_.allocated_type(modules_[place->file], place->address);
    for (const auto& frame : symbolizer_.locate(modules_[place->file], place->address).frames) {
      if (!attribution::is_library_code(frame)) {
        return {what(block, type) + " " + attribution::allocated_in_words(frame), "heap", {}};
      }
    }
    return {"heap block of " + std::to_string(block.bytes) + " bytes", "heap", {}};
  }

  const RawCounts& raw_;
  ModuleMap map_;
  symbolizer::Symbolizer symbolizer_;
  std::vector<ModuleId> modules_;  // by file
  std::map<CodeIndex, SourceSite> sites_;
};

void resolve_code(const RawCounts& raw, Names& names, Reference& result) {
  std::map<std::pair<SourceSite, bool>, Cells> by_site;
  std::map<std::pair<SourceSite, SourceSite>, Cells> by_pair;
  for (const auto& [pair, counts] : raw.by_code) {
    const ThreadPair threads{pair.producer, pair.consumer};
    const SourceSite& producer = names.site(pair.producer_code);
    const SourceSite& consumer = names.site(pair.consumer_code);
    add(result.cells, threads, counts);
    add(by_site[{producer, true}], threads, counts);
    add(by_site[{consumer, false}], threads, counts);
    add(by_pair[{producer, consumer}], threads, counts);
  }
  result.sites = rows<SiteRow>(by_site, [](const auto& key, const Cells& cells) {
    return SiteRow{key.first, key.second, cells};
  });
  result.pairs = rows<SitePairRow>(by_pair, [](const auto& key, const Cells& cells) {
    return SitePairRow{key.first, key.second, cells};
  });
}

void resolve_data(const RawCounts& raw, Names& names, Reference& result) {
  std::map<DataName, Cells> by_object;
  std::map<std::uint64_t, Cells> by_line;
  std::map<std::uint64_t, std::map<std::string, std::uint64_t>> objects_of_line;
  for (const auto& [pair, counts] : raw.by_data) {
    const ThreadPair threads{pair.producer, pair.consumer};
    const DataName object = names.data(pair);
    const std::uint64_t line = pair.address / line_bytes * line_bytes;
    add(by_object[object], threads, counts);
    add(by_line[line], threads, counts);
    objects_of_line[line][object.name] += counts.true_sharing + counts.false_sharing;
  }
  result.objects = rows<ObjectRow>(by_object, [](const DataName& object, const Cells& cells) {
    return ObjectRow{object, cells};
  });
  result.lines = rows<LineRow>(by_line, [&](std::uint64_t line, const Cells& cells) {
    const auto& objects = objects_of_line[line];
    const auto most = std::max_element(objects.begin(), objects.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return LineRow{line, most->first, cells};
  });
}

}  // namespace

std::uint64_t total(const Cells& cells) {
  std::uint64_t sum = 0;
  for (const auto& [threads, counts] : cells) {
    sum += counts.true_sharing + counts.false_sharing;
  }
  return sum;
}

Reference resolve(const RawCounts& raw) {
  Reference result;
  result.threads = raw.threads;
  result.stolen_turns = raw.stolen_turns;
  result.quantum = raw.quantum;
  result.seed = raw.seed;
  result.invalidations = raw.invalidations;
  Names names(raw);
  resolve_code(raw, names, result);
  resolve_data(raw, names, result);
  result.loops = loop_rows(raw, names.map(), names.symbolizer(), names.modules());
  for (const RawCode& code : raw.codes) {
    result.work += work_of(code);
  }
  return result;
}

}  // namespace crosstalk::reference
