// SPDX-License-Identifier: Apache-2.0
// One ELF64 x86-64 file (or image in memory), open for reading. Checks every offset and size in the file before use: a
// damaged file gives fewer answers, never a fault.
#pragma once

#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

struct AddressRange {
  std::uint64_t begin = 0, end = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const { return begin <= address && address < end; }
};

struct Section {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // in memory
  std::uint64_t flags = 0;  // SHF_*
  std::uint64_t entry_bytes = 0;
  std::uint32_t type = 0;  // SHT_*
  std::uint32_t link = 0;
  Elf_Scn* handle = nullptr;
  [[nodiscard]] AddressRange range() const { return {address, address + bytes}; }
  [[nodiscard]] bool executable() const;
};

class ElfFile {
 public:
  /// Opens `path`; fails if it is no x86-64 ELF file.
  [[nodiscard]] static Result<ElfFile> open(const std::string& path);
  /// Opens `path` below `root`, the image of another machine; its links, also absolute ones, stay below `root`.
  [[nodiscard]] static Result<ElfFile> open_below(const std::string& root, const std::string& path);
  /// Reads an image in memory, of which it keeps a copy.
  [[nodiscard]] static Result<ElfFile> from_memory(std::span<const std::uint8_t> image);

  [[nodiscard]] Elf* elf() const { return elf_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The path with links resolved; path() if that is not known.
  [[nodiscard]] std::string real_path() const;
  [[nodiscard]] const std::string& build_id() const { return build_id_; }  // lower-case hex; empty: none
  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  [[nodiscard]] const Section* section(std::string_view name) const;
  [[nodiscard]] const Section* section_at(std::uint64_t address) const;
  /// Contents of a section, decompressed if necessary; empty if it has none in this file.
  [[nodiscard]] static std::span<const std::uint8_t> contents(const Section& section);
  /// A section with that name whose contents are in this file.
  [[nodiscard]] bool has_contents(std::string_view name) const;

  /// The names of sections with an unsupported compression; empty: none.
  [[nodiscard]] std::string unreadable_sections() const;
  /// The module address of an offset in the file, by the segment that a mapping from `file_offset` belongs to; nullopt:
  /// no segment is loaded from there. If segments share a page, prefers one that is executable as `wants_code` says,
  /// then one that begins in that page.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset, bool wants_code = true) const;

  /// The loaded segment that holds a module address.
  [[nodiscard]] std::optional<FileSegment> segment_at(std::uint64_t address) const;

  /// The file's bytes from a module address to the end of its loaded segment; empty outside loaded segments.
  [[nodiscard]] std::span<const std::uint8_t> bytes_at(std::uint64_t address) const;
  /// The same, for executable segments only.
  [[nodiscard]] std::span<const std::uint8_t> code_at(std::uint64_t address) const;

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  struct Segment {
    AddressRange range;
    std::uint64_t offset = 0;
    bool executable = false;
  };
  ElfFile() = default;
  [[nodiscard]] static Result<ElfFile> read_open(ElfFile file);
  [[nodiscard]] static Result<ElfFile> finish(ElfFile file);
  void unpack_sections();
  void read_segments();
  void read_sections();

  std::string path_;
  UniqueFd fd_;
  std::shared_ptr<std::vector<char>> image_;  // keeps a memory image at one address across moves
  std::unique_ptr<Elf, EndElf> elf_;
  std::string build_id_;
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
  std::span<const std::uint8_t> raw_;
};

}  // namespace crosstalk::symbolizer
