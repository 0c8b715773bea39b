// SPDX-License-Identifier: Apache-2.0
// Finding files: the sysroot, build ids, separate debug information, and messages about missing files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/build_id.h"
#include "base/file_content.h"
#include "fixture.h"
#include "symbolizer/elf/module_file.h"

namespace crosstalk::symbolizer::modules_test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& name) : path_(fs::path(testing::TempDir()) / name) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// Copies a fixture to a path below.
  std::string put(const std::string& name, const std::string& at) const {
    const fs::path to = path_ / fs::path(at).relative_path();
    fs::create_directories(to.parent_path());
    fs::copy_file(fixture(name), to, fs::copy_options::overwrite_existing);
    return to;
  }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  fs::path path_;
};

std::string build_id_of(const std::string& path) { return ElfFile::open(path)->build_id(); }

TEST(Modules, EqualSpecsAreOneModule) {
  Symbolizer symbols(offline());
  const ModuleId first = symbols.add_module({"/a", "12", false});
  EXPECT_EQ(symbols.add_module({"/a", "12", false}), first);
  EXPECT_NE(symbols.add_module({"/a", "13", false}), first);
  EXPECT_NE(symbols.add_module({"/b", "12", false}), first);
}

TEST(Modules, MissingFileSaysWhy) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({"/no/such/file", "", false});
  EXPECT_TRUE(symbols.missing().empty());  // nobody asked
  EXPECT_TRUE(symbols.locate(id, 0x1000).frames.empty());
  EXPECT_EQ(symbols.loops(id, 0x1000), nullptr);
  EXPECT_FALSE(symbols.data_symbol(id, 0x1000));
  ASSERT_EQ(symbols.missing().size(), 1U);
  EXPECT_EQ(symbols.missing()[0].path, "/no/such/file");
  EXPECT_NE(symbols.missing()[0].why.find("No such file"), std::string::npos);
  EXPECT_NE(symbols.missing()[0].why.find("--sysroot"), std::string::npos);
}

TEST(Modules, ChangedFileIsMissing) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({fixture("program_o0"), build_id_of(fixture("program_o2")), false});
  EXPECT_TRUE(symbols.locate(id, address_of(fixture("program_o0"), "inlines")).frames.empty());
  ASSERT_EQ(symbols.missing().size(), 1U);
  EXPECT_NE(symbols.missing()[0].why.find("changed since the recording"), std::string::npos);
}

TEST(Modules, WithoutABuildIdAChangedFileIsKnownByItsContents) {
  const Folder folder("rebuilt");
  const std::string path = folder.put("program_o2", "program");
  const std::uint64_t recorded = content_hash(path);
  EXPECT_NE(recorded, 0U);
  const std::uint64_t inlines = address_of(path, "inlines");
  Symbolizer same(offline());
  EXPECT_FALSE(same.locate(same.add_module({path, "", false, recorded}), inlines).frames.empty());
  folder.put("program_o0", "program");
  Symbolizer rebuilt(offline());
  const ModuleId id = rebuilt.add_module({path, "", false, recorded});
  EXPECT_NE(rebuilt.add_module({path, "", false, content_hash(path)}), id);
  EXPECT_TRUE(rebuilt.locate(id, inlines).frames.empty());
  ASSERT_EQ(rebuilt.missing().size(), 1U);
  EXPECT_TRUE(rebuilt.missing()[0].no_file);
  EXPECT_NE(rebuilt.missing()[0].why.find("changed since the recording (it has no build id"), std::string::npos);
  EXPECT_NE(rebuilt.missing()[0].why.find("--sysroot"), std::string::npos);
}

TEST(Modules, NothingIsMissingOfPackedDebugInformation) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({fixture("program_packed"), "", false});
  const CodeLocation location = symbols.locate(id, address_of(fixture("program_packed"), "inlines"));
  ASSERT_FALSE(location.frames.empty());
  EXPECT_NE(location.frames.back().source.line, 0U);
  EXPECT_TRUE(symbols.missing().empty());
}

TEST(Modules, AFileUnderTheSysrootNeedNotHaveTheRecordedContents) {
  const Folder root("stripped_or_not");
  root.put("program_o2", fixture("program_o0"));
  Options options = offline();
  options.sysroot = root.path();
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({fixture("program_o0"), "", false, 4711});
  EXPECT_FALSE(symbols.locate(id, address_of(fixture("program_o2"), "inlines")).frames.empty());
}

