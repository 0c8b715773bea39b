// SPDX-License-Identifier: Apache-2.0
// Reads the facts of one mapped module.
#include "collectors/in_target/objects/module_facts.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>

#include <cstring>
#include <string_view>

#include "collectors/build_id.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target::modules {
namespace {

/// One line of /proc/self/maps: "begin-end perms offset device inode   path". The path goes straight to the
/// caller's buffer: this may run on a small stack.
class MapsLine {
 public:
  MapsLine(char* path, std::size_t limit) : path_(path), limit_(limit) {}

  void clear() { head_length_ = path_length_ = 0; }
  void add(char c) {
    if (path_length_ == 0 && c != '/') {
      if (head_length_ < sizeof(head_)) {
        head_[head_length_++] = c;
      }
    } else if (path_length_ < limit_) {
      path_[path_length_++] = c;
    }
  }
  [[nodiscard]] bool covers(std::uint64_t address) const {
    std::size_t at = 0;
    const std::uint64_t begin = number(at, 16);
    ++at;  // '-'
    return begin <= address && address < number(at, 16);
  }
  /// True if `name` is the last part of its path.
  [[nodiscard]] bool is_called(std::string_view name) const {
    // By hand: string_view's functions that cut can throw, which would bring the C++ runtime into the target.
    if (path_length_ <= name.size() || path_length_ >= limit_) {
      return false;
    }
    const char* const last = path_ + path_length_ - name.size();
    return memcmp(last, name.data(), name.size()) == 0 && last[-1] == '/';
  }
  [[nodiscard]] MappedFile parsed() const {
    constexpr std::size_t permissions = 4;
    constexpr unsigned major_shift = 32;
    MappedFile file;
    std::size_t at = 0;
    file.begin = number(at, 16);
    file.end = number(++at, 16);
    file.shared = at + permissions < head_length_ && head_[at + permissions] == 's';
    file.executable = at + permissions < head_length_ && head_[at + permissions - 1] == 'x';
    at += permissions + 2;
    file.offset = number(at, 16);
    file.device = number(++at, 16) << major_shift;
    file.device |= number(++at, 16);
    file.inode = number(++at, 10);
    file.path_length = path_length_;
    file.of_vdso = has_name("[vvar") || has_name("[vdso]");
    return file;
  }

 private:
  /// True if a mapping without a path has that name, which follows the head in its buffer. A path begins with a slash,
  /// so it is none of these.
  [[nodiscard]] bool has_name(std::string_view begin) const {
    return std::string_view(static_cast<const char*>(head_), head_length_).find(begin) != std::string_view::npos;
  }
  std::uint64_t number(std::size_t& at, unsigned base) const {
    std::uint64_t value = 0;
    for (; at < head_length_; ++at) {
      const char c = head_[at];
      if (c >= '0' && c <= '9') {
        value = value * base + static_cast<std::uint64_t>(c - '0');
      } else if (base == 16 && c >= 'a' && c <= 'f') {
        value = value * base + static_cast<std::uint64_t>(c - 'a' + 10);
      } else {
        break;
      }
    }
    return value;
  }

  char* path_;
  std::size_t limit_;
  char head_[96] = {};
  std::size_t head_length_ = 0;
  std::size_t path_length_ = 0;
};

}  // namespace

Extent extent_of(const dl_phdr_info& module) {
  Extent extent{~std::uint64_t{0}, 0};
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = module.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      const std::uint64_t begin = module.dlpi_addr + segment.p_vaddr;
      extent.begin = begin < extent.begin ? begin : extent.begin;
      extent.end = begin + segment.p_memsz > extent.end ? begin + segment.p_memsz : extent.end;
    }
  }
  return extent.end == 0 ? Extent{} : extent;
}

std::size_t build_id_of(const dl_phdr_info& module, std::uint8_t* out, std::size_t limit) {
  const Extent extent = extent_of(module);
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = module.dlpi_phdr[i];
    const std::uint64_t begin = module.dlpi_addr + segment.p_vaddr;
    const bool mapped = begin >= extent.begin && begin + segment.p_memsz <= extent.end;
    if (segment.p_type == PT_NOTE && mapped) {
      const auto* notes = reinterpret_cast<const std::uint8_t*>(begin);  // NOLINT: ELF speaks in addresses
      const std::size_t found = collectors::build_id_in(notes, segment.p_memsz, segment.p_align, out, limit);
      if (found != 0) {
        return found;
      }
    }
  }
  return 0;
}

namespace {

/// The first line of which `wanted` is true. `whole` becomes true if the list was read to its end.
template <class Wanted>
bool find_line(MappedFile& out, char* path, std::size_t limit, Wanted wanted, bool* whole = nullptr) {
  constexpr int most_reads = 512;  // of about ten lines each
  const long fd = open_to_read("/proc/self/maps");
  if (fd < 0) {
    return false;
  }
  MapsLine line(path, limit);
  char chunk[1024];
  bool done = false;
  long got = 1;
  for (int reads = 0; got > 0 && !done && reads < most_reads; ++reads) {
    got = system_call(SYS_read, fd, chunk, sizeof(chunk));
    for (long i = 0; i < got && !done; ++i) {
      if (chunk[i] != '\n') {
        line.add(chunk[i]);
        continue;
      }
      done = wanted(line);
      if (!done) {
        line.clear();
      }
    }
  }
  system_call(SYS_close, fd);
  if (whole != nullptr) {
    *whole = got == 0;
  }
  if (done) {
    out = line.parsed();
  }
  return done;
}

}  // namespace

bool find_mapped_file(std::uint64_t address, MappedFile& out, char* path, std::size_t limit) {
  return find_line(out, path, limit, [address](const MapsLine& line) { return line.covers(address); });
}

bool find_mapping_called(std::string_view name, MappedFile& out, char* path, std::size_t limit) {
  return find_line(out, path, limit, [name](const MapsLine& line) { return line.is_called(name); });
}

bool visit_mappings(char* path, std::size_t limit, void (*visit)(const MappedFile& file, void* data), void* data) {
  MappedFile none;
  bool whole = false;
  const auto each = [=](const MapsLine& line) {
    visit(line.parsed(), data);
    return false;
  };
  static_cast<void>(find_line(none, path, limit, each, &whole));
  return whole;
}

std::size_t mapped_path(std::uint64_t address, char* out, std::size_t limit) {
  MappedFile file;
  return find_mapped_file(address, file, out, limit) ? file.path_length : 0;
}

std::size_t program_path(char* out, std::size_t limit) {
  // The kernel has loaded no interpreter, though the program has one: the loader itself was executed, and has replaced
  // its own headers by the program's.
  if (getauxval(AT_BASE) == 0) {
    if (const std::size_t length = mapped_path(getauxval(AT_PHDR), out, limit); length != 0) {
      return length;
    }
  }
  const long length = system_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", out, limit);
  return length > 0 ? static_cast<std::size_t>(length) : 0;
}

}  // namespace crosstalk::in_target::modules
