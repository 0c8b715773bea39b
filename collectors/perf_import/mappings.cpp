// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/build_id.h"
#include "base/unique_fd.h"
#include "collectors/build_id.h"

namespace crosstalk::perf_import {
namespace {

constexpr std::string_view vdso = "[vdso]";

/// Reads a structure of a file; false if the file ends before.
template <class T>
bool read_at(const UniqueFd& fd, std::uint64_t offset, T& out) {
  return offset < INT64_MAX &&
         ::pread(fd.get(), &out, sizeof out, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof out);
}

std::string build_id_of(const UniqueFd& fd, const Elf64_Phdr& notes) {
  constexpr std::size_t most = std::size_t{1} << 16U;
  constexpr std::size_t longest = 64;
  std::vector<std::uint8_t> bytes(std::min<std::size_t>(notes.p_filesz, most));
  if (notes.p_offset > INT64_MAX || ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(notes.p_offset)) !=
                                        static_cast<ssize_t>(bytes.size())) {
    return {};
  }
  std::array<std::uint8_t, longest> id{};
  const std::size_t size = collectors::build_id_in(bytes.data(), bytes.size(), notes.p_align, id.data(), id.size());
  return hexadecimal(std::as_bytes(std::span(id).first(size)));
}

}  // namespace

const std::string* Names::intern(std::string_view text) {
  const auto [name, fresh] = names_.emplace(text);
  bytes_ += fresh ? sizeof(std::string) + text.size() : 0;
  return &*name;
}

namespace {

bool is_executable(const perf_data::Mapping& mapping) {
  return mapping.has_protection ? (mapping.protection & PROT_EXEC) != 0 : !mapping.is_data;
}

bool is_possible(const perf_data::Mapping& mapping) {
  return mapping.pid >= 0 && mapping.bytes > 0 && mapping.bytes <= UINT64_MAX - mapping.begin;
}

}  // namespace

bool is_other_code(const perf_data::Mapping& mapping) {
  return is_executable(mapping) && is_possible(mapping) && !is_code_of_file(mapping);
}

bool is_code_of_file(const perf_data::Mapping& mapping) {
  const bool has_file =
      mapping.name == vdso || (mapping.name.starts_with('/') && !mapping.name.starts_with("//") &&
                               !mapping.name.starts_with("/dev/zero") && !mapping.name.starts_with("/memfd:"));
  return is_executable(mapping) && has_file && is_possible(mapping);
}

void CodeMappings::end(std::uint64_t begin, std::uint64_t end, std::uint64_t time_ns) {
  auto other = now_.upper_bound(begin);
  if (other != now_.begin() && all_[std::prev(other)->second].end > begin) {
    --other;
  }
  while (other != now_.end() && other->first < end) {
    const CodeMapping old = all_[other->second];
    all_[other->second].unloaded_ns = std::max<std::uint64_t>(time_ns, 1);
    other = now_.erase(other);
    if (old.begin < begin) {
      CodeMapping before = old;
      before.end = begin;
      go_on(before, time_ns);
    }
    if (old.end > end) {
      CodeMapping behind = old;
      behind.begin = end;
      behind.file_offset += end - old.begin;
      go_on(behind, time_ns);
      break;
    }
  }
}

void CodeMappings::go_on(CodeMapping part, std::uint64_t time_ns) {
  part.loaded_ns = time_ns;
  now_.emplace(part.begin, all_.size());
  all_.push_back(part);
}

void CodeMappings::add(const CodeMapping& mapping) {
  end(mapping.begin, mapping.end, mapping.loaded_ns);
  now_.emplace(mapping.begin, all_.size());
  all_.push_back(mapping);
}

void CodeMappings::clear() {
  all_.clear();
  now_.clear();
}

void BuildIds::add(const perf_data::BuildId& id, Names& names) {
  if (!id.bytes.empty() && !id.of_kernel) {
    of_name_.try_emplace(names.intern(id.name), names.intern(hexadecimal(id.bytes)));
  }
}

const std::string* BuildIds::of(const CodeMapping& mapping) const {
  if (mapping.build_id != nullptr) {
    return mapping.build_id;
  }
  const auto found = of_name_.find(mapping.name);
  return found == of_name_.end() ? nullptr : found->second;
}

