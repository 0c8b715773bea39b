// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access_finder.h"

#include "collectors/in_target/access_code.h"

namespace crosstalk::in_target {

bool AccessFinder::find(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                        const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  FoundAccess last;
  const bool has_last = retired(registers, flags, fs_base, window, last);
  if (has_last && !last.spill) {
    out = last;
    return true;
  }
  if (next(registers, flags, fs_base, window, reader, out)) {
    return true;
  }
  if (has_last) {
    out = last;
  }
  return has_last;
}

bool AccessFinder::find_retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                                const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  return retired(registers, flags, fs_base, window, out);
}

bool AccessFinder::find_next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                             const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  return next(registers, flags, fs_base, window, reader, out);
}

}  // namespace crosstalk::in_target
