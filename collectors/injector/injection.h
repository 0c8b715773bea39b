// SPDX-License-Identifier: Apache-2.0
// Brings libcrosstalk.so into a running process and makes it observe there, until it is told to leave.
//
//   start   one thread is stopped while it holds nothing of the loader's or the allocator's, and is made to call
//           dlopen(); then one, perhaps another, to call the library's crosstalk_start(). Each is stopped while the
//           recorder looks at its stack and lays the call out, and then goes on untraced.
//   stop    the same with crosstalk_stop(), which reverts the changes. The library stays mapped, dormant, and the next
//           start uses it again.
//
// The result of a call is read in the library's memory (collectors/injection_answer.h). If the recorder dies at any
// moment, a call that was begun ends by itself, and the library detects that nobody listens any more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "collectors/injector/executed_program.h"

namespace crosstalk::injector {

/// How long the target's threads were kept from their work.
struct Pauses {
  std::uint64_t stops = 0;            // threads that were stopped, also in vain
  std::uint64_t longest_stop_ns = 0;  // of one of them, from when it stood until it was let go
  std::uint64_t longest_call_ns = 0;  // from when a thread was stopped until the call that it made was over
};

class Injection {
 public:
  /// Brings the library at the path `library` into process `pid`, and has it write into the arena of that name. Fails
  /// with one line; then nothing is observed, though the library may be in the process, dormant.
  [[nodiscard]] static Result<std::unique_ptr<Injection>> start(pid_t pid, const std::string& library,
                                                                const std::string& arena);
  /// Makes the library leave. A failure's line says what remains; the library leaves by itself once the session is
  /// over.
  [[nodiscard]] Result<void> stop();

  [[nodiscard]] const Pauses& pauses() const { return pauses_; }

 private:
  Injection(pid_t pid, std::string library) : pid_(pid), library_(std::move(library)), program_(pid) {}
  [[nodiscard]] Result<void> begin(const std::string& arena);
  [[nodiscard]] Result<void> leave();
  [[nodiscard]] Result<void> load();
  void meet_threads();
  [[nodiscard]] Result<void> call_library(const char* function, const std::string& argument, std::uint64_t patience_ns);

  pid_t pid_;
  std::string library_;
  ExecutedProgram program_;
  Pauses pauses_;
};

}  // namespace crosstalk::injector
