// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crosstalk::symbolizer {
namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

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
  if (!file.fd_.valid()) {
    const int cause = errno;
    return fail(cause == ENOENT || cause == ENOTDIR ? ErrorCode::not_found : ErrorCode::system,
                path + ": " + std::strerror(cause));
  }
  struct stat status {};
  if (::fstat(file.fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::corrupt, path + ": not a regular file");
  }
  elf_version(EV_CURRENT);
  file.elf_.reset(elf_begin(file.fd_.get(), ELF_C_READ_MMAP, nullptr));
  return finish(std::move(file));
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
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_elf_gnu_build_id(file.elf_.get(), &id);
  if (id_bytes > 0 && id_bytes <= 64) {
    file.build_id_ = hex({static_cast<const std::uint8_t*>(id), static_cast<std::size_t>(id_bytes)});
  }
  std::size_t size = 0;
  if (const char* raw = elf_rawfile(file.elf_.get(), &size)) {
    file.raw_ = {reinterpret_cast<const std::uint8_t*>(raw), size};
  }
  file.read_segments();
  file.read_sections();
  return file;
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
