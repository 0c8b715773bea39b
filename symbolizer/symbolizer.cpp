// SPDX-License-Identifier: Apache-2.0
// Composes the parts: modules by id, perf maps by process. What they do is in their own files.
#include "symbolizer/symbolizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "symbolizer/elf/perf_map.h"
#include "symbolizer/module.h"
#include "symbolizer/unwind/unwinder.h"

namespace crosstalk::symbolizer {

struct Symbolizer::State {
  explicit State(Options given) : options(std::move(given)), servers(options.debuginfod) {}

  [[nodiscard]] Module* module(ModuleId id) { return id.value < modules.size() ? modules[id.value].get() : nullptr; }

  Options options;
  Debuginfod servers;
  std::vector<std::unique_ptr<Module>> modules;                 // by id
  std::map<std::pair<std::string, std::string>, ModuleId> ids;  // by path and build id
  std::map<std::int32_t, PerfMap> perf_maps;                    // by pid
};

Symbolizer::Symbolizer(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Symbolizer::~Symbolizer() = default;
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;

ModuleId Symbolizer::add_module(const ModuleSpec& spec) {
  const ModuleId next{static_cast<std::uint32_t>(state_->modules.size())};
  const std::string path = spec.is_vdso ? "[vdso]" : spec.path;
  const auto [entry, added] = state_->ids.try_emplace({path, spec.build_id}, next);
  if (added) {
    state_->modules.push_back(std::make_unique<Module>(spec, state_->options, state_->servers));
  }
  return entry->second;
}

void Symbolizer::add_perf_map(std::int32_t pid) {
  const std::string path = "/tmp/perf-" + std::to_string(pid) + ".map";
  std::optional<PerfMap> map;
  if (!state_->options.sysroot.empty()) {
    map = PerfMap::read(state_->options.sysroot + path);
  }
  if (!map) {
    map = PerfMap::read(path);
  }
  if (map) {
    state_->perf_maps.insert_or_assign(pid, std::move(*map));
  }
}

std::optional<std::string> Symbolizer::perf_map_symbol(std::int32_t pid, std::uint64_t address) const {
  const auto map = state_->perf_maps.find(pid);
  return map == state_->perf_maps.end() ? std::nullopt : map->second.at(address);
}

const CodeLocation& Symbolizer::locate(ModuleId module, std::uint64_t address) {
  static const CodeLocation unknown;
  Module* found = state_->module(module);
  return found != nullptr ? found->locate(address) : unknown;
}

std::optional<DataSymbol> Symbolizer::data_symbol(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->data_symbol(address, false) : std::nullopt;
}

std::optional<DataSymbol> Symbolizer::tls_symbol(ModuleId module, std::uint64_t tls_block_offset) {
  Module* found = state_->module(module);
  return found != nullptr ? found->data_symbol(tls_block_offset, true) : std::nullopt;
}

std::optional<FieldPath> Symbolizer::field(ModuleId module, const DataSymbol& symbol, std::uint64_t offset) {
  Module* found = state_->module(module);
  return found != nullptr ? found->field(symbol, offset) : std::nullopt;
}

std::optional<AllocatedType> Symbolizer::allocated_type(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->allocated_type(address) : std::nullopt;
}

std::optional<FieldPath> Symbolizer::field_of(ModuleId module, std::uint32_t type, std::uint64_t offset) {
  Module* found = state_->module(module);
  return found != nullptr ? found->field_of(type, offset) : std::nullopt;
}

std::optional<MemoryAccess> Symbolizer::access_before(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->access_before(address) : std::nullopt;
}

std::optional<MemoryAccess> Symbolizer::access_at(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->access_at(address) : std::nullopt;
}

const FunctionLoops* Symbolizer::loops(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->loops(address) : nullptr;
}

LoopAnatomy* Symbolizer::loop_anatomy(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->loop_anatomy(address) : nullptr;
}

std::span<const std::uint8_t> Symbolizer::bytes_at(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->bytes_at(address) : std::span<const std::uint8_t>();
}

std::vector<std::uint64_t> Symbolizer::unwind(const Registers& registers, std::span<const std::uint8_t> stack,
                                              std::span<const Mapping> mappings, std::size_t max_frames) {
  const std::vector<StackFrame> frames = unwind_frames(registers, stack, mappings, max_frames);
  std::vector<std::uint64_t> addresses(frames.size());
  std::transform(frames.begin(), frames.end(), addresses.begin(), [](const StackFrame& f) { return f.address; });
  return addresses;
}

std::vector<StackFrame> Symbolizer::unwind_frames(const Registers& registers, std::span<const std::uint8_t> stack,
                                                  std::span<const Mapping> mappings, std::size_t max_frames) {
  return unwind_stack(registers, stack, mappings, max_frames, [this](ModuleId id) -> FrameRules* {
    Module* module = state_->module(id);
    return module != nullptr ? module->frame_rules() : nullptr;
  });
}

std::optional<StackVariable> Symbolizer::stack_variable(ModuleId module, std::uint64_t code, const StackFrame& frame,
                                                        std::uint64_t data) {
  Module* found = state_->module(module);
  return found != nullptr ? found->stack_variable(code, frame, data) : std::nullopt;
}

std::vector<Symbolizer::Missing> Symbolizer::missing() const {
  std::vector<Missing> result;
  for (const auto& module : state_->modules) {
    if (auto why = module->missing()) {
      result.push_back({module->spec().is_vdso ? "[vdso]" : module->spec().path, std::move(*why)});
    }
  }
  if (state_->servers.failure()) {
    result.push_back({"DEBUGINFOD_URLS", *state_->servers.failure()});
  }
  return result;
}

}  // namespace crosstalk::symbolizer
