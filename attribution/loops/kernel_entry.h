// SPDX-License-Identifier: Apache-2.0
// The reason why a thread entered the kernel: a system call, by its name, or an event that its code did not request.
#pragma once

#include <compare>
#include <string>

#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"

namespace crosstalk::attribution {

struct KernelEntry {
  std::string name;  // "read"; in brackets where it is no system call, or not known which
  bool system_call = true;
  auto operator<=>(const KernelEntry&) const = default;
};

/// The entry of samples in the kernel, as code_totals() returns them.
[[nodiscard]] KernelEntry kernel_entry(const ProgramView& view, const CodeTotal& total);
/// True if a `syscall` instruction ends at `place`, or if the code is not known.
[[nodiscard]] bool ends_system_call(const ProgramView& view, ModulePlace place);

}  // namespace crosstalk::attribution
