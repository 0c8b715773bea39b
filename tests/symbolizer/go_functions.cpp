// SPDX-License-Identifier: Apache-2.0
// Go's own table of functions: its layout, and damaged ones.
#include "symbolizer/elf/go_functions.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace crosstalk::symbolizer::go_functions_test {
namespace {

using Image = std::vector<std::uint8_t>;

template <typename Value>
void put(Image& image, std::size_t at, const Value& value) {
  image.resize(std::max(image.size(), at + sizeof value));
  std::memcpy(image.data() + at, &value, sizeof value);
}

/// Two functions, `main.one` at 0x401000 and `main.two` at 0x401040.
Image table() {
  Image bytes;
  for (const auto& [at, word] :
       {std::pair<int, std::uint64_t>{0, 0x08010000fffffff1U}, {8, 2}, {24, 0x401000}, {32, 72}, {64, 96}}) {
    put(bytes, static_cast<std::size_t>(at), word);
  }
  const char names[] = "main.one\0main.two";
  put(bytes, 72, names);
  for (const auto& [at, word] :
       {std::pair<int, std::uint32_t>{0, 0}, {4, 24}, {8, 0x40}, {12, 32}, {16, 0x60}, {28, 0}, {36, 9}}) {
    put(bytes, 96U + static_cast<std::size_t>(at), word);
  }
  return bytes;
}

/// An ELF file with `contents` as a section of that name.
ElfFile file_with(const std::string& section, const Image& contents) {
  const std::string names = std::string(1, '\0') + section + '\0';
  constexpr std::size_t begin = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  Elf64_Shdr of_table{1, SHT_PROGBITS, SHF_ALLOC, 0x500000, begin, contents.size(), 0, 0, 32, 0};
  Elf64_Shdr of_names{0, SHT_STRTAB, 0, 0, begin + contents.size(), names.size(), 0, 0, 1, 0};
  Image image;
  put(image, 0, header);
  put(image, sizeof header, Elf64_Shdr{});
  put(image, sizeof header + sizeof of_table, of_table);
  put(image, sizeof header + 2 * sizeof of_table, of_names);
  image.insert(image.end(), contents.begin(), contents.end());
  image.insert(image.end(), names.begin(), names.end());
  return *ElfFile::from_memory(image);
}

void expect_both(const ElfFile& file) {
  const auto functions = go_functions(file);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "main.one");
  EXPECT_EQ(functions[0].range.begin, 0x401000U);
  EXPECT_EQ(functions[0].range.end, 0x401040U);
  EXPECT_EQ(functions[1].name, "main.two");
  EXPECT_EQ(functions[1].range.end, 0x401060U);
}

TEST(GoFunctions, NamesAndRanges) { expect_both(file_with(".gopclntab", table())); }

TEST(GoFunctions, AmongOtherData) {
  Image data(64, 0xf1);
  const Image functions = table();
  data.insert(data.end(), functions.begin(), functions.end());
  expect_both(file_with(".data.rel.ro", data));
  EXPECT_TRUE(go_functions(file_with(".other", data)).empty());
}

TEST(GoFunctions, DamagedTablesGiveFewer) {
  const Image whole = table();
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    EXPECT_LE(
        go_functions(file_with(".gopclntab", Image(whole.begin(), whole.begin() + static_cast<long>(bytes)))).size(),
        2U);
  }
  for (std::size_t at = 8; at < whole.size(); ++at) {
    Image damaged = whole;
    damaged[at] = 0xff;
    EXPECT_LE(go_functions(file_with(".gopclntab", damaged)).size(), 2U);
  }
}

}  // namespace
}  // namespace crosstalk::symbolizer::go_functions_test
