// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/target_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <string>
#include <thread>

#include "collectors/code_mapping.h"

namespace crosstalk::observer::target_process_test {
namespace {

/// A child of the test that sleeps, or has ended but is not reaped.
class TestChild {
 public:
  explicit TestChild(bool ends) : pid_(::fork()) {
    if (pid_ == 0) {
      if (!ends) {
        ::pause();  // until it is killed
      }
      ::_exit(0);
    }
    siginfo_t info{};
    if (ends) {
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    }
  }
  TestChild(const TestChild&) = delete;
  TestChild& operator=(const TestChild&) = delete;
  ~TestChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

std::string refusal(pid_t pid) {
  const auto checked = check_process(pid);
  return checked ? std::string() : checked.error().message;
}

TEST(TargetProcess, AProcessOfOursCanBeWatched) {
  const TestChild child(false);
  EXPECT_EQ(refusal(child.pid()), "");
}

TEST(TargetProcess, WhatIsNoProcessIsRefused) {
  EXPECT_NE(refusal(INT32_MAX).find("there is no process"), std::string::npos);
  EXPECT_NE(refusal(::getpid()).find("itself"), std::string::npos);
  const TestChild zombie(true);
  EXPECT_NE(refusal(zombie.pid()).find("zombie"), std::string::npos);
  EXPECT_TRUE(has_ended(zombie.pid()));
  EXPECT_TRUE(has_ended(INT32_MAX));
  EXPECT_FALSE(has_ended(::getpid()));
}

TEST(TargetProcess, AThreadsIdIsRefusedWithItsProcess) {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    stop.wait(false);
  });
  while (tid == 0) {
    std::this_thread::yield();
  }
  const std::vector<pid_t> threads = threads_of(::getpid());
  EXPECT_NE(std::find(threads.begin(), threads.end(), tid.load()), threads.end());
  EXPECT_NE(refusal(tid).find("a thread of process " + std::to_string(::getpid())), std::string::npos);
  stop = true;
  stop.notify_all();
  thread.join();
}

TEST(TargetProcess, ChildrenAreThoseThatAreThere) {
  const TestChild child(false);
  const TestChild zombie(true);
  const std::vector<ChildProcess> children = children_of({::getpid()});
  const auto has = [&](pid_t pid) {
    return std::any_of(children.begin(), children.end(),
                       [pid](const auto& one) { return one.pid == pid && one.parent == ::getpid(); });
  };
  EXPECT_TRUE(has(child.pid()));
  EXPECT_FALSE(has(zombie.pid()));
  EXPECT_TRUE(children_of({child.pid()}).empty());
  EXPECT_TRUE(children_of({}).empty());
}

TEST(TargetProcess, MemoryIsReadOrNot) {
  const std::uint64_t word = 4711;
  std::uint64_t copy = 0;
  const TargetMemory memory(::getpid());
  EXPECT_TRUE(memory.read(reinterpret_cast<std::uint64_t>(&word), &copy, sizeof copy));
  EXPECT_EQ(copy, word);
  EXPECT_FALSE(memory.read(0, &copy, sizeof copy));
}

TEST(TargetProcess, MappingsThatWentAwayAreNoMatterOfRights) {
  const TestChild child(false);
  Mapping gone;  // as of a program that the process has executed another one from
  gone.end = 1;
  gone.readable = true;
  const Result<void> checked = check_memory(child.pid(), {gone});
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(TargetProcess, ModulesAreReadOffTheirHeaders) {
  const TestChild child(false);
  const std::vector<TargetModule> modules = modules_of(maps_of(child.pid()), TargetMemory(child.pid()));
  const std::string executable = process_facts(child.pid()).executable;
  const auto own = std::find_if(modules.begin(), modules.end(),
                                [&](const TargetModule& module) { return module.path == executable; });
  ASSERT_NE(own, modules.end());
  const auto here = reinterpret_cast<std::uint64_t>(&refusal);
  EXPECT_LE(own->record.begin, here);
  EXPECT_GT(own->record.end, here);
  EXPECT_LE(own->record.bias, own->record.begin);
  const auto libc = std::find_if(modules.begin(), modules.end(), [](const TargetModule& module) {
    return module.path.find("libc.so") != std::string::npos;
  });
  ASSERT_NE(libc, modules.end());
  EXPECT_EQ(libc->record.build_id_size, 20);
  EXPECT_EQ(std::count_if(modules.begin(), modules.end(),
                          [](const TargetModule& module) { return module.record.is_vdso != 0; }),
            1);
}

TEST(TargetProcess, CodeOfAFileOutsideOfModulesIsAPartOfIt) {
  const auto mapping = [](std::uint64_t begin, const char* path, bool executable) {
    Mapping made;
    made.begin = begin, made.end = begin + 0x1000, made.offset = 0x4000;
    made.executable = executable;
    made.inode = 7;
    made.path = path;
    return made;
  };
  TargetModule program;
  program.record.begin = 0x1000, program.record.end = 0x3000;
  program.path = "/bin/node";
  const std::vector<TargetModule> parts = parts_of(
      {mapping(0x2000, "/bin/node", true), mapping(0x5000, "/bin/node", true), mapping(0x7000, "/bin/node", false),
       mapping(0x8000, "/memfd:doublemapper", true), mapping(0x9000, "/tmp/jit-7.dump", true),
       mapping(0xa000, "[vsyscall]", true), mapping(0xb000, "", true), mapping(0xc000, "/dev/zero", true)},
      {program});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].record.begin, 0x5000U);
  EXPECT_EQ(parts[0].record.file_offset, 0x4000U);
  EXPECT_EQ(parts[0].record.is_part, 1);
  EXPECT_EQ(parts[0].path, "/bin/node");
  std::vector<Mapping> many;
  for (std::uint64_t page = 0; page < 1000; ++page) {
    many.push_back(mapping(0x10000 + 0x2000 * page, "/bin/node", true));
  }
  EXPECT_EQ(parts_of(many, {program}).size(), collectors::most_mapped_parts) << "they may not fill the ring";
}