bool is_replaced(const CodeMapping& mapping) {
  constexpr std::array<std::uint64_t, 2> layered = {OVERLAYFS_SUPER_MAGIC, FUSE_SUPER_MAGIC};  // stat() makes inodes up
  const UniqueFd fd(::open(mapping.name->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  struct statfs system {};
  if (mapping.inode == 0 || !fd.valid() || ::fstat(fd.get(), &status) != 0 || ::fstatfs(fd.get(), &system) != 0 ||
      std::find(layered.begin(), layered.end(), static_cast<std::uint64_t>(system.f_type)) != layered.end()) {
    return false;
  }
  // The number of a deleted file is given to a new one, with another generation, which few file systems tell.
  int generation = 0;
  const bool told = mapping.inode_generation != 0 && ::ioctl(fd.get(), FS_IOC_GETVERSION, &generation) == 0;
  return status.st_ino != mapping.inode ||
         (told && static_cast<std::uint32_t>(generation) != static_cast<std::uint32_t>(mapping.inode_generation));
}

ModuleRows::File ModuleRows::read_file(const std::string& path) {
  constexpr unsigned most_segments = 256;
  File file;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  Elf64_Ehdr header{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || !read_at(fd, 0, header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return file;
  }
  for (unsigned i = 0; i < std::min<unsigned>(header.e_phnum, most_segments); ++i) {
    Elf64_Phdr segment{};
    if (!read_at(fd, header.e_phoff + i * sizeof segment, segment)) {
      return {};
    }
    if (segment.p_type == PT_LOAD) {
      file.segments.push_back(
          {segment.p_offset, segment.p_vaddr, segment.p_filesz, segment.p_memsz, (segment.p_flags & PF_X) != 0});
    } else if (segment.p_type == PT_NOTE && file.build_id.empty()) {
      file.build_id = build_id_of(fd, segment);
    }
  }
  return file;
}

const ModuleRows::File& ModuleRows::file(const std::string& path) {
  const auto [known, fresh] = files_.try_emplace(path);
  if (fresh) {
    known->second = read_file(path);
  }
  return known->second;
}

std::vector<profile::ModuleRow> ModuleRows::rows(ProcessId process, const CodeMapping& mapping,
                                                 const std::string* build_id, bool replaced) {
  // Files that are linked for a fixed place are linked for the low addresses; randomised ones are never there.
  constexpr std::uint64_t lowest_random = std::uint64_t{1} << 32U;
  constexpr std::uint64_t page = 4096;
  constexpr std::string_view deleted = " (deleted)";
  profile::ModuleRow row;
  row.process = process;
  row.loaded_ns = mapping.loaded_ns;
  row.unloaded_ns = mapping.unloaded_ns;
  row.begin = mapping.begin;
  row.end = mapping.end;
  row.bias = mapping.begin < lowest_random ? 0 : mapping.begin - mapping.file_offset;
  row.build_id = build_id != nullptr ? *build_id : "";
  row.is_vdso = *mapping.name == vdso;
  if (row.is_vdso) {
    return {row};
  }
  row.path = *mapping.name;
  row.file_offset = mapping.file_offset;
  if (build_id == nullptr) {
    row.path += replaced && !row.path.ends_with(deleted) ? deleted : std::string_view();
    return {row};  // nothing tells whether the file there is the one that was mapped
  }
  if (row.path.ends_with(deleted)) {
    row.path.resize(row.path.size() - deleted.size());
  }
  const File& on_disk = file(row.path);
  if (!same_build_id(*build_id, on_disk.build_id)) {
    return {row};  // another build, or none
  }
  // A mapping may begin within a segment, if another one covers its beginning.
  const Segment* found = nullptr;
  for (const Segment& each : on_disk.segments) {
    const bool holds = each.executable && each.offset / page <= mapping.file_offset / page &&
                       mapping.file_offset < each.offset + each.file_bytes;
    const bool begins = found != nullptr && found->offset / page == mapping.file_offset / page;
    found = holds && !begins ? &each : found;
  }
  if (found == nullptr) {
    return {row};
  }
  row.bias = mapping.begin - mapping.file_offset + found->offset - found->address;
  row.file_offset.reset();
  std::vector<profile::ModuleRow> rows{row};
  for (const Segment& each : on_disk.segments) {
    if (!each.executable && each.memory_bytes != 0) {
      row.begin = row.bias + each.address;
      row.end = row.begin + each.memory_bytes;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace crosstalk::perf_import
