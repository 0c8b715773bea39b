// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/module_facts.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace crosstalk::in_target::modules::module_facts_test {
namespace {

/// A module that consists of notes only, at the address of `bytes`.
class NoteModule {
 public:
  explicit NoteModule(std::vector<std::uint8_t> bytes, std::uint64_t alignment = 4) : bytes_(std::move(bytes)) {
    headers_[0].p_type = PT_LOAD;
    headers_[0].p_memsz = bytes_.size();
    headers_[1].p_type = PT_NOTE;
    headers_[1].p_memsz = bytes_.size();
    headers_[1].p_align = alignment;
    info_.dlpi_addr = reinterpret_cast<std::uint64_t>(bytes_.data());  // NOLINT: a module is where it is
    info_.dlpi_phdr = headers_.data();
    info_.dlpi_phnum = 2;
  }
  [[nodiscard]] const dl_phdr_info& info() const { return info_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::array<Elf64_Phdr, 2> headers_{};
  dl_phdr_info info_{};
};

std::vector<std::uint8_t> note(std::uint32_t type, const std::string& name, std::size_t content_bytes) {
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  const std::size_t name_bytes = name.size() + 1;
  const Elf64_Nhdr header{static_cast<Elf64_Word>(name_bytes), static_cast<Elf64_Word>(content_bytes), type};
  std::vector<std::uint8_t> bytes(sizeof(header) + padded(name_bytes) + padded(content_bytes));
  memcpy(bytes.data(), &header, sizeof(header));
  memcpy(bytes.data() + sizeof(header), name.c_str(), name_bytes);
  for (std::size_t i = 0; i < content_bytes; ++i) {
    bytes[sizeof(header) + padded(name_bytes) + i] = static_cast<std::uint8_t>(i + 1);
  }
  return bytes;
}

std::size_t build_id_bytes(const std::vector<std::uint8_t>& notes) {
  std::array<std::uint8_t, 20> id{};
  return build_id_of(NoteModule(notes).info(), id.data(), id.size());
}

TEST(ModuleFacts, TheBuildIdIsFoundBehindOtherNotes) {
  std::vector<std::uint8_t> notes = note(NT_GNU_ABI_TAG, "GNU", 16);
  const std::vector<std::uint8_t> id_note = note(NT_GNU_BUILD_ID, "GNU", 20);
  notes.insert(notes.end(), id_note.begin(), id_note.end());
  std::array<std::uint8_t, 20> id{};
  ASSERT_EQ(build_id_of(NoteModule(notes).info(), id.data(), id.size()), 20U);
  EXPECT_EQ(id[0], 1);
  EXPECT_EQ(id[19], 20);
}

TEST(ModuleFacts, OfALongBuildIdTheBeginIsKept) { EXPECT_EQ(build_id_bytes(note(NT_GNU_BUILD_ID, "GNU", 64)), 20U); }

TEST(ModuleFacts, NoBuildIdInWhatIsNone) {
  EXPECT_EQ(build_id_bytes({}), 0U);
  EXPECT_EQ(build_id_bytes(note(NT_GNU_BUILD_ID, "ABC", 20)), 0U);
  std::vector<std::uint8_t> cut = note(NT_GNU_BUILD_ID, "GNU", 20);
  for (; !cut.empty(); cut.pop_back()) {
    EXPECT_EQ(build_id_bytes(std::vector<std::uint8_t>(cut.begin(), cut.end() - 1)), 0U);
  }
  std::vector<std::uint8_t> huge = note(NT_GNU_BUILD_ID, "GNU", 20);
  memset(huge.data(), 0xff, 8);  // sizes of name and content
  EXPECT_EQ(build_id_bytes(huge), 0U);
}

TEST(ModuleFacts, TheExtentSpansAllLoadSegments) {
  std::array<Elf64_Phdr, 3> headers{};
  headers[0].p_type = PT_LOAD;
  headers[0].p_vaddr = 0x2000;
  headers[0].p_memsz = 0x500;
  headers[1].p_type = PT_LOAD;
  headers[1].p_memsz = 0x1000;
  headers[2].p_type = PT_DYNAMIC;
  headers[2].p_vaddr = 0x9000;
  dl_phdr_info info{};
  info.dlpi_addr = 0x7000'0000;
  info.dlpi_phdr = headers.data();
  info.dlpi_phnum = 3;
  EXPECT_EQ(extent_of(info).begin, 0x7000'0000U);
  EXPECT_EQ(extent_of(info).end, 0x7000'2500U);
  info.dlpi_phnum = 0;
  EXPECT_EQ(extent_of(info).end, 0U);
}

TEST(ModuleFacts, ThePathOfAMapping) {
  std::array<char, path_limit> path{};
  const auto code = reinterpret_cast<std::uint64_t>(&build_id_of);  // NOLINT: an address
  const std::size_t bytes = mapped_path(code, path.data(), path.size());
  EXPECT_NE(std::string(path.data(), bytes).find("test_in_target"), std::string::npos);
  EXPECT_EQ(mapped_path(0, path.data(), path.size()), 0U);
}

TEST(ModuleFacts, AMappingByTheNameOfItsFile) {
  std::array<char, 4096> path{};
  const long length = readlink("/proc/self/exe", path.data(), path.size());
  ASSERT_GT(length, 0);
  const std::string own(path.data(), static_cast<std::size_t>(length));
  const std::string name = own.substr(own.rfind('/') + 1);
  MappedFile found;
  ASSERT_TRUE(find_mapping_called(name, found, path.data(), path.size()));
  EXPECT_EQ(std::string(path.data(), found.path_length), own);
  EXPECT_GT(found.end, found.begin);
  EXPECT_FALSE(find_mapping_called(name.substr(1), found, path.data(), path.size())) << "a whole part of the path";
  EXPECT_FALSE(find_mapping_called("jit-1.dump", found, path.data(), path.size()));
}

TEST(ModuleFacts, WhatASharedMappingIsOf) {
  constexpr std::size_t page = 4096;
  const int file = memfd_create("a table", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4 * page), 0);
  struct stat status {};
  ASSERT_EQ(fstat(file, &status), 0);
  void* shared = mmap(nullptr, 2 * page, PROT_READ, MAP_SHARED, file, page);
  void* own = mmap(nullptr, page, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(shared, MAP_FAILED);
  ASSERT_NE(own, MAP_FAILED);
  const auto begin = reinterpret_cast<std::uint64_t>(shared);  // NOLINT: an address
  std::array<char, 64> path{};
  MappedFile found;
  ASSERT_TRUE(find_mapped_file(begin + page + 1, found, path.data(), path.size()));
  EXPECT_TRUE(found.shared);
  EXPECT_EQ(found.begin, begin);
  EXPECT_EQ(found.end, begin + 2 * page);
  EXPECT_EQ(found.offset, page);
  EXPECT_EQ(found.inode, status.st_ino);
  EXPECT_EQ(found.device, std::uint64_t{major(status.st_dev)} << 32U | minor(status.st_dev));
  EXPECT_EQ(std::string(path.data(), found.path_length), "/memfd:a table (deleted)");
  ASSERT_TRUE(find_mapped_file(reinterpret_cast<std::uint64_t>(own), found, path.data(), path.size()));  // NOLINT
  EXPECT_FALSE(found.shared);
  EXPECT_EQ(found.offset, 0U);
  munmap(shared, 2 * page);
  munmap(own, page);
  close(file);
}

TEST(ModuleFacts, EachMappingIsVisitedWithItsPath) {
  struct Seen {
    std::array<char, path_limit> path{};
    int all = 0, own_code = 0;
    std::uint64_t here = reinterpret_cast<std::uint64_t>(&build_id_bytes);  // NOLINT: an address
  } seen;
  visit_mappings(
      seen.path.data(), seen.path.size(),
      [](const MappedFile& file, void* data) {
        auto& seen = *static_cast<Seen*>(data);
        ++seen.all;
        const bool here = file.begin <= seen.here && seen.here < file.end;
        seen.own_code += here && file.executable && file.path_length != 0 ? 1 : 0;
      },
      &seen);
  EXPECT_GT(seen.all, 10);
  EXPECT_EQ(seen.own_code, 1);
}

}  // namespace
}  // namespace crosstalk::in_target::modules::module_facts_test
