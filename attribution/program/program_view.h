// SPDX-License-Identifier: Apache-2.0
// A profile's processes and threads with their code: translates run-time addresses to names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/program/code_map.h"
#include "attribution/program/program_names.h"
#include "attribution/timeline/address_space.h"
#include "attribution/timeline/seen.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// The common input of the parts of attribution. Refers to rows and maps that must outlive it. Not thread-safe
/// (CodeMap).
class ProgramView {
 public:
  ProgramView(std::span<const profile::ProcessRow> processes, std::span<const profile::ThreadRow> threads,
              const AddressSpaces& spaces, CodeMap& code)
      : processes_(processes), threads_(threads), spaces_(spaces), code_(code) {}

  [[nodiscard]] std::span<const profile::ThreadRow> threads() const { return threads_; }
  [[nodiscard]] std::span<const profile::ProcessRow> processes() const { return processes_; }
  [[nodiscard]] const AddressSpaces& spaces() const { return spaces_; }
  [[nodiscard]] CodeMap& code() const { return code_; }

  [[nodiscard]] bool knows(ThreadId thread) const { return thread.value < threads_.size(); }
  /// The moment of a known thread.
  [[nodiscard]] Moment moment(ThreadId thread, std::uint64_t time_ns) const {
    return {threads_[thread.value].process, time_ns};
  }
  /// Frames at a code address, innermost first. Code without symbols gives one frame called "module+0x12340",
  /// "[module]" or "[unknown]", so that it can be listed and grouped; is_unknown() recognises it.
  [[nodiscard]] std::vector<symbolizer::Frame> frames(Moment moment, std::uint64_t address) const;
  /// The same for a place in a file.
  [[nodiscard]] std::vector<symbolizer::Frame> frames(ModulePlace place) const;
  /// The function that a just-in-time compiler reported at a place of that process. Functions that a process had at its
  /// fork were compiled by its parent.
  [[nodiscard]] std::optional<symbolizer::Frame> jit_frame(Moment moment, std::uint64_t address) const;
  [[nodiscard]] std::optional<symbolizer::MemoryAccess> access_before(Moment moment, std::uint64_t ip) const;

 private:
  std::span<const profile::ProcessRow> processes_;
  std::span<const profile::ThreadRow> threads_;
  const AddressSpaces& spaces_;
  CodeMap& code_;
};

[[nodiscard]] bool is_unknown(const symbolizer::Frame& frame);
/// A name for a function without one: its file and offset, as debuggers and disassemblers show it; "[module]" if the
/// function's begin (an address of the module) is not known, 0.
[[nodiscard]] std::string nameless_function(const std::string& module, std::uint64_t begin);
/// "a.cpp:30"; empty if file or line is not known.
[[nodiscard]] std::string source_name(const std::string& file, std::uint32_t line);
/// "allocated at a.cpp:30 in f", with the known parts of an allocating frame.
[[nodiscard]] std::string allocated_in_words(const symbolizer::Frame& frame);
/// "f()" for "f"; does not change a demangled name with parameters.
[[nodiscard]] std::string call_name(const std::string& function);

/// Unwound stacks, by id. Call want() for the needed ones, then add() for every captured stack, then look up.
class StackTable {
 public:
  StackTable() = default;
  StackTable(const StackTable&) = delete;
  StackTable& operator=(const StackTable&) = delete;
  ~StackTable() = default;
  void want(StackId stack, Moment moment);
  /// The same for a thread's own stack at that time: keeps its frames.
  void want(StackId stack, ThreadId thread, Moment moment);
  /// Enters the beginning of a stack that is known without a copy, innermost address first. Equal ones are one stack.
  StackId enter(std::vector<std::uint64_t> addresses);
  /// True for a stack from enter(): its outer callers are not known.
  [[nodiscard]] static bool is_beginning(StackId stack) { return stack.value >= first_beginning; }
  [[nodiscard]] bool empty() const { return wanted_.empty(); }
  [[nodiscard]] bool wants(StackId stack) const { return wanted_.contains(stack); }
  /// Unwinds `row` if it is wanted.
  void add(const profile::StackRow& row, const ProgramView& view);
  /// Run-time addresses, innermost first; empty if there is no such stack.
  [[nodiscard]] std::span<const std::uint64_t> addresses(StackId stack) const {
    const auto found = stack.value != 0 ? unwound_.find(stack) : unwound_.end();
    return found == unwound_.end() ? std::span<const std::uint64_t>() : found->second->addresses;
  }
  static constexpr std::uint32_t unknown = UINT32_MAX;
  /// A number for all addresses but the innermost, the same for stacks with equal ones; `unknown` if there is no such
  /// stack.
  [[nodiscard]] std::uint32_t callers(StackId stack) const {
    const auto found = stack.value != 0 ? unwound_.find(stack) : unwound_.end();
    return found == unwound_.end() || found->second->addresses.empty() ? unknown : found->second->callers;
  }

  /// A thread's stack at a time.
  struct Seen {
    std::uint64_t time_ns = 0;
    std::vector<symbolizer::StackFrame> frames;  // innermost first
  };
  /// The stacks of a thread that were added, in no order.
  [[nodiscard]] std::span<const Seen> of_thread(ThreadId thread) const;

 private:
  static constexpr std::uint32_t first_beginning = 1U << 31U;  // no profile has so many stacks
  struct Unwound {
    std::span<const std::uint64_t> addresses;
    std::uint32_t callers = 0;
    StackId beginning;  // 0: not entered as one
  };
  [[nodiscard]] Unwound& way(std::vector<std::uint64_t> addresses);
  struct Wanted {
    Moment moment;
    std::optional<ThreadId> thread;
  };
  std::unordered_map<StackId, Wanted> wanted_;
  std::unordered_map<ThreadId, std::vector<Seen>> by_thread_;
  // Thousands of stacks of a loop share a few call paths.
  std::map<std::vector<std::uint64_t>, Unwound> ways_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> callers_;
  std::unordered_map<StackId, const Unwound*> unwound_;
  std::uint32_t beginnings_ = 0;
};

/// Frames of a whole call path: of `instruction`, then of the callers on `stack` (its element 0 is the interrupted
/// address itself). Only the former if the stack is not known.
[[nodiscard]] std::vector<symbolizer::Frame> call_path(const ProgramView& view, Moment moment,
                                                       std::uint64_t instruction, std::span<const std::uint64_t> stack);

}  // namespace crosstalk::attribution
