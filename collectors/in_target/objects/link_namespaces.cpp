// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/link_namespaces.h"

#include <sys/auxv.h>

#include <cstring>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target::modules {
namespace {

constexpr int most_namespaces = 32;  // glibc has room for 16
constexpr int most_modules = 1024;   // of a namespace
constexpr std::size_t most_segments = 32;

/// glibc's r_debug_extended, which version 2 of the list has.
struct Namespace {
  r_debug base;
  std::uint64_t next;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }  // NOLINT: for reads

template <class T>
bool read(std::uint64_t address, T& out) {
  return read_memory(address, &out, sizeof out, kernel_process_id()) == sizeof out;
}

/// Reads the program headers of a file that is mapped from its beginning on; returns how many there are, 0 if it is
/// not.
std::size_t read_segments(std::uint64_t begin, Elf64_Phdr (&segments)[most_segments]) {
  Elf64_Ehdr header;
  if (!read(begin, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > most_segments) {
    return 0;
  }
  const std::size_t bytes = header.e_phnum * sizeof(Elf64_Phdr);
  return read_memory(begin + header.e_phoff, segments, bytes, kernel_process_id()) == bytes ? header.e_phnum : 0;
}

int visit_modules(std::uint64_t at, dl_phdr_info info, ModuleVisitor visitor, void* data) {
  static Elf64_Phdr segments[most_segments];  // the stack may be small
  for (int i = 0; i < most_modules && at != 0; ++i) {
    link_map module;
    if (!read(at, module)) {
      return 0;
    }
    at = address_of(module.l_next);
    const std::size_t count = read_segments(module.l_addr, segments);
    if (count == 0 || module.l_addr == getauxval(AT_BASE)) {  // the loader is the program's, too
      continue;
    }
    info.dlpi_addr = module.l_addr;
    info.dlpi_name = module.l_name;
    info.dlpi_phdr = segments;
    info.dlpi_phnum = static_cast<Elf64_Half>(count);
    if (const int result = visitor(&info, sizeof info, data); result != 0) {
      return result;
    }
  }
  return 0;
}

}  // namespace

int visit_other_namespaces(const dl_phdr_info& first, ModuleVisitor visitor, void* data) {
  constexpr int listed = 2;  // from this version of the structure on
  Namespace at;
  if (_r_debug.r_version < listed || !read(address_of(&_r_debug), at)) {
    return 0;
  }
  dl_phdr_info info = first;
  info.dlpi_tls_data = nullptr;
  for (int i = 0; i < most_namespaces && at.next != 0 && read(at.next, at); ++i) {
    if (const int result = visit_modules(address_of(at.base.r_map), info, visitor, data); result != 0) {
      return result;
    }
  }
  return 0;
}

}  // namespace crosstalk::in_target::modules
