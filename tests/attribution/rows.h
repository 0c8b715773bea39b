// SPDX-License-Identifier: Apache-2.0
// Small hand-made rows and a CodeMap that answers from tables.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attribution/program/code_map.h"
#include "attribution/timeline/ownership_timeline.h"
#include "profile/model.h"

namespace crosstalk::attribution::test {

inline constexpr std::uint64_t line = 0x10000;

inline std::vector<profile::ThreadRow> make_threads(std::uint32_t count, std::uint32_t process = 0) {
  std::vector<profile::ThreadRow> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    profile::ThreadRow row;
    row.id = ThreadId{i};
    row.process = ProcessId{process};
    row.tid = static_cast<std::int32_t>(1000 + i);
    rows.push_back(row);
  }
  return rows;
}

inline profile::WatchWord word_at(std::uint8_t offset, std::uint8_t length = 8, float probability = 1) {
  profile::WatchWord word;
  word.offset = offset;
  word.length = length;
  word.probability = probability;
  return word;
}

/// Builds one watch with its traps. An instruction is named by the address after it; `knows` gives its access.
class Scene {
 public:
  explicit Scene(std::uint32_t threads) : threads_(make_threads(threads)) {
    watch_.id = WatchId{1};
    watch_.line = line;
    watch_.words = {word_at(0)};
    watch_.time_ns = 100;
  }

  Scene& words(std::vector<profile::WatchWord> words) {
    watch_.words.assign(words.begin(), words.end());
    return *this;
  }
  Scene& opened_by(std::uint32_t thread, AccessKind kind, profile::AddressFrom from = profile::AddressFrom::retired,
                   std::uint64_t offset = 0, std::uint8_t width = 8) {
    watch_.thread = ThreadId{thread};
    watch_.sample_access = kind;
    watch_.sample_from = from;
    watch_.sample_address = line + offset;
    watch_.sample_width = width;
    watch_.sample_access_ip = 0x400;
    return *this;
  }
  Scene& knows(std::uint64_t ip, symbolizer::MemoryAccess access) {
    code_[ip] = access;
    return *this;
  }
  /// Next trap in sequence.
  Scene& trap(std::uint32_t thread, std::uint64_t ip, std::uint8_t word = 0, bool write_only = false) {
    profile::TrapRow row;
    row.watch = watch_.id;
    row.thread = ThreadId{thread};
    row.sequence = next_++;
    row.time_ns = 200 + row.sequence;
    row.ip = ip;
    row.word = word;
    row.write_only = write_only;
    row.cpu = static_cast<std::uint16_t>(thread);
    traps_.push_back(row);
    return *this;
  }
  profile::WatchRow& watch() { return watch_; }
  std::vector<profile::TrapRow>& traps() { return traps_; }
  std::vector<profile::ThreadRow>& threads() { return threads_; }
  void skip_sequence(std::uint32_t n) { next_ += n; }

  [[nodiscard]] OwnershipTimeline tell() const {
    return ownership_timeline(watch_, traps_, threads_,
                              [this](Moment, std::uint64_t ip) -> std::optional<symbolizer::MemoryAccess> {
                                const auto it = code_.find(ip);
                                return it == code_.end() ? std::nullopt : std::optional(it->second);
                              });
  }

 private:
  std::vector<profile::ThreadRow> threads_;
  profile::WatchRow watch_;
  std::vector<profile::TrapRow> traps_;
  std::map<std::uint64_t, symbolizer::MemoryAccess> code_;
  std::uint32_t next_ = 0;
};

// Addresses after instructions whose kind is known and whose address is not.
inline constexpr std::uint64_t load_ip = 0x1004, store_ip = 0x2004, rmw_ip = 0x3005, mystery_ip = 0x9999;

inline symbolizer::MemoryAccess instruction(AccessKind kind, std::uint8_t bytes = 4) {
  symbolizer::MemoryAccess access;
  access.kind = kind;
  access.instruction_bytes = bytes;
  access.overwrites_base = true;
  return access;
}

/// Touches absolute address `address`, `width` bytes.
inline symbolizer::MemoryAccess absolute(AccessKind kind, std::uint64_t address, std::uint8_t width) {
  symbolizer::MemoryAccess access;
  access.kind = kind;
  access.instruction_bytes = 4;
  access.width = width;
  access.displacement = static_cast<std::int64_t>(address);
  return access;
}

inline Scene plain_scene(std::uint32_t threads) {
  Scene scene(threads);
  scene.knows(load_ip, instruction(AccessKind::load))
      .knows(store_ip, instruction(AccessKind::store))
      .knows(rmw_ip, instruction(AccessKind::load_store, 5));
  return scene;
}

/// Answers from tables by (file, address).
class FakeCode final : public CodeMap {
 public:
  using Key = std::pair<std::uint32_t, std::uint64_t>;
  std::map<Key, symbolizer::CodeLocation> locations;
  std::map<Key, symbolizer::MemoryAccess> accesses;
  std::map<Key, symbolizer::FunctionLoops> functions;  // by function begin; see loops()
  std::vector<std::pair<std::uint32_t, symbolizer::DataSymbol>> globals, tls;
  std::map<std::uint64_t, std::string> fields;  // by offset in any symbol
  std::map<std::uint64_t, std::string> jit;
  std::map<StackId, std::vector<std::uint64_t>> stacks;
  std::map<StackId, std::vector<symbolizer::StackFrame>> frames;       // stacks whose frames have places
  std::map<std::uint64_t, symbolizer::StackVariable> stack_variables;  // by code address
  std::map<Key, std::span<const std::uint8_t>> bytes;                  // by begin of the function; see bytes_at()
  std::map<Key, symbolizer::FileSegment> segments;                     // by begin
  std::map<Key, symbolizer::LoopAnatomy*> anatomies;                   // by function begin; see loop_anatomy()

