// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/symbolized_map.h"

#include <cstdio>
#include <map>
#include <set>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {
const symbolizer::CodeLocation nowhere;
}

SymbolizedMap::SymbolizedMap(const AddressSpaces& spaces, std::span<const profile::ProcessRow> processes,
                             const symbolizer::Options& options)
    : symbolizer_(options) {
  for (const symbolizer::ModuleSpec& spec : spaces.files()) {
    modules_.push_back(symbolizer_.add_module(spec));
  }
  accesses_.resize(modules_.size());
  // Agents map their file to show its path to profilers.
  std::map<std::int32_t, std::string> jit_dumps;
  for (const symbolizer::ModuleSpec& spec : spaces.files()) {
    std::int32_t pid = 0;
    if (std::sscanf(base_name(spec.path).c_str(), "jit-%d.dump", &pid) == 1) {
      jit_dumps[pid] = spec.path;
    }
  }
  std::set<std::int32_t> pids;
  for (const profile::ProcessRow& process : processes) {
    if (pids.insert(process.pid).second) {
      symbolizer_.add_jit_symbols(process.pid, jit_dumps[process.pid]);
    }
  }
}

const symbolizer::CodeLocation& SymbolizedMap::locate(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.locate(modules_[place.file], place.address) : nowhere;
}

std::optional<std::uint64_t> SymbolizedMap::address_of(std::uint32_t file, std::uint64_t file_offset) {
  return file < modules_.size() ? symbolizer_.address_of(modules_[file], file_offset) : std::nullopt;
}

std::optional<symbolizer::MemoryAccess> SymbolizedMap::access_before(ModulePlace place) {
  if (place.file >= modules_.size()) {
    return std::nullopt;
  }
  const auto [it, fresh] = accesses_[place.file].try_emplace(place.address);
  if (fresh) {
    it->second = symbolizer_.access_before(modules_[place.file], place.address);
  }
  return it->second;
}

const symbolizer::FunctionLoops* SymbolizedMap::loops(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.loops(modules_[place.file], place.address) : nullptr;
}

symbolizer::LoopAnatomy* SymbolizedMap::loop_anatomy(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.loop_anatomy(modules_[place.file], place.address) : nullptr;
}

std::optional<symbolizer::FileSegment> SymbolizedMap::segment_at(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.segment_at(modules_[place.file], place.address) : std::nullopt;
}

std::span<const std::uint8_t> SymbolizedMap::bytes_at(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.bytes_at(modules_[place.file], place.address)
                                      : std::span<const std::uint8_t>();
}

symbolizer::CodeListing SymbolizedMap::listing(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.listing(modules_[place.file], place.address)
                                      : symbolizer::CodeListing{{}, "no module is known there"};
}

std::optional<symbolizer::Frame> SymbolizedMap::jit_frame(std::int32_t pid, std::uint64_t address,
                                                          std::uint64_t time_ns) {
  return symbolizer_.jit_frame(pid, address, time_ns);
}

std::optional<symbolizer::DataSymbol> SymbolizedMap::data_symbol(ModulePlace place) {
  return place.file < modules_.size() ? symbolizer_.data_symbol(modules_[place.file], place.address) : std::nullopt;
}

std::optional<symbolizer::DataSymbol> SymbolizedMap::tls_symbol(std::uint32_t file, std::uint64_t offset) {
  return file < modules_.size() ? symbolizer_.tls_symbol(modules_[file], offset) : std::nullopt;
}

std::optional<symbolizer::FieldPath> SymbolizedMap::field(std::uint32_t file, const symbolizer::DataSymbol& symbol,
                                                          std::uint64_t offset) {
  return file < modules_.size() ? symbolizer_.field(modules_[file], symbol, offset) : std::nullopt;
}

std::optional<symbolizer::AllocatedType> SymbolizedMap::allocated_type(ModulePlace call) {
  return call.file < modules_.size() ? symbolizer_.allocated_type(modules_[call.file], call.address) : std::nullopt;
}

std::optional<symbolizer::FieldPath> SymbolizedMap::field_of(std::uint32_t file, std::uint32_t type,
                                                             std::uint64_t offset) {
  return file < modules_.size() ? symbolizer_.field_of(modules_[file], type, offset) : std::nullopt;
}

std::vector<symbolizer::StackFrame> SymbolizedMap::unwind(const profile::StackRow& stack,
                                                          std::span<const MappedModule> modules) {
  std::vector<symbolizer::Mapping> mappings;
  mappings.reserve(modules.size());
  for (const MappedModule& module : modules) {
    if (module.file < modules_.size()) {
      mappings.push_back({module.begin, module.end, module.bias, modules_[module.file]});
    }
  }
  return symbolizer_.unwind_frames(stack.registers, stack.bytes, mappings);
}

std::optional<symbolizer::StackVariable> SymbolizedMap::stack_variable(ModulePlace code,
                                                                       const symbolizer::StackFrame& frame,
                                                                       std::uint64_t data) {
  return code.file < modules_.size() ? symbolizer_.stack_variable(modules_[code.file], code.address, frame, data)
                                     : std::nullopt;
}

}  // namespace crosstalk::attribution
