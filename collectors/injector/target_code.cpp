// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/target_code.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/injector/call_frame.h"
#include "symbolizer/unwind/unwinder.h"

namespace crosstalk::injector {
namespace {

using observer::Mapping;

constexpr std::size_t most_stack_bytes = std::size_t{1} << 20U;
constexpr std::size_t most_functions = 512;
constexpr std::uint8_t return_address = 16;  // DWARF's number of it

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

CodeOwner owner_of(std::string_view path, std::string_view library) {
  const std::string_view name = base_name(path);
  if (name == base_name(library)) {
    return CodeOwner::collector;
  }
  if (name.starts_with("ld-linux") || name.starts_with("ld-2.") || name.starts_with("libdl.so") ||
      name.starts_with("libdl-2.")) {
    return CodeOwner::loader;
  }
  const bool libc = name.starts_with("libc.so.") || name.starts_with("libc-2.") || name.starts_with("libpthread.so") ||
                    name.starts_with("libpthread-2.");
  return libc ? CodeOwner::libc : CodeOwner::program;
}

/// The file that is mapped, by a name of it that can be opened from here; empty: none.
std::string file_of(pid_t pid, const Mapping& mapping) {
  const std::string folder = "/proc/" + std::to_string(pid);
  struct stat status {};
  std::string path = folder + "/root" + mapping.path;
  if (::stat(path.c_str(), &status) == 0 && status.st_ino == mapping.inode) {
    return path;
  }
  std::array<char, 64> range{};  // it was deleted, or replaced by another: the mapping is a name of it, too
  std::snprintf(range.data(), range.size(), "/map_files/%llx-%llx", static_cast<unsigned long long>(mapping.begin),
                static_cast<unsigned long long>(mapping.end));
  path = folder + range.data();
  return ::stat(path.c_str(), &status) == 0 && status.st_ino == mapping.inode ? path : std::string();
}

}  // namespace

TargetCode::TargetCode(pid_t pid, std::string library) : pid_(pid), memory_(pid), library_(std::move(library)) {
  const std::vector<Mapping> maps = observer::maps_of(pid);
  for (observer::TargetModule& facts : observer::modules_of(maps, memory_)) {
    auto module = std::make_unique<Module>();
    module->facts = std::move(facts);
    module->owner = owner_of(module->facts.path, library_);
    open(*module, maps);
    mappings_.push_back({module->facts.record.begin, module->facts.record.end, module->facts.record.bias,
                         ModuleId{static_cast<std::uint32_t>(modules_.size())}});
    modules_.push_back(std::move(module));
  }
}

void TargetCode::open(Module& module, const std::vector<Mapping>& maps) const {
  const Mapping* const first = observer::mapping_at(maps, module.facts.record.begin);
  const std::string path = first == nullptr || module.facts.path.empty() ? std::string() : file_of(pid_, *first);
  auto file =
      path.empty() ? Result<symbolizer::ElfFile>(fail(ErrorCode::not_found, "")) : symbolizer::ElfFile::open(path);
  if (!file) {
    return;
  }
  module.file = std::move(*file);
  module.symbols.emplace(*module.file);
  module.rules.emplace(&*module.file, nullptr);
  static_cast<void>(module.rules->at(0));  // it reads the tables now, and not while a thread is stopped
}

std::optional<std::uint64_t> TargetCode::find(CodeOwner owner, std::string_view name) const {
  for (const auto& module : modules_) {
    if (module->owner == owner && module->symbols) {
      if (const auto address = module->symbols->address_of(name)) {
        return module->facts.record.bias + *address;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> TargetCode::restorer() const {
  for (const auto& module : modules_) {
    if (module->owner != CodeOwner::libc || !module->file) {
      continue;
    }
    for (const symbolizer::Section& section : module->file->sections()) {
      const auto code =
          section.executable() ? symbolizer::ElfFile::contents(section) : decltype(module->file->code_at(0))();
      if (const auto found = find_restorer(code.data(), code.size())) {
        return module->facts.record.bias + section.address + *found;
      }
    }
  }
  return std::nullopt;
}

const observer::TargetModule* TargetCode::library() const {
  const auto found = std::find_if(modules_.begin(), modules_.end(),
                                  [](const auto& module) { return module->owner == CodeOwner::collector; });
  return found == modules_.end() ? nullptr : &(*found)->facts;
}

StackFunction TargetCode::function_at(std::uint64_t lookup) {
  StackFunction function;
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(), [lookup](const symbolizer::Mapping& m) {
    return lookup >= m.begin && lookup < m.end;
  });
  if (mapping == mappings_.end()) {
    return function;
  }
  Module& module = *modules_[mapping->module.value];
  function.owner = module.owner;
  if (!module.file) {
    return function;
  }
  function.name = module.symbols->function_at(lookup - mapping->bias);
  const symbolizer::FrameRule& rule = module.rules->at(lookup - mapping->bias);
  function.described = rule.known;
  function.signal_frame = rule.signal_frame;
  function.outermost =
      rule.known && std::any_of(rule.registers.begin(), rule.registers.end(), [](const symbolizer::RegisterRule& reg) {
        return reg.reg == return_address && reg.kind == symbolizer::RegisterRule::Kind::undefined;
      });
  return function;
}

bool TargetCode::has_stack(std::uint64_t stack_pointer) const {
  constexpr std::uint64_t least_bytes = std::uint64_t{48} << 10U;  // dlopen() and our start take a third of it
  const std::vector<Mapping> maps = observer::maps_of(pid_);
  const Mapping* const stack = observer::mapping_at(maps, stack_pointer);
  return stack != nullptr && stack->writable &&
         (stack->path == "[stack]" || stack_pointer - stack->begin >= least_bytes);  // this stack grows
}

std::vector<StackFunction> TargetCode::stack_of(const Registers& registers) {
  const std::vector<Mapping> maps = observer::maps_of(pid_);
  const std::uint64_t begin = registers[Register::rsp];
  const Mapping* const stack = observer::mapping_at(maps, begin);
  if (stack == nullptr) {
    return {};
  }
  std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(stack->end - begin, most_stack_bytes));
  if (!memory_.read(begin, bytes.data(), bytes.size())) {
    return {};
  }
  const symbolizer::RulesOf rules_of = [this](ModuleId id) {
    auto& rules = modules_[id.value]->rules;
    return rules ? &*rules : nullptr;
  };
  std::vector<StackFunction> functions;
  bool exact = true;  // at the instruction of execution, or of a signal's arrival: else behind a call
  for (const symbolizer::StackFrame& frame :
       symbolizer::unwind_stack(registers, bytes, mappings_, most_functions, rules_of)) {
    functions.push_back(function_at(exact ? frame.address : frame.address - 1));
    exact = functions.back().signal_frame;
  }
  return functions;
}

}  // namespace crosstalk::injector