TEST(Modules, AnAbsoluteLinkBelowTheSysrootLeadsBelowIt) {
  const Folder root("links");
  root.put("program_o2", "data/app");
  fs::create_directories(root.path() + "/opt");
  fs::create_symlink("/data/app", root.path() + "/opt/app");
  Options options = offline();
  options.sysroot = root.path();
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({"/opt/app", build_id_of(fixture("program_o2")), false});
  EXPECT_FALSE(symbols.locate(id, address_of(fixture("program_o2"), "inlines")).frames.empty());
}

TEST(Modules, BuildIdsAreComparedAsPerfHasThem) {
  const std::string of_8 = "1122334455667788", of_20(40, 'a'), of_32 = of_20 + "0123456789abcdef01234567";
  EXPECT_TRUE(same_build_id(of_8, of_8));
  EXPECT_TRUE(same_build_id(of_8 + std::string(24, '0'), of_8));  // filled up
  EXPECT_TRUE(same_build_id(of_20, of_32));                       // cut
  EXPECT_FALSE(same_build_id(of_8 + std::string(23, '0') + "1", of_8));
  EXPECT_FALSE(same_build_id(of_8, of_8 + "00"));
  EXPECT_FALSE(same_build_id(of_20, ""));
  EXPECT_FALSE(same_build_id(std::string(40, '0'), ""));
}

TEST(Modules, OfAForeignArchitectureOrAnotherHostNoFileIsTaken) {
  const std::string program = fixture("program_o2");
  const std::uint64_t inlines = address_of(program, "inlines");
  Options options = offline();
  options.foreign_architecture = "aarch64";
  Symbolizer foreign(options);
  EXPECT_TRUE(foreign.locate(foreign.add_module({program, "", false}), inlines).frames.empty());
  ASSERT_EQ(foreign.missing().size(), 1U);
  EXPECT_NE(foreign.missing()[0].why.find("aarch64"), std::string::npos);
  options.foreign_architecture.clear();
  options.other_host = "elsewhere";
  Symbolizer other(options);
  EXPECT_TRUE(other.locate(other.add_module({program, "", false}), inlines).frames.empty());
  EXPECT_FALSE(other.locate(other.add_module({program, build_id_of(program), false}), inlines).frames.empty());
  EXPECT_NE(other.missing().at(0).why.find("elsewhere"), std::string::npos);
  options.sysroot = "/";
  Symbolizer told(options);
  EXPECT_FALSE(told.locate(told.add_module({program, "", false}), inlines).frames.empty());
}

TEST(Modules, OfAFileThatWasGoneNoOtherIsTakenUnlessItsBuildIdFits) {
  const std::string program = fixture("program_o2");
  const std::uint64_t inlines = address_of(program, "inlines");
  Symbolizer symbols(offline());
  EXPECT_TRUE(symbols.locate(symbols.add_module({program + " (deleted)", "", false}), inlines).frames.empty());
  ASSERT_EQ(symbols.missing().size(), 1U);
  EXPECT_NE(symbols.missing()[0].why.find("was deleted or replaced"), std::string::npos);
  EXPECT_FALSE(symbols.locate(symbols.add_module({program + " (deleted)", build_id_of(program), false}), inlines)
                   .frames.empty());
}

