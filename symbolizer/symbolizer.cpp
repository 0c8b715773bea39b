// SPDX-License-Identifier: Apache-2.0
// Combines the parts: modules by id, symbols of just-in-time compilers by process.
#include "symbolizer/symbolizer.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "symbolizer/elf/jit_dump.h"
#include "symbolizer/elf/perf_map.h"
#include "symbolizer/elf/text_file.h"
#include "symbolizer/module.h"
#include "symbolizer/module_cache.h"
#include "symbolizer/unwind/unwinder.h"

namespace crosstalk::symbolizer {

struct Symbolizer::State {
  explicit State(Options given) : options(std::move(given)), servers(options.debuginfod) {
    if (options.cache) {
      options.cache->begin();
    }
  }

  [[nodiscard]] Module* module(ModuleId id) { return id.value < modules.size() ? modules[id.value].get() : nullptr; }

  Options options;
  Debuginfod servers;
  std::vector<std::shared_ptr<Module>> modules;                                 // by id
  std::map<std::tuple<std::string, std::string, std::uint64_t>, ModuleId> ids;  // by path, build id, contents
  std::map<std::int32_t, PerfMap> perf_maps;                                    // by pid
  std::map<std::int32_t, JitDump> jit_dumps;
};

Symbolizer::Symbolizer(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Symbolizer::~Symbolizer() = default;
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;

ModuleId Symbolizer::add_module(const ModuleSpec& spec) {
  const ModuleId next{static_cast<std::uint32_t>(state_->modules.size())};
  const std::string path = spec.is_vdso ? "[vdso]" : spec.path;
  const auto [entry, added] = state_->ids.try_emplace({path, spec.build_id, spec.content_hash}, next);
  if (added) {
    const Options& options = state_->options;
    state_->modules.push_back(options.cache ? options.cache->module(spec, options, state_->servers)
                                            : std::make_shared<Module>(spec, options, state_->servers));
  }
  return entry->second;
}

namespace {

/// Places of a process's jitdump, best first.
std::vector<std::string> jit_dump_places(std::int32_t pid, const std::string& known) {
  const std::string name = "jit-" + std::to_string(pid) + ".dump";
  std::vector<std::string> places;
  if (!known.empty()) {
    places.push_back(known);
  }
  places.push_back("/tmp/" + name);
  places.push_back("./" + name);
  for (const char* variable : {"JITDUMPDIR", "HOME"}) {
    const char* folder = std::getenv(variable);
    if (folder == nullptr || *folder == 0) {
      continue;
    }
    std::error_code error;  // a folder that is not there has nothing
    for (const auto& run : std::filesystem::directory_iterator(std::string(folder) + "/.debug/jit", error)) {
      places.push_back(run.path().string() + "/" + name);
    }
  }
  return places;
}

/// Passes the compiler's text from the first of `places` that `take` accepts: below the sysroot, else the recording's
/// copy, else, for processes of this machine, the present file.
template <class Take>
void take_text(const Options& options, const std::vector<std::string>& places, Take take) {
  const bool of_this_machine = options.other_host.empty() && options.foreign_architecture.empty();
  for (const std::string& place : places) {
    if (const auto text = options.sysroot.empty() ? std::nullopt : read_text_file(options.sysroot + "/" + place);
        text && take(*text)) {
      return;
    }
  }
  for (const std::string& place : places) {
    if (const auto kept = options.kept_copy ? options.kept_copy({place, "", false}) : std::nullopt) {
      take({kept->begin(), kept->end()});
      return;
    }
  }
  for (const std::string& place : places) {
    if (const auto text = of_this_machine ? read_text_file(place) : std::nullopt; text && take(*text)) {
      return;
    }
  }
}

}  // namespace

void Symbolizer::add_jit_symbols(std::int32_t pid, const std::string& jit_dump) {
  take_text(state_->options, {"/tmp/perf-" + std::to_string(pid) + ".map"}, [&](const std::string& text) {
    state_->perf_maps.insert_or_assign(pid, PerfMap(text));
    return true;
  });
  take_text(state_->options, jit_dump_places(pid, jit_dump), [&](const std::string& text) {
    auto dump = JitDump::parse({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    const bool of_this = dump && dump->pid() == pid;
    if (of_this) {
      state_->jit_dumps.insert_or_assign(pid, std::move(*dump));
    }
    return of_this;
  });
}

std::optional<Frame> Symbolizer::jit_frame(std::int32_t pid, std::uint64_t address, std::uint64_t time_ns) const {
  if (const auto dump = state_->jit_dumps.find(pid); dump != state_->jit_dumps.end()) {
    if (auto frame = dump->second.at(address, time_ns)) {
      return frame;
    }
  }
  const auto map = state_->perf_maps.find(pid);
  auto name = map == state_->perf_maps.end() ? std::nullopt : map->second.at(address);
  return name ? std::optional(Frame{std::move(*name), {}, false}) : std::nullopt;
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

std::optional<FileSegment> Symbolizer::segment_at(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->segment_at(address) : std::nullopt;
}

std::optional<std::uint64_t> Symbolizer::address_of(ModuleId module, std::uint64_t file_offset) {
  Module* found = state_->module(module);
  return found != nullptr ? found->address_of(file_offset) : std::nullopt;
}

std::span<const std::uint8_t> Symbolizer::bytes_at(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->bytes_at(address) : std::span<const std::uint8_t>();
}

CodeListing Symbolizer::listing(ModuleId module, std::uint64_t address) {
  Module* found = state_->module(module);
  return found != nullptr ? found->listing(address) : CodeListing{{}, "no module is known there"};
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
      result.push_back(
          {module->spec().is_vdso ? "[vdso]" : module->spec().path, std::move(*why), module->has_no_file()});
    }
  }
  if (state_->servers.failure()) {
    result.push_back({"DEBUGINFOD_URLS", *state_->servers.failure(), false});
  }
  return result;
}

}  // namespace crosstalk::symbolizer
