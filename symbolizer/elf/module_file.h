// SPDX-License-Identifier: Apache-2.0
// Finds the files of a module: the one that was loaded, and the separate one with its debug information.
#pragma once

#include <optional>
#include <string>

#include "symbolizer/elf/debuginfod.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/model.h"

namespace crosstalk::symbolizer {

struct ModuleFiles {
  std::optional<ElfFile> code;   // what was loaded
  std::optional<ElfFile> debug;  // separate debug information, if `code` lacks it and it was found
  std::string code_missing;      // why `code` is absent, with a remedy; empty when it is there
};

/// Looks for the module's file under options.sysroot, then as its path says, then (by build id) at the
/// debuginfod servers; for debug information in the file itself, under <debug path>/.build-id, by
/// .gnu_debuglink beside the file and under the debug paths, then at the servers. A file whose build id
/// differs from the one recorded, or whose contents do where there is none, is another file, and is treated as missing.
[[nodiscard]] ModuleFiles open_module(const ModuleSpec& spec, const Options& options, Debuginfod& servers);

/// The .gnu_debuglink checksum (CRC-32, IEEE 802.3) over `bytes`.
[[nodiscard]] std::uint32_t debuglink_checksum(std::span<const std::uint8_t> bytes);

}  // namespace crosstalk::symbolizer