  const symbolizer::CodeLocation& locate(ModulePlace place) override {
    // The nearest location at or before, as line tables have it.
    auto it = locations.upper_bound({place.file, place.address});
    if (it == locations.begin() || std::prev(it)->first.first != place.file) {
      return nowhere_;
    }
    return std::prev(it)->second;
  }
  std::optional<symbolizer::MemoryAccess> access_before(ModulePlace place) override {
    const auto it = accesses.find({place.file, place.address});
    return it == accesses.end() ? std::nullopt : std::optional(it->second);
  }
  const symbolizer::FunctionLoops* loops(ModulePlace place) override {
    auto it = functions.upper_bound({place.file, place.address});
    return it == functions.begin() || std::prev(it)->first.first != place.file ? nullptr : &std::prev(it)->second;
  }
  symbolizer::LoopAnatomy* loop_anatomy(ModulePlace place) override {
    auto it = anatomies.upper_bound({place.file, place.address});
    return it == anatomies.begin() || std::prev(it)->first.first != place.file ? nullptr : std::prev(it)->second;
  }
  std::optional<symbolizer::FileSegment> segment_at(ModulePlace place) override {
    const auto it = segments.upper_bound({place.file, place.address});
    return it == segments.begin() || std::prev(it)->first.first != place.file ? std::nullopt
                                                                              : std::optional(std::prev(it)->second);
  }
  std::span<const std::uint8_t> bytes_at(ModulePlace place) override {
    auto it = bytes.upper_bound({place.file, place.address});
    if (it == bytes.begin() || std::prev(it)->first.first != place.file) {
      return {};
    }
    --it;
    const std::uint64_t offset = place.address - it->first.second;
    return offset < it->second.size() ? it->second.subspan(offset) : std::span<const std::uint8_t>();
  }
  std::optional<symbolizer::Frame> jit_frame(std::int32_t, std::uint64_t address, std::uint64_t) override {
    const auto it = jit.find(address);
    return it == jit.end() ? std::nullopt : std::optional(symbolizer::Frame{it->second, {}, false});
  }
  std::optional<symbolizer::DataSymbol> data_symbol(ModulePlace place) override {
    return among(globals, place.file, place.address);
  }
  std::optional<symbolizer::DataSymbol> tls_symbol(std::uint32_t file, std::uint64_t offset) override {
    return among(tls, file, offset);
  }
  std::optional<symbolizer::FieldPath> field(std::uint32_t, const symbolizer::DataSymbol&,
                                             std::uint64_t offset) override {
    const auto it = fields.find(offset);
    if (it == fields.end()) {
      return std::nullopt;
    }
    symbolizer::FieldPath path;
    path.path = it->second;
    return path;
  }
  std::vector<symbolizer::StackFrame> unwind(const profile::StackRow& stack, std::span<const MappedModule>) override {
    std::vector<symbolizer::StackFrame> result = frames[stack.id];
    for (const std::uint64_t address : stacks[stack.id]) {
      result.push_back({address, 0, 0});
    }
    return result;
  }
  std::optional<symbolizer::StackVariable> stack_variable(ModulePlace code, const symbolizer::StackFrame& frame,
                                                          std::uint64_t data) override {
    const auto it = stack_variables.find(code.address);
    if (it == stack_variables.end()) {
      return std::nullopt;
    }
    symbolizer::StackVariable variable = it->second;
    variable.begin += frame.end;  // rows have it relative to that
    return variable.begin <= data && data < variable.begin + variable.type.bytes ? std::optional(variable)
                                                                                 : std::nullopt;
  }

 private:
  static std::optional<symbolizer::DataSymbol> among(
      const std::vector<std::pair<std::uint32_t, symbolizer::DataSymbol>>& symbols, std::uint32_t file,
      std::uint64_t address) {
    for (const auto& [f, symbol] : symbols) {
      if (f == file && symbol.begin <= address && address < symbol.begin + symbol.bytes) {
        return symbol;
      }
    }
    return std::nullopt;
  }
  symbolizer::CodeLocation nowhere_;
};

inline symbolizer::Frame frame(std::string function, std::string file = "", std::uint32_t at = 0,
                               bool inlined = false) {
  symbolizer::Frame f;
  f.function = std::move(function);
  f.source = {std::move(file), at};
  f.inlined = inlined;
  return f;
}

inline profile::ModuleRow module_row(std::string path, std::uint64_t begin, std::uint64_t end, std::uint64_t bias,
                                     std::uint32_t process = 0) {
  profile::ModuleRow row;
  row.process = ProcessId{process};
  row.path = std::move(path);
  row.begin = begin;
  row.end = end;
  row.bias = bias;
  return row;
}

}  // namespace crosstalk::attribution::test
