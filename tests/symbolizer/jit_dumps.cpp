// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "symbolizer/elf/jit_dump.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::symbolizer::jit_dumps_test {
namespace {

/// Writes records as the specification has them.
class Writer {
 public:
  explicit Writer(std::uint32_t pid, std::uint64_t flags = 0, std::uint32_t machine = EM_X86_64) {
    number(std::uint32_t{0x4a695444}, std::uint32_t{1}, std::uint32_t{40}, machine, std::uint32_t{0}, pid,
           std::uint64_t{5}, flags);
  }
  template <class... Integers>
  Writer& number(Integers... values) {
    (text_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return *this;
  }
  Writer& load(std::uint64_t time, std::uint64_t begin, std::uint64_t bytes, std::uint64_t index,
               const std::string& name) {
    Writer body;
    body.number(std::uint32_t{1}, std::uint32_t{1}, begin, begin, bytes, index);
    body.text_ += name + '\0' + std::string(bytes, '\x90');
    return record(0, time, body.text_);
  }
  Writer& move(std::uint64_t time, std::uint64_t from, std::uint64_t to, std::uint64_t bytes, std::uint64_t index) {
    Writer body;
    body.number(std::uint32_t{1}, std::uint32_t{1}, to, from, to, bytes, index);
    return record(1, time, body.text_);
  }
  struct Entry {
    std::uint64_t address;
    std::uint32_t line;
    std::string file;
  };
  Writer& lines(std::uint64_t begin, const std::vector<Entry>& entries) {
    Writer body;
    body.number(begin, std::uint64_t{entries.size()});
    for (const Entry& entry : entries) {
      body.number(entry.address, entry.line, std::uint32_t{0});
      body.text_ += entry.file + '\0';
    }
    return record(2, 0, body.text_);
  }
  Writer& record(std::uint32_t id, std::uint64_t time, const std::string& body) {
    number(id, static_cast<std::uint32_t>(16 + body.size()), time);
    text_ += body;
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::optional<JitDump> parsed() const { return parse(text_); }
  static std::optional<JitDump> parse(const std::string& text) {
    return JitDump::parse({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }

 private:
  Writer() = default;
  std::string text_;
};

std::string name_at(const std::optional<JitDump>& dump, std::uint64_t address, std::uint64_t time) {
  const auto frame = dump ? dump->at(address, time) : std::nullopt;
  return frame ? frame->function : "none";
}

TEST(JitDumps, CodeByPlaceAndTime) {
  const auto dump = Writer(77)
                        .load(10, 0x1000, 0x40, 1, "first")
                        .load(20, 0x2000, 0x10, 2, "second")
                        .load(30, 0x1000, 0x20, 3, "third")
                        .move(40, 0x2000, 0x3000, 0x10, 2)
                        .parsed();
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->pid(), 77);
  EXPECT_EQ(name_at(dump, 0x1000, 15), "first");
  EXPECT_EQ(name_at(dump, 0x1010, 35), "third") << "its place was taken";
  EXPECT_EQ(name_at(dump, 0x1030, 35), "first") << "the rest of it was not";
  EXPECT_EQ(name_at(dump, 0x1010, 5), "first") << "the first to come";
  EXPECT_EQ(name_at(dump, 0x3008, 45), "second");
  EXPECT_EQ(name_at(dump, 0x1040, 15), "none");
  EXPECT_EQ(name_at(dump, 0x0fff, 15), "none");
  EXPECT_EQ(name_at(dump, 0x2010, 25), "none");
}

TEST(JitDumps, TimesOfAnotherClockAreAnOrder) {
  const auto dump = Writer(77, 1).load(900, 0x1000, 0x40, 1, "first").load(100, 0x1000, 0x40, 2, "second").parsed();
  EXPECT_EQ(name_at(dump, 0x1000, 5), "second");
}

TEST(JitDumps, Lines) {
  const auto dump = Writer(77)
                        .lines(0x1000, {{0x1000, 5, "Main.java"}, {0x1010, 7, "\xff"}, {0x1020, 2, "Other.java"}})
                        .load(10, 0x1000, 0x40, 1, "Main.run")
                        .load(10, 0x2000, 0x40, 2, "without")
                        .parsed();
  ASSERT_TRUE(dump && dump->at(0x1012, 10) && dump->at(0x103f, 10) && dump->at(0x2000, 10));
  EXPECT_EQ(dump->at(0x100f, 10)->source, (SourceLine{"Main.java", 5}));
  EXPECT_EQ(dump->at(0x1012, 10)->source, (SourceLine{"Main.java", 7}));
  EXPECT_EQ(dump->at(0x103f, 10)->source, (SourceLine{"Other.java", 2}));
  EXPECT_EQ(dump->at(0x2000, 10)->source, SourceLine{});
}

TEST(JitDumps, AFirstLineInTheFileOfTheOneBeforeIsNone) {
  const auto dump = Writer(77).lines(0x1000, {{0x1000, 5, "\xff"}}).load(10, 0x1000, 0x40, 1, "f").parsed();
  ASSERT_TRUE(dump && dump->at(0x1000, 10));
  EXPECT_EQ(dump->at(0x1000, 10)->source, SourceLine{});
}

TEST(JitDumps, LinesOfV8AreBehindAnElfHeader) {
  const auto dump =
      Writer(77).lines(0x1000, {{0x1040, 5, "a.js"}, {0x1050, 7, "a.js"}}).load(10, 0x1000, 0x40, 1, "f").parsed();
  ASSERT_TRUE(dump && dump->at(0x1000, 10));
  EXPECT_EQ(dump->at(0x1000, 10)->source.line, 5U);
  EXPECT_EQ(dump->at(0x1010, 10)->source.line, 7U);
}

TEST(JitDumps, OthersAreRefused) {
  EXPECT_FALSE(Writer::parse(""));
  EXPECT_FALSE(Writer::parse("JiTD"));
  EXPECT_FALSE(Writer(77, 0, EM_AARCH64).parsed());
  std::string text = Writer(77).text();
  std::swap(text[0], text[3]);
  EXPECT_FALSE(Writer::parse(text));
}

TEST(JitDumps, WhatIsCutOffGivesWhatComesBefore) {
  const std::string whole = Writer(77).load(10, 0x1000, 0x40, 1, "first").text();
  const std::string text = Writer(77).load(10, 0x1000, 0x40, 1, "first").load(20, 0x2000, 0x40, 2, "second").text();
  for (std::size_t length = whole.size(); length < text.size(); ++length) {
    const auto dump = Writer::parse(text.substr(0, length));
    EXPECT_EQ(name_at(dump, 0x1000, 15), "first") << length;
    EXPECT_EQ(name_at(dump, 0x2000, 25), "none") << length;
  }
}

TEST(JitDumps, DamagedFilesDoNoHarm) {
  const std::string whole = Writer(77)
                                .lines(0x1000, {{0x1000, 5, "a"}, {0x1010, 7, "b"}})
                                .load(10, 0x1000, 0x40, 1, "first")
                                .move(40, 0x1000, 0x3000, 0x40, 1)
                                .text();
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (int damage = 0; damage < 4; ++damage) {
      text[random() % text.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    name_at(Writer::parse(text), 0x1010, 20);
  }
}

TEST(JitDumps, FoundWhereAgentsPutThemAndOnlyOfTheirProcess) {
  const std::string root = testing::TempDir() + "/jit_dump_root";
  std::filesystem::create_directories(root + "/tmp");
  std::filesystem::create_directories(root + "/var/run/agent");
  const auto write = [&](const std::string& place, std::uint32_t pid, const char* name) {
    std::ofstream(root + place) << Writer(pid).load(10, 0x1000, 0x40, 1, name).text();
  };
  write("/tmp/jit-4000001.dump", 4000001, "in_tmp");
  write("/var/run/agent/jit-4000002.dump", 4000002, "mapped");
  write("/tmp/jit-4000003.dump", 4000001, "of another");
  Options options;
  options.sysroot = root;
  Symbolizer symbols(options);
  symbols.add_jit_symbols(4000001);
  symbols.add_jit_symbols(4000002, "/var/run/agent/jit-4000002.dump");
  symbols.add_jit_symbols(4000003);
  ASSERT_TRUE(symbols.jit_frame(4000001, 0x1000, 10));
  EXPECT_EQ(symbols.jit_frame(4000001, 0x1000, 10)->function, "in_tmp");
  ASSERT_TRUE(symbols.jit_frame(4000002, 0x1000, 10));
  EXPECT_EQ(symbols.jit_frame(4000002, 0x1000, 10)->function, "mapped");
  EXPECT_FALSE(symbols.jit_frame(4000003, 0x1000, 10));
  EXPECT_FALSE(symbols.jit_frame(4000001, 0x2000, 10));
}

}  // namespace
}  // namespace crosstalk::symbolizer::jit_dumps_test