TEST(Modules, TheRecordingsOwnCopyIsTakenWhereTheFileIsGone) {
  std::ifstream in(fixture("program_o2"), std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Options options = offline();
  options.kept_copy = [&](const ModuleSpec& file) {
    return file.path == "/memfd:program" ? std::optional(bytes) : std::nullopt;
  };
  Symbolizer symbols(options);
  const std::uint64_t inlines = address_of(fixture("program_o2"), "inlines");
  const CodeLocation& found = symbols.locate(symbols.add_module({"/memfd:program", "", false, 1}), inlines);
  EXPECT_TRUE(found.has_lines);
  EXPECT_TRUE(symbols.missing().empty());
}

TEST(Modules, PlacesInAFileHaveTheAddressesOfItsSegments) {
  const auto file = ElfFile::open(fixture("program_no_pie"));
  ASSERT_TRUE(file);
  const std::uint64_t inlines = address_of(fixture("program_no_pie"), "inlines");
  for (const Section& section : file->sections()) {
    if (section.range().contains(inlines) && section.executable()) {
      GElf_Shdr header;
      ASSERT_NE(gelf_getshdr(section.handle, &header), nullptr);
      EXPECT_EQ(file->address_of(header.sh_offset + (inlines - section.address)), inlines);
    }
  }
  EXPECT_FALSE(file->address_of(1ULL << 40U));
}

TEST(Modules, CodeLiesInASegmentThatIsLoadedFromItsPlaceInTheFile) {
  const std::string program = fixture("program_no_pie");
  const std::uint64_t inlines = address_of(program, "inlines");
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({program, "", false});
  const auto segment = symbols.segment_at(id, inlines);
  ASSERT_TRUE(segment);
  EXPECT_LE(segment->begin, inlines);
  EXPECT_LT(inlines, segment->end);
  const auto file = ElfFile::open(program);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->address_of(segment->file_offset), segment->begin);
  EXPECT_FALSE(symbols.segment_at(id, 1ULL << 40U));
  EXPECT_FALSE(symbols.segment_at(symbols.add_module({"/no/such/file", "", false}), inlines));
  EXPECT_TRUE(symbols.missing().empty()) << "a question for a segment is none for names";
}

TEST(SymbolTable, LabelsWithinAFunctionDoNotTakeItsPlace) {
  const Folder folder("labels");
  const std::string source = folder.path() + "/k.s", library = folder.path() + "/k.so";
  {
    std::ofstream text(source);
    text << ".text\n.globl kernel\n.type kernel,@function\nkernel:\n";
    for (int i = 0; i < 500; ++i) {
      text << "row_" << i << ":\n nop\n nop\n";
    }
    text << " ret\n.size kernel,.-kernel\nbehind: nop\n.section .note.GNU-stack,\"\",@progbits\n";
  }
  ASSERT_EQ(std::system(("gcc -shared -nostdlib " + source + " -o " + library).c_str()), 0);
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({library, "", false});
  const std::uint64_t kernel = address_of(library, "kernel");
  for (std::uint64_t at = kernel; at < kernel + 1001; ++at) {
    ASSERT_EQ(symbols.locate(id, at).frames.at(0).function, "kernel") << at - kernel;
  }
  EXPECT_EQ(symbols.locate(id, kernel + 1001).frames.at(0).function, "behind");
}

TEST(ContentHash, IsOfEveryByteAndTheSize) {
  const Folder folder("contents");
  const std::string path = folder.path() + "/file";
  const auto of = [&](const std::string& text) {
    std::ofstream(path) << text;
    return content_hash(path);
  };
  // By hand: h = 3; h = (rotl(3, 5) ^ 0x636261) * K.
  EXPECT_EQ(of("abc"), ((3ULL << 5U) ^ 0x636261ULL) * 0x9e3779b97f4a7c15ULL);
  EXPECT_NE(of("abc"), of("abd"));
  EXPECT_NE(of("abc"), of(std::string("abc\0", 4)));
  std::string large(std::size_t{17} << 20U, 'x');
  const std::uint64_t before = of(large);
  large.back() = 'y';
  EXPECT_NE(of(large), before);
  EXPECT_EQ(content_hash(folder.path()), 0U);
  EXPECT_EQ(content_hash(folder.path() + "/none"), 0U);
}

TEST(Modules, SysrootComesFirst) {
  const Folder root("sysroot");
  root.put("program_o2", fixture("program_o0"));  // under the root, the other program has that path
  Options options = offline();
  options.sysroot = root.path();
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({fixture("program_o0"), "", false});
  const CodeLocation& location = symbols.locate(id, address_of(fixture("program_o2"), "inlines"));
  ASSERT_FALSE(location.frames.empty());
  EXPECT_EQ(location.frames.back().function, "inlines");
  // With a build id the one that fits is taken, wherever it is.
  const ModuleId exact = symbols.add_module({fixture("program_o0"), build_id_of(fixture("program_o0")), false});
  EXPECT_EQ(symbols.locate(exact, address_of(fixture("program_o0"), "inlines")).frames.back().function, "inlines");
}

