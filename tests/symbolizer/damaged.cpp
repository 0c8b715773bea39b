// SPDX-License-Identifier: Apache-2.0
// Damaged files: for any bytes, every query answers soon, mostly with nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "fixture.h"

namespace crosstalk::symbolizer::damaged_test {
namespace {

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ask_everything(const std::string& path, const std::vector<std::uint64_t>& addresses) {
  Options options = offline();
  options.debug_paths.clear();
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({path, "", false});
  const std::vector<Mapping> mappings = {{0, std::uint64_t{1} << 32U, 0, id}};
  const std::vector<std::uint8_t> stack(256, 0x11);
  for (const std::uint64_t address : addresses) {
    static_cast<void>(symbols.locate(id, address));
    static_cast<void>(symbols.loops(id, address));
    static_cast<void>(symbols.access_before(id, address + 3));
    static_cast<void>(symbols.access_at(id, address));
    for (const auto& symbol : {symbols.data_symbol(id, address), symbols.tls_symbol(id, address & 63U)}) {
      if (symbol) {
        static_cast<void>(symbols.field(id, *symbol, 16));
      }
    }
    Registers registers;
    registers[Register::rip] = address;
    registers[Register::rsp] = 0x7000;
    static_cast<void>(symbols.unwind(registers, stack, mappings));
  }
  static_cast<void>(symbols.missing());
}

class Damaged : public testing::TestWithParam<const char*> {
 protected:
  void write(const std::vector<char>& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void SetUp() override {
    // One file for each test: tests run side by side, and a shrinking mapped file is not under test.
    path = testing::TempDir() + "/damaged_" + GetParam() + std::to_string(::getpid());
    for (const char* name : {"nested_loops", "switch_in_loop", "inlines", "accesses", "global_outer", "main"}) {
      addresses.push_back(address_of(fixture(GetParam()), name) + 4);
    }
  }
  void TearDown() override { std::remove(path.c_str()); }
  std::string path;
  std::vector<std::uint64_t> addresses;
};

TEST_P(Damaged, Truncated) {
  const auto whole = bytes_of(fixture(GetParam()));
  for (std::size_t part = 0; part < 24; ++part) {
    write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * part / 24)});
    ask_everything(path, addresses);
  }
}

TEST_P(Damaged, FlippedBytes) {
  const auto whole = bytes_of(fixture(GetParam()));
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    auto bytes = whole;
    for (int i = 0; i < 1 + round * 4; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    std::memcpy(bytes.data(), whole.data(), 20);  // still an ELF file
    write(bytes);
    ask_everything(path, addresses);
  }
}

TEST_P(Damaged, WildHeaders) {
  const auto whole = bytes_of(fixture(GetParam()));
  std::mt19937_64 random(13);
  const std::size_t header_end = 64 + 13 * 56;
  for (int round = 0; round < 60; ++round) {
    auto bytes = whole;
    for (int i = 0; i < 6; ++i) {
      bytes[20 + random() % (header_end - 20)] = static_cast<char>(random());
      bytes[bytes.size() - 1 - random() % 2400] = static_cast<char>(random());  // section headers
    }
    write(bytes);
    ask_everything(path, addresses);
  }
}

INSTANTIATE_TEST_SUITE_P(Builds, Damaged, testing::Values("program_o0", "program_o2"),
                         [](const auto& suite) { return std::string(suite.param); });

TEST(NotElf, IsMissing) {
  for (const char* path : {"/dev/null", "/etc/passwd", "/", "/proc/self/mem"}) {
    ask_everything(path, {0x1000});
  }
}

}  // namespace
}  // namespace crosstalk::symbolizer::damaged_test
