// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "collectors/facilities/probe.h"

namespace crosstalk::collectors::command_check_test {
namespace {

class CommandCheck : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "crosstalk-command-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  std::string make(const std::string& name, const std::string& bytes, mode_t mode = 0755) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path.string();
  }

  /// /bin/true with `change` made to its bytes.
  template <class Change>
  std::string changed_program(const std::string& name, Change change) {
    std::ifstream file("/bin/true", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    change(bytes);
    return make(name, bytes);
  }

  std::string without_interpreter(const std::string& name) {
    return changed_program(name, [](std::string& bytes) {
      Elf64_Ehdr header;
      std::memcpy(&header, bytes.data(), sizeof(header));
      for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        char* const at = bytes.data() + header.e_phoff + i * sizeof(segment);
        std::memcpy(&segment, at, sizeof(segment));
        if (segment.p_type == PT_INTERP) {
          segment.p_type = PT_NULL;
          std::memcpy(at, &segment, sizeof(segment));
        }
      }
    });
  }

  static void expect(const std::string& command, ErrorCode code, const std::string& words) {
    const auto checked = check_command(command);
    ASSERT_FALSE(checked) << checked->path;
    EXPECT_EQ(checked.error().code, code) << checked.error().message;
    EXPECT_NE(checked.error().message.find(words), std::string::npos) << checked.error().message;
    EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
  }

  static void expect_obstacle(const std::string& command, const std::string& words, bool privileged = false) {
    const auto checked = check_command(command);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked->path, command);
    EXPECT_NE(checked->obstacle.find(words), std::string::npos) << checked->obstacle;
    EXPECT_EQ(checked->privileged, privileged);
  }

  static std::string path_of(const std::string& command) {
    const auto checked = check_command(command);
    return checked && checked->obstacle.empty() ? checked->path : "";
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(CommandCheck, AllowsAnOrdinaryProgram) {
  EXPECT_EQ(path_of("/bin/true"), "/bin/true");
  EXPECT_NE(path_of("true"), "");
}

TEST_F(CommandCheck, SearchesThePathAsExecvpDoes) {
  const std::string first = (folder_ / "first").string();
  const std::string second = (folder_ / "second").string();
  std::filesystem::create_directory(first);
  std::filesystem::create_directory(second);
  make("first/tool", "#!/bin/sh\n", 0644);
  ::setenv("PATH", (first + "::" + second).c_str(), 1);
  expect("tool", ErrorCode::not_executable, "Permission denied");
  const std::string good = make("second/tool", "#!/bin/sh\n");
  EXPECT_EQ(path_of("tool"), good);
  expect("other-tool", ErrorCode::not_found, "not found in PATH");
}

TEST_F(CommandCheck, TellsMissingFromNotExecutable) {
  expect((folder_ / "missing").string(), ErrorCode::not_found, "no such file");
  expect(make("data", "x\n", 0644), ErrorCode::not_executable, "Permission denied");
  expect(folder_.string(), ErrorCode::not_executable, "directory");
  expect("", ErrorCode::not_found, "empty");
}

TEST_F(CommandCheck, NothingIsPreloadedIntoStaticPrograms) {
  expect_obstacle(without_interpreter("static"), "is statically linked");
}

TEST_F(CommandCheck, AllowsTheLoaderItself) {
  EXPECT_EQ(path_of("/lib64/ld-linux-x86-64.so.2"), "/lib64/ld-linux-x86-64.so.2");
}

TEST_F(CommandCheck, RefusesOtherMachines) {
  expect(changed_program("wide", [](std::string& b) { b[EI_CLASS] = ELFCLASS32; }), ErrorCode::refused, "32-bit");
  expect(changed_program("arm", [](std::string& b) { b[offsetof(Elf64_Ehdr, e_machine)] = char(EM_AARCH64); }),
         ErrorCode::refused, "another processor");
}

TEST_F(CommandCheck, NothingIsPreloadedByOtherLoaders) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  const std::string musl = changed_program("musl", [&](std::string& bytes) {
    const std::size_t at = bytes.find(loader);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, loader.size(), std::string("/lib/ld-musl-x86_64.so.1").append(3, '\0'));
  });
  expect_obstacle(musl, "ld-musl");
}

TEST_F(CommandCheck, NothingIsPreloadedIntoPrivilegedPrograms) {
  const std::string program = changed_program("privileged", [](std::string&) {});
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  expect_obstacle(program, "set-user-ID", true);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  expect_obstacle(program, "set-group-ID", true);
}

TEST_F(CommandCheck, NothingIsPreloadedIntoProgramsWithCapabilities) {
  const std::string program = changed_program("capable", [](std::string&) {});
  // struct vfs_cap_data of revision 2: cap_net_raw permitted and effective
  const unsigned char capability[20] = {1, 0, 0, 2, 0, 0x20};
  if (::setxattr(program.c_str(), "security.capability", capability, sizeof(capability), 0) != 0) {
    GTEST_SKIP() << "file capabilities cannot be set here: " << std::strerror(errno);
  }
  expect_obstacle(program, "capabilities", true);
}

TEST_F(CommandCheck, RefusesDamagedPrograms) {
  expect(make("short", std::string("\x7f"
                                   "ELF\x02",
                                   5)),
         ErrorCode::not_executable, "damaged");
  expect(changed_program("cut", [](std::string& b) { b.resize(sizeof(Elf64_Ehdr) + 10); }), ErrorCode::not_executable,
         "cut off");
  expect(make("noise", std::string("\x01\x02\x00\x03", 4)), ErrorCode::not_executable, "neither");
}

TEST_F(CommandCheck, JudgesScriptsByTheirInterpreter) {
  EXPECT_NE(path_of(make("shell", "#!/bin/sh\n")), "");
  EXPECT_NE(path_of(make("options", "#! /bin/sh -e\n")), "");
  EXPECT_NE(path_of(make("env", "#!/usr/bin/env sh\n")), "");
  EXPECT_NE(path_of(make("split", "#!/usr/bin/env -S A=b sh -e\n")), "");
  EXPECT_NE(path_of(make("plain", "echo hello\n")), "");
  const std::string program = without_interpreter("static");
  expect_obstacle(make("by-static", "#!" + program + "\n"), "which is statically linked");
  expect(make("by-missing", "#!/no/such/interpreter\n"), ErrorCode::not_executable, "/no/such/interpreter");
  expect(make("by-env-missing", "#!/usr/bin/env no-such-interpreter\n"), ErrorCode::not_found, "no-such-interpreter");
  expect(make("by-nothing", "#!\n"), ErrorCode::not_executable, "no interpreter");
}

TEST_F(CommandCheck, ScriptsOfScriptsEnd) {
  const std::string self = (folder_ / "self").string();
  make("self", "#!" + self + "\n");
  expect(self, ErrorCode::not_executable, "too many levels");
}

}  // namespace
}  // namespace crosstalk::collectors::command_check_test
