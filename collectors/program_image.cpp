// SPDX-License-Identifier: Apache-2.0
#include "collectors/program_image.h"

#include <elf.h>

#include <cstring>

namespace crosstalk::collectors {
namespace {

constexpr char loader[] = "ld-linux-x86-64.so.2";
// Their runtimes replace malloc or pthread_create and must be first in the list of libraries, at the place of a
// preloaded one. Runtimes that are linked statically (clang's by default) work well with us.
constexpr const char* sanitizers[] = {"libasan.so",       "libtsan.so",       "libhwasan.so",      "libclang_rt.asan",
                                      "libclang_rt.tsan", "libclang_rt.msan", "libclang_rt.hwasan"};
constexpr unsigned most_segments = 256;  // Linux executes files with up to 64 KiB of them; real ones have a dozen
constexpr unsigned most_entries = 1024;  // of a dynamic section
constexpr std::uint64_t longest_path = 4096;

struct File {
  ReadAt read;
  int fd;

  [[nodiscard]] bool whole(void* bytes, std::size_t count, std::uint64_t offset) const {
    return read(fd, bytes, count, offset) == static_cast<long>(count);
  }
};

struct Segments {
  const File* file;
  std::uint64_t offset;
  unsigned count;

  [[nodiscard]] bool at(unsigned index, Elf64_Phdr& out) const {
    return file->whole(&out, sizeof out, offset + index * sizeof out);
  }
  /// Returns the offset in the file of the byte at `address`; 0: none.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t address) const {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < count && at(i, segment); ++i) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return 0;
  }
};

bool starts_with(const char* text, const char* prefix) { return std::memcmp(text, prefix, std::strlen(prefix)) == 0; }

/// Reads a text of the file into `out`, always with a NUL; false when nothing could be read.
template <std::size_t capacity>
bool read_text(const File& file, std::uint64_t offset, std::uint64_t bytes, char (&out)[capacity]) {
  const std::size_t wanted = bytes < capacity - 1 ? static_cast<std::size_t>(bytes) : capacity - 1;
  const long got = file.read(file.fd, static_cast<char*>(out), wanted, offset);
  out[got > 0 ? got : 0] = 0;
  return got > 0;
}

/// The sanitizer's library that the program needs, into `name`; false when it needs none.
bool needs_sanitizer(const Segments& segments, const Elf64_Phdr& dynamic, char (&name)[256]) {
  const std::uint64_t listed = dynamic.p_filesz / sizeof(Elf64_Dyn);
  const auto count = static_cast<unsigned>(listed < most_entries ? listed : most_entries);
  std::uint64_t strings = 0;
  Elf64_Dyn entry;
  const auto read_entry = [&](unsigned index) {
    return segments.file->whole(&entry, sizeof entry, dynamic.p_offset + index * sizeof entry) &&
           entry.d_tag != DT_NULL;
  };
  for (unsigned i = 0; i < count && strings == 0 && read_entry(i); ++i) {
    strings = entry.d_tag == DT_STRTAB ? segments.offset_of(entry.d_un.d_ptr) : 0;
  }
  for (unsigned i = 0; i < count && strings != 0 && read_entry(i); ++i) {
    char needed[64] = {};
    if (entry.d_tag != DT_NEEDED || !read_text(*segments.file, strings + entry.d_un.d_val, sizeof needed - 1, needed)) {
      continue;
    }
    for (const char* const sanitizer : sanitizers) {
      if (starts_with(needed, sanitizer)) {
        std::memcpy(name, needed, sizeof needed);
        return true;
      }
    }
  }
  return false;
}

ImageKind examine_elf(const File& file, const char* path, ProgramImage& image) {
  Elf64_Ehdr header;
  if (!file.whole(&header, sizeof header, 0)) {
    return ImageKind::damaged;
  }
  image.machine = header.e_machine;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return ImageKind::other_class;
  }
  if (header.e_machine != EM_X86_64) {
    return ImageKind::other_machine;
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > most_segments) {
    return ImageKind::damaged;
  }
  const Segments segments{&file, header.e_phoff, header.e_phnum};
  Elf64_Phdr dynamic{};
  bool has_loader = false;
  for (unsigned i = 0; i < segments.count; ++i) {
    Elf64_Phdr segment;
    if (!segments.at(i, segment)) {
      return ImageKind::damaged;
    }
    if (segment.p_type == PT_DYNAMIC) {
      dynamic = segment;
    } else if (segment.p_type == PT_INTERP) {
      has_loader = true;
      if (segment.p_filesz > longest_path || !read_text(file, segment.p_offset, segment.p_filesz, image.name)) {
        return ImageKind::damaged;
      }
    }
  }
  if (!has_loader) {  // the loader started by hand honours LD_PRELOAD for the program that it is given
    return std::strcmp(base_name(path), loader) == 0 ? ImageKind::observable : ImageKind::statically_linked;
  }
  if (std::strcmp(base_name(image.name), loader) != 0) {
    return ImageKind::other_loader;
  }
  return needs_sanitizer(segments, dynamic, image.name) ? ImageKind::sanitized : ImageKind::observable;
}

}  // namespace

const char* base_name(const char* path) {
  const char* name = path;
  for (; *path != 0; ++path) {
    name = *path == '/' ? path + 1 : name;
  }
  return name;
}

ProgramImage examine_program(ReadAt read, int fd, const char* path) {
  ProgramImage image;
  const File file{read, fd};
  char head[sizeof image.name] = {};
  const long got = read(fd, static_cast<char*>(head), sizeof head - 1, 0);
  if (got >= SELFMAG && std::memcmp(static_cast<char*>(head), ELFMAG, SELFMAG) == 0) {
    image.kind = examine_elf(file, path, image);
  } else if (got >= 2 && head[0] == '#' && head[1] == '!') {
    image.kind = ImageKind::script;
    for (std::size_t i = 2; i < sizeof head && head[i] != 0 && head[i] != '\n'; ++i) {
      image.name[i - 2] = head[i];
    }
  }
  return image;
}

}  // namespace crosstalk::collectors