TEST(Modules, DebugLinkBesideTheFile) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({fixture("stripped/program"), "", false});
  const CodeLocation& location = symbols.locate(id, address_of(fixture("program_o2"), "nested_loops"));
  ASSERT_EQ(location.frames.size(), 1U);
  EXPECT_EQ(location.frames[0].function, "nested_loops");
  EXPECT_TRUE(location.has_lines);
  const FunctionLoops* loops = symbols.loops(id, address_of(fixture("program_o2"), "nested_loops"));
  ASSERT_NE(loops, nullptr);
  EXPECT_EQ(loops->loops.size(), 4U);
  EXPECT_EQ(loops->loops[0].begin.line, line_of("loop_i"));
  EXPECT_TRUE(symbols.missing().empty());
}

TEST(Modules, DebugFileByBuildId) {
  const Folder root("build_id");
  const std::string build_id = build_id_of(fixture("stripped/program"));
  ASSERT_GT(build_id.size(), 4U);
  const std::string program = root.put("stripped/program", "bin/program");
  root.put("stripped/.debug/program.debug",
           "debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug");
  Options options = offline();
  options.debug_paths = {root.path() + "/debug"};
  Symbolizer symbols(options);
  const ModuleId id = symbols.add_module({program, build_id, false});
  const auto found = symbols.data_symbol(id, address_of(fixture("program_o2"), "global_outer") + 16);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "global_outer");
  EXPECT_EQ(symbols.field(id, *found, 16)->path, "inner.first");
  // Without the program, its debug information alone still gives lines.
  const ModuleId gone = symbols.add_module({root.path() + "/bin/gone", build_id, false});
  EXPECT_TRUE(symbols.locate(gone, address_of(fixture("program_o2"), "inlines")).has_lines);
  ASSERT_EQ(symbols.missing().size(), 1U);
}

TEST(Modules, DebuginfodServesByBuildId) {
  const Folder root("debuginfod");
  const std::string build_id = build_id_of(fixture("stripped/program"));
  const std::string program = root.put("stripped/program", "program");
  root.put("stripped/.debug/program.debug", "server/buildid/" + build_id + "/debuginfo");
  ASSERT_EQ(setenv("DEBUGINFOD_URLS", ("file://" + root.path() + "/server").c_str(), 1), 0);
  ASSERT_EQ(setenv("DEBUGINFOD_CACHE_PATH", (root.path() + "/cache").c_str(), 1), 0);
  const std::uint64_t address = address_of(fixture("program_o2"), "inlines");
  Options options;
  options.debug_paths.clear();
  {
    Symbolizer symbols(options);
    EXPECT_TRUE(symbols.locate(symbols.add_module({program, build_id, false}), address).has_lines);
  }
  options.debuginfod = false;
  {
    Symbolizer symbols(options);
    EXPECT_FALSE(symbols.locate(symbols.add_module({program, build_id, false}), address).has_lines);
  }
  unsetenv("DEBUGINFOD_URLS");
  unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST(Modules, StrippedWithoutDebugInformationSaysHowToGetIt) {
  const Folder root("alone");
  const std::string program = root.put("stripped/program", "program");
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({program, "", false});
  static_cast<void>(symbols.locate(id, 0x1000));
  ASSERT_EQ(symbols.missing().size(), 1U);
  EXPECT_NE(symbols.missing()[0].why.find("build it with -g"), std::string::npos) << symbols.missing()[0].why;
}

TEST(Modules, OwnVdso) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({"", "", true});
  const ModuleId other = symbols.add_module({"", "00112233", true});
  bool named = false;
  for (std::uint64_t address = 0; address < 0x2000 && !named; address += 16) {
    const auto& frames = symbols.locate(id, address).frames;
    named = !frames.empty() && frames[0].function.find("vdso") != std::string::npos;
  }
  EXPECT_TRUE(named);
  EXPECT_TRUE(symbols.locate(other, 0xa00).frames.empty());
  ASSERT_EQ(symbols.missing().size(), 1U);
}

TEST(Modules, DebugLinkChecksum) {
  const std::string text = "123456789";
  EXPECT_EQ(debuglink_checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}), 0xcbf43926U);
}

}  // namespace
}  // namespace crosstalk::symbolizer::modules_test
