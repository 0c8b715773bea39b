// SPDX-License-Identifier: Apache-2.0
// Reads an executable file, as far as it decides if the dynamic loader would take our library into it. One definition
// for the recorder, which judges a command before it starts it, and for the library inside targets, which judges the
// programs that they execute. There it may run in a vfork child, so nothing here allocates, locks or calls libc beyond
// memory functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::collectors {

enum class ImageKind : std::uint8_t {
  observable,         // a dynamically linked x86-64 program of the GNU C library, or its loader
  script,             // begins with #!; `name` has the line behind it
  other,              // neither ELF nor #!
  damaged,            // ELF, but its headers are cut off or contradict themselves
  statically_linked,  // no loader at all
  other_class,        // 32 bits
  other_machine,      // `machine` is its ELF machine
  other_loader,       // another C library; `name` is its loader
  sanitized,          // needs a sanitizer's runtime that must be the first library; `name` is that library
};

struct ProgramImage {
  ImageKind kind = ImageKind::other;
  std::uint16_t machine = 0;
  char name[256] = {};  // as much of a #! line as the kernel reads
};

/// Reads up to `count` bytes at `offset`; the number read, or negative. pread in the recorder, a bare system call
/// inside targets.
using ReadAt = long (*)(int fd, void* bytes, std::size_t count, std::uint64_t offset);

/// `fd` is a regular file. `path` is its name, by which the loader itself, which has no loader, is known.
[[nodiscard]] ProgramImage examine_program(ReadAt read, int fd, const char* path);

/// The name behind the last slash.
[[nodiscard]] const char* base_name(const char* path);

}  // namespace crosstalk::collectors
