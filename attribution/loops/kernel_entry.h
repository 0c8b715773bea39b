// SPDX-License-Identifier: Apache-2.0
// What brought a thread into the kernel: a system call, by its name, or something that its code did not ask for.
#pragma once

#include <compare>
#include <string>

#include "attribution/objects/program_view.h"
#include "attribution/timeline/sample_digest.h"

namespace crosstalk::attribution {

struct KernelEntry {
  std::string name;  // "read"; in brackets where it is no system call, or not known which
  bool system_call = true;
  auto operator<=>(const KernelEntry&) const = default;
};

/// Of samples in the kernel, as code_totals() has them.
[[nodiscard]] KernelEntry kernel_entry(const ProgramView& view, const CodeTotal& total);
/// Whether a `syscall` instruction ends at `place`. Code that is not known is taken to have one.
[[nodiscard]] bool ends_system_call(const ProgramView& view, ModulePlace place);

}  // namespace crosstalk::attribution
