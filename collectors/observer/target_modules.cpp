// SPDX-License-Identifier: Apache-2.0
// Reads the modules of a process from their mapped headers: a file that was replaced since, or cannot be seen from
// here, does not describe the running code.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/unique_fd.h"
#include "collectors/build_id.h"
#include "collectors/code_mapping.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t file_page_bytes = 4096;
constexpr std::size_t most_segments = 64;
constexpr std::size_t most_note_bytes = 4096;

/// The headers of the ELF file that is mapped from its begin on at `begin`; empty: there is none.
std::vector<Elf64_Phdr> headers_at(std::uint64_t begin, const TargetMemory& memory) {
  Elf64_Ehdr header;
  if (!memory.read(begin, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > most_segments) {
    return {};
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  const std::size_t bytes = segments.size() * sizeof(Elf64_Phdr);
  return memory.read(begin + header.e_phoff, segments.data(), bytes) ? segments : std::vector<Elf64_Phdr>();
}

/// [begin, end) of the segments as the file has them.
void take_extent(const std::vector<Elf64_Phdr>& segments, profile::ModuleLoad& record) {
  record.begin = UINT64_MAX;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) {
      record.begin = std::min(record.begin, segment.p_vaddr);
      record.end = std::max(record.end, segment.p_vaddr + segment.p_memsz);
    }
  }
}

void take_notes(const std::vector<Elf64_Phdr>& segments, const TargetMemory& memory, profile::ModuleLoad& record) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_NOTE && record.build_id_size == 0 && segment.p_memsz <= most_note_bytes) {
      std::vector<std::uint8_t> notes(segment.p_memsz);
      if (memory.read(record.bias + segment.p_vaddr, notes.data(), notes.size())) {
        record.build_id_size = static_cast<std::uint8_t>(collectors::build_id_in(
            notes.data(), notes.size(), segment.p_align, record.build_id, sizeof record.build_id));
      }
    }
  }
}

/// True if code of the same file is mapped within the module. Otherwise the file is mapped only as data.
bool has_code(const std::vector<Mapping>& maps, const Mapping& first, const profile::ModuleLoad& record) {
  return std::any_of(maps.begin(), maps.end(), [&](const Mapping& mapping) {
    return mapping.executable && mapping.inode == first.inode && mapping.path == first.path &&
           mapping.begin < record.end && mapping.end > record.begin;
  });
}

/// Opens the mapped file; an invalid descriptor if its path now leads to another one.
UniqueFd open_mapped(const Mapping& mapping, const TargetMemory& memory) {
  const std::string path = "/proc/" + std::to_string(memory.pid()) + "/root" + mapping.path;
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  const bool same = file.valid() && ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                    facts.st_ino == mapping.inode &&
                    (std::uint64_t{major(facts.st_dev)} << 32U | minor(facts.st_dev)) == mapping.device;
  return same ? std::move(file) : UniqueFd();
}

/// True if the program has copied the segment's code into memory of its own, at the same place: that gets it huge
/// pages. Other code may lie there as well, so the first bytes are compared.
bool is_copied(const Elf64_Phdr& segment, const Mapping& first, std::uint64_t bias, const TargetMemory& memory) {
  constexpr std::uint64_t most_bytes = 64 << 10U;
  std::vector<char> there(std::min<std::uint64_t>(segment.p_filesz, most_bytes)), in_file(there.size());
  const UniqueFd file = open_mapped(first, memory);
  return file.valid() && !there.empty() && memory.read(bias + segment.p_vaddr, there.data(), there.size()) &&
         ::pread(file.get(), in_file.data(), in_file.size(), static_cast<off_t>(segment.p_offset)) ==
             static_cast<ssize_t>(in_file.size()) &&
         there == in_file;
}

bool has_copied_code(const std::vector<Mapping>& maps, const Mapping& first, const std::vector<Elf64_Phdr>& segments,
                     std::uint64_t bias, const TargetMemory& memory) {
  return std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr& segment) {
    const bool code = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
    const Mapping* const mapping = code ? mapping_at(maps, bias + segment.p_vaddr) : nullptr;
    return mapping != nullptr && mapping->executable && mapping->inode == 0 && mapping->path.empty() &&
           is_copied(segment, first, bias, memory);
  });
}

}  // namespace

std::vector<TargetModule> modules_of(const std::vector<Mapping>& maps, const TargetMemory& memory) {
  std::vector<TargetModule> modules;
  for (const Mapping& first : maps) {
    const bool vdso = first.path == "[vdso]";
    if (!first.readable || first.offset != 0 || (!first.path.starts_with('/') && !vdso)) {
      continue;
    }
    const std::vector<Elf64_Phdr> segments = headers_at(first.begin, memory);
    TargetModule module;
    module.record.header.type = profile::RecordType::module_load;
    take_extent(segments, module.record);
    if (module.record.begin >= module.record.end) {
      continue;
    }
    module.record.bias = first.begin - module.record.begin / file_page_bytes * file_page_bytes;
    module.record.begin += module.record.bias;
    module.record.end += module.record.bias;
    if (!has_code(maps, first, module.record) && !has_copied_code(maps, first, segments, module.record.bias, memory)) {
      continue;
    }
    take_notes(segments, memory, module.record);
    module.record.is_vdso = vdso ? 1 : 0;
    module.path = vdso ? std::string() : first.path + (first.deleted ? " (deleted)" : "");
    modules.push_back(std::move(module));
  }
  return modules;
}

std::vector<TargetModule> parts_of(const std::vector<Mapping>& maps, const std::vector<TargetModule>& modules) {
  std::vector<TargetModule> parts;
  for (const Mapping& mapping : maps) {
    const bool known = std::any_of(modules.begin(), modules.end(), [&](const TargetModule& module) {
      return module.record.begin <= mapping.begin && mapping.begin < module.record.end;
    });
    if (parts.size() == collectors::most_mapped_parts) {
      break;
    }
    if (known || !mapping.executable || mapping.deleted || !collectors::is_file_of_code(mapping.path)) {
      continue;
    }
    TargetModule part;
    part.record.header.type = profile::RecordType::module_load;
    part.record.begin = mapping.begin;
    part.record.end = mapping.end;
    part.record.bias = mapping.begin - mapping.offset;
    part.record.file_offset = mapping.offset;
    part.record.is_part = 1;
    part.path = mapping.path;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace crosstalk::observer
