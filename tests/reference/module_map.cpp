// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/module_map.h"

#include <elf.h>
#include <libelf.h>

#include <algorithm>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::reference {
namespace {

constexpr std::uint64_t page = 4096;

std::uint64_t page_begin(std::uint64_t value) { return value / page * page; }

}  // namespace

std::vector<LoadedPart> loaded_parts(const std::string& path) {
  std::vector<LoadedPart> parts;
  const auto file = symbolizer::ElfFile::open(path);
  std::size_t count = 0;
  if (!file || elf_getphdrnum(file->elf(), &count) != 0) {
    return parts;
  }
  const Elf64_Phdr* headers = elf64_getphdr(file->elf());
  for (std::size_t i = 0; headers != nullptr && i < count; ++i) {
    if (headers[i].p_type == PT_LOAD) {
      parts.push_back({headers[i].p_vaddr, headers[i].p_memsz, headers[i].p_offset, headers[i].p_filesz});
    }
  }
  return parts;
}

ModuleMap::ModuleMap(std::vector<std::vector<LoadedPart>> parts, std::span<const Segment> segments)
    : parts_(std::move(parts)) {
  for (const Segment& segment : segments) {
    add(segment);
  }
}

/// A page of a file may belong to two parts and is then mapped twice. The module's other mappings decide which part a
/// mapping is; the first of them belongs to one part only.
void ModuleMap::add(const Segment& segment) {
  const auto& own = parts_[segment.file];
  std::optional<std::uint64_t> first_bias;
  for (const LoadedPart& part : own) {
    if (segment.offset < page_begin(part.offset) || segment.offset >= part.offset + part.file_bytes) {
      continue;
    }
    const std::uint64_t bias = segment.begin - (page_begin(part.address) + segment.offset - page_begin(part.offset));
    if (std::any_of(images_.begin(), images_.end(),
                    [&](const Image& image) { return image.file == segment.file && image.bias == bias; })) {
      return;
    }
    first_bias = first_bias.value_or(bias);
  }
  if (first_bias) {
    std::uint64_t end = 0;
    for (const LoadedPart& part : own) {
      end = std::max(end, part.address + part.bytes);
    }
    images_.push_back({segment.file, *first_bias + page_begin(own.front().address), *first_bias + end, *first_bias});
  }
}

std::optional<std::uint64_t> ModuleMap::of_offset(std::uint32_t file, std::uint64_t offset) const {
  if (file >= parts_.size()) {
    return std::nullopt;
  }
  for (const LoadedPart& part : parts_[file]) {
    if (part.offset <= offset && offset < part.offset + part.file_bytes) {
      return part.address + (offset - part.offset);
    }
  }
  return std::nullopt;
}

std::optional<ModuleAddress> ModuleMap::of_address(std::uint64_t address) const {
  const auto image = std::find_if(images_.rbegin(), images_.rend(), [&](const Image& candidate) {
    return candidate.begin <= address && address < candidate.end;
  });
  if (image == images_.rend()) {
    return std::nullopt;
  }
  return ModuleAddress{image->file, address - image->bias};
}

}  // namespace crosstalk::reference
