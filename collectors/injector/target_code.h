// SPDX-License-Identifier: Apache-2.0
// The files of code in a running process: the addresses of their functions, and the functions on a stopped thread's
// stack. Read from the mapped files, before anything is stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/registers.h"
#include "base/result.h"
#include "collectors/injector/dynamic_symbols.h"
#include "collectors/injector/safe_point.h"
#include "collectors/observer/target_process.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/model/model.h"
#include "symbolizer/unwind/frame_rules.h"

namespace crosstalk::injector {

class TargetCode {
 public:
  /// `library`: the path of libcrosstalk.so.
  TargetCode(pid_t pid, std::string library);

  /// Returns the run-time address of a module's definition of that name; searches libc's modules, or ours.
  [[nodiscard]] std::optional<std::uint64_t> find(CodeOwner owner, std::string_view name) const;
  /// libc's code for the end of a signal handler; nothing: it has none.
  [[nodiscard]] std::optional<std::uint64_t> restorer() const;
  /// The library as the process has it mapped; null: it has not.
  [[nodiscard]] const observer::TargetModule* library() const;

  /// True if there is room below this stack pointer for a call.
  [[nodiscard]] bool has_stack(std::uint64_t stack_pointer) const;
  /// The functions on the stack of a thread that is stopped with these registers, the innermost first.
  [[nodiscard]] std::vector<StackFunction> stack_of(const Registers& registers);

 private:
  struct Module {
    observer::TargetModule facts;
    CodeOwner owner = CodeOwner::program;
    std::optional<symbolizer::ElfFile> file;
    std::optional<DynamicSymbols> symbols;
    std::optional<symbolizer::FrameRules> rules;
  };

  void open(Module& module, const std::vector<observer::Mapping>& maps) const;
  [[nodiscard]] StackFunction function_at(std::uint64_t lookup);

  pid_t pid_;
  observer::TargetMemory memory_;
  std::string library_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<symbolizer::Mapping> mappings_;  // of modules_, by index
};

}  // namespace crosstalk::injector