TEST(TargetProcess, AProcessesCpuTimeHoldsThatOfPastThreads) {
  constexpr std::uint64_t used_ns = 100'000'000;
  std::thread([] {
    timespec now{};
    while (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 && now.tv_nsec < static_cast<long>(used_ns)) {
    }
  }).join();
  EXPECT_GT(process_cpu_ns(::getpid()), used_ns / 2);
  EXPECT_EQ(process_cpu_ns(0x3ffffff), 0U) << "there is no such process";
}

TEST(TargetProcess, TheLibraryIsExpectedWhereTheEnvironmentNamesAnArena) {
  const auto is_expected = [](const char* variable) {
    char command[] = "sleep";
    char seconds[] = "20";
    char* const arguments[] = {command, seconds, nullptr};
    std::string text = variable;
    char* const environment[] = {text.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, "/bin/sleep", nullptr, nullptr, arguments, environment), 0);
    const bool expected = loads_library(pid);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return expected;
  };
  EXPECT_TRUE(is_expected("CROSSTALK_ARENA=/proc/1/fd/9"));
  EXPECT_FALSE(is_expected("NO_CROSSTALK_ARENA=/proc/1/fd/9"));
}

TEST(TargetProcess, ArgumentsAreToldFromTheZerosBehindATitle) {
  using namespace std::string_literals;
  using Words = std::vector<std::string>;
  EXPECT_EQ(arguments_in(""), Words());
  EXPECT_EQ(arguments_in("cat\0-n\0file\0"s), (Words{"cat", "-n", "file"}));
  EXPECT_EQ(arguments_in("grep\0\0file\0"s), (Words{"grep", "", "file"}));
  EXPECT_EQ(arguments_in("echo\0\0"s), (Words{"echo", ""}));
  EXPECT_EQ(arguments_in("server: idle\0\0\0\0\0"s), Words{"server: idle"});
}

}  // namespace
}  // namespace crosstalk::observer::target_process_test
