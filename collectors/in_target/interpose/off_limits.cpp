// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/interpose/off_limits.h"

#include <elf.h>
#include <sys/auxv.h>

#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/handler_stack.h"

// The linker's names for the ends of this library.
extern "C" const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT
extern "C" const char _end __attribute__((visibility("hidden")));          // NOLINT

namespace crosstalk::in_target {
namespace {

struct Range {
  std::uint64_t begin, end;
};

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t time_pages = 32;  // vvar: 4 pages up to Linux 6.12, more since; nothing else is mapped there
constexpr std::uint64_t vdso_pages = 4;
constinit Range ranges[3] = {};

}  // namespace

void find_off_limits() {
  ranges[0] = {reinterpret_cast<std::uint64_t>(&__ehdr_start), reinterpret_cast<std::uint64_t>(&_end)};
  const auto arena = reinterpret_cast<std::uint64_t>(runtime().arena.header);
  ranges[1] = {arena, arena + runtime().arena_bytes};
  if (const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR); vdso != 0) {
    ranges[2] = {vdso - time_pages * page, vdso + vdso_pages * page};
  }
}

bool off_limits(std::uint64_t address) {
  for (const Range& range : ranges) {
    if (address >= range.begin && address < range.end) {
      return true;
    }
  }
  return handler_stacks().at(address) != nullptr;
}

}  // namespace crosstalk::in_target
