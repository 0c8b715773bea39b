// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "base/build_id.h"
#include "symbolizer/elf/unpack.h"

namespace crosstalk::symbolizer {
namespace {

bool is_x86_64(Elf* elf) {
  GElf_Ehdr header;
  return elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64 && gelf_getehdr(elf, &header) != nullptr &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_X86_64;
}

}  // namespace

bool Section::executable() const { return (flags & SHF_EXECINSTR) != 0; }

Result<ElfFile> ElfFile::open(const std::string& path) {
  ElfFile file;
  file.path_ = path;
  // O_NONBLOCK: a FIFO in the place of a file must not block a report.
  file.fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return read_open(std::move(file));
}

Result<ElfFile> ElfFile::open_below(const std::string& root, const std::string& path) {
  ElfFile file;
  file.path_ = root + (path.starts_with('/') ? "" : "/") + path;
  const UniqueFd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  file.fd_.reset(static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (!file.fd_.valid() && (errno == ENOSYS || errno == EPERM)) {  // before Linux 5.6, and in some sandboxes
    return open(file.path_);
  }
  return read_open(std::move(file));
}

Result<ElfFile> ElfFile::read_open(ElfFile file) {
  if (!file.fd_.valid()) {
    const int cause = errno;
    return fail(cause == ENOENT || cause == ENOTDIR ? ErrorCode::not_found : ErrorCode::system,
                file.path_ + ": " + std::strerror(cause));
  }
  struct stat status {};
  if (::fstat(file.fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::corrupt, file.path_ + ": not a regular file");
  }
  elf_version(EV_CURRENT);
  file.elf_.reset(elf_begin(file.fd_.get(), ELF_C_READ_MMAP, nullptr));
  return finish(std::move(file));
}

std::string ElfFile::real_path() const {
  std::error_code error;
  const std::filesystem::path link =
      fd_.valid() ? std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd_.get()), error)
                  : std::filesystem::path();
  return link.empty() || error ? path_ : link.string();
}

Result<ElfFile> ElfFile::from_memory(std::span<const std::uint8_t> image) {
  ElfFile file;
  file.image_ = std::make_shared<std::vector<char>>(image.begin(), image.end());
  elf_version(EV_CURRENT);
  file.elf_.reset(elf_memory(file.image_->data(), file.image_->size()));
  return finish(std::move(file));
}

Result<ElfFile> ElfFile::finish(ElfFile file) {
  if (!file.elf_ || !is_x86_64(file.elf_.get())) {
    return fail(ErrorCode::corrupt, file.path_ + ": not an x86-64 ELF file");
  }
  file.unpack_sections();
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_elf_gnu_build_id(file.elf_.get(), &id);
  if (id_bytes > 0 && id_bytes <= 64) {
    file.build_id_ = hexadecimal({static_cast<const std::byte*>(id), static_cast<std::size_t>(id_bytes)});
  }
  std::size_t size = 0;
  if (const char* raw = elf_rawfile(file.elf_.get(), &size)) {
    file.raw_ = {reinterpret_cast<const std::uint8_t*>(raw), size};
  }
  file.read_segments();
  file.read_sections();
  return file;
}

/// Unpacks zstd sections, which this libelf does not support.
void ElfFile::unpack_sections() {
  std::size_t size = 0;
  const char* raw = elf_rawfile(elf_.get(), &size);
  if (raw == nullptr) {
    return;
  }
  if (auto image = with_unpacked_sections({reinterpret_cast<const std::uint8_t*>(raw), size})) {
    auto kept = std::make_shared<std::vector<char>>(std::move(*image));
    std::unique_ptr<Elf, EndElf> unpacked(elf_memory(kept->data(), kept->size()));
    if (unpacked) {
      elf_ = std::move(unpacked);
      image_ = std::move(kept);
    }
  }
}

