// SPDX-License-Identifier: Apache-2.0
// An ELF file of any bytes, with every query: symbols, lines, types, instructions, loops, frames.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbolizer.h"
#include "symbolizer/unwind/frame_ranges.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::symbolizer;

/// Returns addresses to query: the begins of sections and functions, and some inside.
std::vector<std::uint64_t> addresses_of(const std::string& path) {
  std::vector<std::uint64_t> addresses = {0, 0x1000, ~std::uint64_t{0}};
  const auto file = ElfFile::open(path);
  if (!file) {
    return addresses;
  }
  for (const Section& section : file->sections()) {
    if (addresses.size() < 24) {
      addresses.push_back(section.address);
      addresses.push_back(section.address + section.bytes / 2);
    }
  }
  const FrameRanges frames(*file);
  for (const AddressRange& range : frames.all()) {
    if (addresses.size() < 40) {
      addresses.push_back(range.begin + (range.end - range.begin) / 2);
    }
  }
  return addresses;
}

void ask(Symbolizer& symbols, ModuleId id, std::uint64_t address) {
  static_cast<void>(symbols.locate(id, address));
  static_cast<void>(symbols.loops(id, address));
  static_cast<void>(symbols.access_before(id, address));
  static_cast<void>(symbols.access_at(id, address));
  for (const auto& symbol : {symbols.data_symbol(id, address), symbols.tls_symbol(id, address & 0xffU)}) {
    for (std::uint64_t offset = 0; symbol && offset < 64; offset += 12) {
      static_cast<void>(symbols.field(id, *symbol, offset));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const UniqueFd fd(memfd_create("elf_fuzz", MFD_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), data, size) != static_cast<ssize_t>(size)) {
    return 0;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  Options options;
  options.debuginfod = false;
  options.debug_paths.clear();
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({path, "", false});
  for (const std::uint64_t address : addresses_of(path)) {
    ask(symbols, id, address);
  }
  static_cast<void>(symbols.missing());
  return 0;
}
