// SPDX-License-Identifier: Apache-2.0
// Finds the files of a module: the one that was loaded, and the separate one with its debug information.
#pragma once

#include <optional>
#include <string>

#include "symbolizer/elf/debuginfod.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

struct ModuleFiles {
  std::optional<ElfFile> code;      // the loaded file
  std::optional<ElfFile> debug;     // separate debug information, if `code` lacks it and it was found
  std::optional<ElfFile> embedded;  // symbols that `code` has packed within itself (.gnu_debugdata)
  std::string code_missing;         // why `code` is absent, with a remedy; empty when it is there
};

/// Finds the module's file under options.sysroot, then at its path, then (by build id) in perf's cache (~/.debug),
/// among the recording's own copies and at the debuginfod servers. Finds debug information in the file itself, under
/// <debug path>/.build-id, in perf's cache, by .gnu_debuglink beside the file and under the debug paths, then at the
/// servers. Treats a file with another build id as missing, also one with other contents if no build id was recorded. A
/// file of another machine is missing, too, if nothing identifies it.
[[nodiscard]] ModuleFiles open_module(const ModuleSpec& spec, const Options& options, Debuginfod& servers);

/// The supplement that dwz has split off `of`: by its name below the sysroot, by its build id under the debug paths.
[[nodiscard]] std::optional<ElfFile> open_supplement(const std::string& name, const std::string& build_id,
                                                     const ElfFile& of, const Options& options);

/// The .gnu_debuglink checksum (CRC-32, IEEE 802.3) over `bytes`.
[[nodiscard]] std::uint32_t debuglink_checksum(std::span<const std::uint8_t> bytes);

}  // namespace crosstalk::symbolizer