void ElfFile::read_segments() {
  std::size_t count = 0;
  if (elf_getphdrnum(elf_.get(), &count) != 0) {
    return;
  }
  for (std::size_t i = 0; i < count && i < 65536; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD ||
        header.p_offset >= raw_.size()) {
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(header.p_filesz, raw_.size() - header.p_offset);
    if (header.p_vaddr > UINT64_MAX - bytes) {
      continue;
    }
    segments_.push_back({{header.p_vaddr, header.p_vaddr + bytes}, header.p_offset, (header.p_flags & PF_X) != 0});
  }
}

void ElfFile::read_sections() {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) {
    return;
  }
  for (Elf_Scn* handle = elf_nextscn(elf_.get(), nullptr); handle != nullptr;
       handle = elf_nextscn(elf_.get(), handle)) {
    GElf_Shdr header;
    if (gelf_getshdr(handle, &header) == nullptr || header.sh_addr > UINT64_MAX - header.sh_size) {
      continue;
    }
    const char* name = elf_strptr(elf_.get(), names, header.sh_name);
    sections_.push_back({name != nullptr ? name : "", header.sh_addr, header.sh_size, header.sh_flags,
                         header.sh_entsize, header.sh_type, header.sh_link, handle});
  }
}

const Section* ElfFile::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const Section* ElfFile::section_at(std::uint64_t address) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) {
    return (s.flags & SHF_ALLOC) != 0 && (s.flags & SHF_TLS) == 0 && s.range().contains(address);
  });
  return found == sections_.end() ? nullptr : &*found;
}

std::span<const std::uint8_t> ElfFile::contents(const Section& section) {
  if (section.type == SHT_NOBITS) {
    return {};
  }
  const Elf_Data* data = elf_getdata(section.handle, nullptr);
  if (data == nullptr || data->d_buf == nullptr) {
    return {};
  }
  return {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
}

bool ElfFile::has_contents(std::string_view name) const {
  const Section* found = section(name);
  return found != nullptr && found->type != SHT_NOBITS && found->bytes > 0;
}

std::string ElfFile::unreadable_sections() const {
  std::string names;
  for (const Section& section : sections_) {
    // libdw unpacks sections in place: their flags may have changed since the file was opened.
    GElf_Shdr now;
    GElf_Chdr packed;
    const bool is_packed = gelf_getshdr(section.handle, &now) != nullptr && (now.sh_flags & SHF_COMPRESSED) != 0;
    if (is_packed && section.type != SHT_NOBITS &&
        (gelf_getchdr(section.handle, &packed) == nullptr || packed.ch_type != ELFCOMPRESS_ZLIB)) {
      names += (names.empty() ? "" : ", ") + section.name;
    }
  }
  return names;
}

std::optional<std::uint64_t> ElfFile::address_of(std::uint64_t file_offset, bool wants_code) const {
  constexpr std::uint64_t in_page = 4095;
  const Segment* best = nullptr;
  const auto value = [&](const Segment& segment) {
    return std::tuple(segment.executable == wants_code, (segment.offset & ~in_page) == (file_offset & ~in_page),
                      segment.range.end - segment.range.begin);
  };
  for (const Segment& segment : segments_) {
    const std::uint64_t end = segment.offset + (segment.range.end - segment.range.begin);
    if ((segment.offset & ~in_page) <= file_offset && file_offset < ((end + in_page) & ~in_page) &&
        (best == nullptr || value(segment) > value(*best))) {
      best = &segment;
    }
  }
  return best != nullptr ? std::optional(best->range.begin - best->offset + file_offset) : std::nullopt;
}

std::optional<FileSegment> ElfFile::segment_at(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (segment.range.contains(address)) {
      return FileSegment{segment.range.begin, segment.range.end, segment.offset};
    }
  }
  return std::nullopt;
}

std::span<const std::uint8_t> ElfFile::bytes_at(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (segment.range.contains(address)) {
      return raw_.subspan(segment.offset + (address - segment.range.begin), segment.range.end - address);
    }
  }
  return {};
}

std::span<const std::uint8_t> ElfFile::code_at(std::uint64_t address) const {
  const bool executable = std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.executable && segment.range.contains(address);
  });
  return executable ? bytes_at(address) : std::span<const std::uint8_t>{};
}

}  // namespace crosstalk::symbolizer
