// SPDX-License-Identifier: Apache-2.0
// Decides if a stopped thread may be made to call dlopen(), by the functions on its stack alone. dlopen() takes the
// loader's locks and allocates, so no function on the thread's stack may be about to do either.
#pragma once

#include <span>
#include <string>

namespace crosstalk::injector {

enum class CodeOwner {
  program,    // or one of its libraries
  libc,       // the C library, with its threads
  loader,     // the dynamic loader
  collector,  // libcrosstalk.so
};

/// One function on a stack.
struct StackFunction {
  CodeOwner owner = CodeOwner::program;
  std::string name;           // as the dynamic linker knows it; empty: it does not
  bool described = false;     // its caller is known by its call-frame information, and not guessed
  bool signal_frame = false;  // its caller was interrupted by a signal
  bool outermost = false;     // and is said to be so: nobody has called it
};

/// Returns why not; empty: it may. The innermost function comes first.
[[nodiscard]] std::string why_no_call(std::span<const StackFunction> stack);

}  // namespace crosstalk::injector
