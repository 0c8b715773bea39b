// SPDX-License-Identifier: Apache-2.0
// Finds the build id among an ELF module's mapped notes. Also used in targets: no allocation, no exceptions.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crosstalk::collectors {

/// Copies the build id in `bytes` bytes of notes, aligned to `alignment`, to `out`, cut to `limit` bytes. Returns its
/// bytes; 0 if there is none, or if the notes are damaged.
inline std::size_t build_id_in(const std::uint8_t* notes, std::uint64_t bytes, std::uint64_t alignment,
                               std::uint8_t* out, std::size_t limit) {
  const std::uint64_t step = alignment == 8 ? 8 : 4;
  const auto rounded_up = [step](std::uint64_t size) { return (size + step - 1) / step * step; };
  for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
    Elf64_Nhdr note;
    memcpy(&note, notes + at, sizeof(note));
    const std::uint64_t name = at + sizeof(note);
    const std::uint64_t content = name + rounded_up(note.n_namesz);
    if (content + note.n_descsz > bytes) {
      return 0;
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
      const std::size_t size = note.n_descsz <= limit ? note.n_descsz : limit;
      memcpy(out, notes + content, size);
      return size;
    }
    at = content + rounded_up(note.n_descsz);
  }
  return 0;
}

}  // namespace crosstalk::collectors
