// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "symbolizer/cfg/disassembly.h"
#include "symbolizer/dwarf/allocated_types.h"
#include "symbolizer/dwarf/frame_variables.h"
#include "symbolizer/dwarf/types.h"
#include "symbolizer/loops/loops.h"

namespace crosstalk::symbolizer {
namespace {

// Functions after which GCC and clang emit no further code. A missing one costs at most a spurious edge.
constexpr std::array<std::string_view, 14> functions_without_return = {
    "abort",         "exit",    "_exit",      "_Exit",        "quick_exit",       "__assert_fail",  "__cxa_throw",
    "__cxa_rethrow", "longjmp", "siglongjmp", "pthread_exit", "__stack_chk_fail", "_Unwind_Resume", "_ZSt9terminatev"};

bool is_without_return(std::string_view name) {
  name = name.substr(0, name.find('@'));
  return name.starts_with("_ZSt") && name.find("__throw_") != std::string_view::npos
             ? true
             : std::find(functions_without_return.begin(), functions_without_return.end(), name) !=
                   functions_without_return.end();
}

}  // namespace

void Module::open() {
  if (opened_) {
    return;
  }
  opened_ = true;
  files_ = open_module(spec_, *options_, *servers_);
  const ElfFile* debug = files_.debug ? &*files_.debug : nullptr;
  symbols_ =
      std::make_unique<SymbolTable>(SymbolTable::Files{code(), debug, files_.embedded ? &*files_.embedded : nullptr});
  if (debug != nullptr) {
    debug_info_ = DebugInfo::open(*debug);
  }
  if (!debug_info_ && code() != nullptr) {
    debug_info_ = DebugInfo::open(*code());
  }
  if (const auto wanted = debug_info_ ? debug_info_->wanted_supplement() : std::nullopt) {
    if (auto file = open_supplement(wanted->name, wanted->build_id, debug != nullptr ? *debug : *code(), *options_)) {
      debug_info_->supplement(std::move(*file));
    }
  }
  if (debug_info_) {
    variables_ = std::make_unique<Variables>(*debug_info_);
  }
}

const FrameRanges* Module::frame_ranges() {
  if (!frame_ranges_ && code() != nullptr) {
    frame_ranges_ = std::make_unique<FrameRanges>(*code());
  }
  return frame_ranges_.get();
}

FrameRules* Module::frame_rules() {
  open();
  if (!frame_rules_ && (files_.code || debug_info_)) {
    frame_rules_ = std::make_unique<FrameRules>(code(), debug_info_ ? debug_info_->dwarf() : nullptr);
  }
  return frame_rules_.get();
}

std::optional<Module::Function> Module::function_at(std::uint64_t address) {
  if (const Symbol* symbol = symbols_->function_at(address)) {
    return Function{{symbol->value, symbol->value + symbol->bytes}, symbol};
  }
  const FrameRanges* frames = frame_ranges();
  if (const auto range = frames != nullptr ? frames->at(address) : std::nullopt) {
    const Symbol* first = symbols_->label_at(range->begin);
    const Symbol* near = first != nullptr ? first : symbols_->label_before(address);
    const bool names_it = near != nullptr && near->value >= range->begin && !symbols_->function_between(*near, address);
    return Function{*range, names_it ? near : nullptr};
  }
  return function_of_unsized_symbol(address);
}

/// For assembly without .size: up to the next symbol, or the end of the section.
std::optional<Module::Function> Module::function_of_unsized_symbol(std::uint64_t address) {
  const Symbol* symbol = symbols_->label_before(address);
  const Section* section = code() != nullptr ? code()->section_at(address) : nullptr;
  if (symbol == nullptr || section == nullptr || !section->executable() || !section->range().contains(symbol->value) ||
      symbols_->function_between(*symbol, address)) {
    return std::nullopt;
  }
  return Function{{symbol->value, std::min(symbols_->next_function(address), section->range().end)}, symbol};
}

const CodeLocation& Module::locate(std::uint64_t address) {
  asked_ = true;
  const auto found = locations_.find(address);
  if (found != locations_.end()) {
    return found->second;
  }
  open();
  return locations_.emplace(address, find_location(address)).first->second;
}

CodeLocation Module::find_location(std::uint64_t address) {
  CodeLocation location;
  const auto function = function_at(address);
  if (function) {
    location.function_begin = function->range.begin;
    location.function_end = function->range.end;
  }
  SourceLine source;
  Unit* unit = debug_info_ ? debug_info_->unit_at(address) : nullptr;
  if (unit != nullptr) {
    if (auto row = line_at(*unit, address)) {
      location.has_lines = row->source.line != 0;
      source = std::move(row->source);
    }
    location.frames = inline_chain(*unit, address, source);
  }
  const std::string name = function && function->symbol != nullptr ? SymbolTable::name(*function->symbol) : "";
  if (location.frames.empty() && (!name.empty() || location.has_lines)) {
    location.frames.push_back({name, source, false});
  } else if (!location.frames.empty() &&
             (location.frames.back().function.empty() ||
              (!name.empty() && symbols_->outranks(*function->symbol, location.frames.back().function)))) {
    location.frames.back().function = name;
  }
  return location;
}

std::optional<Dwarf_Die> Module::variable(std::uint64_t begin, bool tls) {
  return variables_ ? variables_->find(begin, tls) : std::nullopt;
}

std::optional<DataSymbol> Module::data_symbol(std::uint64_t address, bool tls) {
  open();
  asked_ = true;
  const Symbol* symbol = tls ? symbols_->tls_at(address) : symbols_->data_at(address);
  if (symbol == nullptr) {
    return std::nullopt;
  }
  DataSymbol result{SymbolTable::name(*symbol), symbol->value, symbol->bytes, {}};
  if (auto die = variable(symbol->value, tls)) {
    result.declared = Variables::declared(*die);
  }
  return result;
}

/// True if the symbol is in the TLS block. A DataSymbol does not state its address space; its name identifies it.
bool Module::is_tls(const DataSymbol& symbol) const {
  const Symbol* tls = symbols_->tls_at(symbol.begin);
  if (tls == nullptr || tls->value != symbol.begin || SymbolTable::name(*tls) != symbol.name) {
    return false;
  }
  const Symbol* data = symbols_->data_at(symbol.begin);
  return data == nullptr || data->value != symbol.begin || SymbolTable::name(*data) != symbol.name;
}

std::optional<FieldPath> Module::field(const DataSymbol& symbol, std::uint64_t offset) {
  open();
  auto die = variable(symbol.begin, is_tls(symbol));
  const auto type = die ? type_of(*die) : std::nullopt;
  return type ? field_at(*type, offset) : std::nullopt;
}

AllocatedType Module::numbered(Dwarf_Die type) {
  const Dwarf_Off offset = dwarf_dieoffset(&type);
  const auto same = [&](Dwarf_Die& known) { return dwarf_dieoffset(&known) == offset && known.cu == type.cu; };
  const auto known = std::find_if(numbered_types_.begin(), numbered_types_.end(), same);
  const auto number = static_cast<std::uint32_t>(known - numbered_types_.begin());
  if (known == numbered_types_.end()) {
    numbered_types_.push_back(type);
  }
  return AllocatedType{number, type_name(type), size_of(type).value_or(1)};
}

std::optional<AllocatedType> Module::allocated_type(std::uint64_t address) {
  open();
  Unit* unit = debug_info_ ? debug_info_->unit_at(address) : nullptr;
  const auto type = unit != nullptr ? crosstalk::symbolizer::allocated_type(*unit, address) : std::nullopt;
  return type ? std::optional(numbered(*type)) : std::nullopt;
}

std::optional<StackVariable> Module::stack_variable(std::uint64_t code, const StackFrame& frame, std::uint64_t data) {
  open();
  Unit* unit = debug_info_ ? debug_info_->unit_at(code) : nullptr;
  const auto found = unit != nullptr ? variable_in_frame(*unit, code, frame, data) : std::nullopt;
  if (!found) {
    return std::nullopt;
  }
  Dwarf_Die die = found->die;
  const char* name = dwarf_diename(&die);
  return StackVariable{name != nullptr ? name : "", found->begin, numbered(found->type), Variables::declared(die)};
}

std::optional<FieldPath> Module::field_of(std::uint32_t type, std::uint64_t offset) const {
  return type < numbered_types_.size() ? field_at(numbered_types_[type], offset) : std::nullopt;
}

std::optional<MemoryAccess> Module::access_at(std::uint64_t address) {
  open();
  return code() != nullptr ? memory_access(code()->code_at(address), address) : std::nullopt;
}

std::optional<MemoryAccess> Module::access_before(std::uint64_t address) {
  if (address == 0) {
    return std::nullopt;
  }
  open();
  const FunctionCode* function = function_code(address - 1);
  const Instruction* before = function != nullptr ? function->flow.ending_at(address) : nullptr;
  // Only an instruction that falls through to `address` has been executed before it. After a call, the callee's return
  // was; after a jump or a return, something elsewhere.
  if (before == nullptr || (before->flow != Flow::next && before->flow != Flow::branch)) {
    return std::nullopt;
  }
  return access_at(before->address);
}

bool Module::never_returns(std::uint64_t target) {
  const Symbol* symbol = symbols_->function_at(target);
  return symbol != nullptr && symbol->value == target && is_without_return(symbol->name);
}

Module::FunctionCode* Module::function_code(std::uint64_t address) {
  const auto function = code() != nullptr ? function_at(address) : std::nullopt;
  if (!function) {
    return nullptr;
  }
  auto& entry = functions_[function->range.begin];
  if (!entry) {
    const std::uint64_t bytes = function->range.end - function->range.begin;
    const auto available = code()->code_at(function->range.begin);
    if (available.empty() || bytes > available.size()) {
      functions_.erase(function->range.begin);
      return nullptr;
    }
    entry = std::make_unique<FunctionCode>();
    entry->flow = control_flow(
        function->range, available.first(bytes), [this](std::uint64_t a) { return code()->bytes_at(a); },
        [this](std::uint64_t target) { return never_returns(target); });
  }
  return entry.get();
}

FunctionLoops Module::find_loops(const ControlFlow& flow) {
  const auto row_at = [this](std::uint64_t address) -> const void* {
    Unit* unit = debug_info_ ? debug_info_->unit_at(address) : nullptr;
    const auto row = unit != nullptr ? line_at(*unit, address) : std::nullopt;
    return row ? row->row : nullptr;
  };
  const auto chain_at = [this](std::uint64_t address) { return locate(address).frames; };
  return function_loops(flow, row_at, chain_at);
}

const FunctionLoops* Module::loops(std::uint64_t address) {
  open();
  asked_ = true;
  FunctionCode* function = function_code(address);
  if (function == nullptr || function->flow.instructions.empty()) {
    return nullptr;
  }
  if (!function->loops) {
    function->loops = find_loops(function->flow);
  }
  return &*function->loops;
}

LoopAnatomy* Module::loop_anatomy(std::uint64_t address) {
  open();
  FunctionCode* function = function_code(address);
  if (function == nullptr || function->flow.instructions.empty()) {
    return nullptr;
  }
  if (!function->anatomy) {
    function->anatomy =
        std::make_unique<LoopAnatomy>(function->flow, [this](std::uint64_t a) { return code()->code_at(a); });
  }
  return function->anatomy.get();
}

std::optional<std::uint64_t> Module::address_of(std::uint64_t file_offset) {
  open();
  return code() != nullptr ? code()->address_of(file_offset) : std::nullopt;
}

std::optional<FileSegment> Module::segment_at(std::uint64_t address) {
  open();
  return code() != nullptr ? code()->segment_at(address) : std::nullopt;
}

std::span<const std::uint8_t> Module::bytes_at(std::uint64_t address) {
  open();
  return code() != nullptr ? code()->code_at(address) : std::span<const std::uint8_t>();
}

/// "<counters+0x40>"; empty if no symbol covers the address.
std::string Module::named_target(std::uint64_t target, bool is_code) const {
  const Symbol* symbol = is_code ? symbols_->function_at(target) : symbols_->data_at(target);
  if (symbol == nullptr) {
    return {};
  }
  std::array<char, 24> offset{};
  if (target != symbol->value) {
    std::snprintf(offset.data(), offset.size(), "+0x%llx", static_cast<unsigned long long>(target - symbol->value));
  }
  return "<" + SymbolTable::name(*symbol) + offset.data() + ">";
}

std::string Module::instruction_text(std::uint64_t address, const AddressRange& function) {
  const Disassembled decoded = disassemble(code()->code_at(address), address);
  std::string text = decoded.text.empty() ? "(bad)" : decoded.text;
  if (decoded.code_target && !function.contains(*decoded.code_target)) {
    text += "  " + named_target(*decoded.code_target, true);
  }
  if (decoded.data_target) {
    text += "  " + named_target(*decoded.data_target, false);
  }
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

CodeListing Module::listing(std::uint64_t address) {
  open();
  asked_ = true;
  CodeListing result;
  const FunctionCode* function = function_code(address);
  if (function == nullptr || function->flow.instructions.empty()) {
    result.missing =
        files_.code ? "no function is known there; build it with -g, or keep its symbols" : files_.code_missing;
    return result;
  }
  for (const Instruction& instruction : function->flow.instructions) {
    result.instructions.push_back(
        {instruction.address, instruction.bytes, instruction_text(instruction.address, function->flow.range)});
  }
  return result;
}

std::string Module::unreadable_sections() const {
  for (const auto* file : {&files_.debug, &files_.code}) {
    const std::string names = *file ? (*file)->unreadable_sections() : std::string();
    if (!names.empty()) {
      return names + " of " + (*file)->path() +
             " are compressed in a way that is not read here, or damaged; objcopy --decompress-debug-sections unpacks "
             "them";
    }
  }
  return {};
}

/// The remedy if split debug information was packed into one file, which libdw does not read.
std::string Module::split_remedy() const {
  if (debug_info_->wanted_supplement() || code() == nullptr) {
    return {};
  }
  const std::string package = code()->path() + ".dwp";
  std::error_code error;
  return std::filesystem::exists(package, error)
             ? "; " + package + " is not read: keep the .dwo files, too, or link without -gsplit-dwarf"
             : "; keep .dwo files where they were compiled";
}

std::optional<std::string> Module::missing() const {
  if (!asked_) {
    return std::nullopt;
  }
  if (!files_.code && !files_.debug) {
    return files_.code_missing;
  }
  if (!files_.code) {
    return files_.code_missing + " (its separate debug information is there: lines are known, loops are not)";
  }
  if (spec_.is_vdso) {
    return std::nullopt;
  }
  if (std::string unreadable = unreadable_sections(); !unreadable.empty()) {
    return unreadable;
  }
  if (debug_info_) {
    std::string lacks = debug_info_->missing();
    if (lacks.empty()) {
      return std::nullopt;
    }
    return "its debug information " + lacks + split_remedy();
  }
  // A user cannot rebuild a distribution's files.
  const bool packaged = spec_.path.starts_with("/usr/") || spec_.path.starts_with("/lib");
  const bool local = spec_.path.starts_with("/usr/local/");
  const std::string remedy =
      packaged && !local ? "install its -dbgsym package, or set DEBUGINFOD_URLS" : "build it with -g";
  if (symbols_->empty()) {
    return "no symbols; " + remedy;
  }
  return symbols_->has_symtab() ? "no line information; " + remedy
                                : "no line information and exported symbols only; " + remedy;
}

}  // namespace crosstalk::symbolizer
