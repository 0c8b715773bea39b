// SPDX-License-Identifier: Apache-2.0
// Runs the programs of programs/ with the tests' guest preloaded. Each checks itself and exits 0.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace crosstalk::in_target::interposition_test {
namespace {

struct Run {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string preload_before;  // "path:" or empty
  std::string preload_after;   // ":path" or empty
  std::string arena = "/dev/null";
};

/// Exit status, or -signal.
int run(const Run& how) {
  const std::string path = std::string(CROSSTALK_TEST_PROGRAMS) + "/" + how.program;
  std::vector<std::string> arguments{path};
  arguments.insert(arguments.end(), how.arguments.begin(), how.arguments.end());
  std::vector<std::string> environment{"PATH=/usr/bin:/bin", "CROSSTALK_ARENA=" + how.arena,
                                       std::string("GUEST_PATH=") + CROSSTALK_TEST_GUEST,
                                       "LD_PRELOAD=" + how.preload_before + CROSSTALK_TEST_GUEST + how.preload_after};
  environment.insert(environment.end(), how.environment.begin(), how.environment.end());
  const auto pointers = [](std::vector<std::string>& strings) {
    std::vector<char*> result;
    result.reserve(strings.size() + 1);
    for (std::string& s : strings) {
      result.push_back(s.data());
    }
    result.push_back(nullptr);
    return result;
  };
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> envp = pointers(environment);
  pid_t child = 0;
  if (posix_spawn(&child, path.c_str(), nullptr, nullptr, argv.data(), envp.data()) != 0) {
    return -1000;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string installed(const std::string& library) {
  for (const char* directory : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/usr/lib/"}) {
    if (std::filesystem::exists(directory + library)) {
      return directory + library;
    }
  }
  return "";
}

TEST(Interposition, EveryAllocationIsFoundWithItsSite) { EXPECT_EQ(run({"heap_program", {}, {}, "", ""}), 0); }

TEST(Interposition, AProgramsOwnOperatorNewIsUsed) { EXPECT_EQ(run({"own_allocator_program", {}, {}, "", ""}), 0); }

TEST(Interposition, AllocationBehindAnotherAllocator) {
  for (const char* library : {"libjemalloc.so.2", "libtcmalloc_minimal.so.4"}) {
    const std::string path = installed(library);
    ASSERT_NE(path, "") << library << " is not installed; ./dev deps does that";
    SCOPED_TRACE(library);
    EXPECT_EQ(run({"churn_program", {"seen"}, {}, "", ":" + path}), 0);
    EXPECT_EQ(run({"churn_program", {"unseen"}, {}, path + ":", ""}), 0);
  }
}

TEST(Interposition, ARuntimeThatCameWithAPlugin) { EXPECT_EQ(run({"late_runtime_program", {}, {}, "", ""}), 0); }

TEST(Interposition, AGuestThatDoesNotObserveChangesNothing) {
  EXPECT_EQ(run({"churn_program", {"unseen"}, {"GUEST_IDLE=1"}, "", ""}), 0);
}

TEST(Interposition, WaitsEndAsTheyWouldByThemselves) { EXPECT_EQ(run({"waits_program", {}, {}, "", ""}), 0); }

TEST(Interposition, SignalsAreTheTargets) { EXPECT_EQ(run({"signals_program", {}, {}, "", ""}), 0); }

TEST(Interposition, ChildrenAreObservedWhateverTheirEnvironment) {
  EXPECT_EQ(run({"exec_program", {"observed"}, {}, "", ""}), 3);
}

TEST(Interposition, ProgramsThatCouldNotOpenTheArenaAreNotObserved) {
  EXPECT_EQ(run({"exec_program", {"unobserved"}, {}, "", "", "/no/such/arena"}), 0);
}

TEST(Interposition, ChildrenAreNotObservedWhenNotWanted) {
  EXPECT_EQ(run({"exec_program", {"unobserved"}, {"GUEST_NO_CHILDREN=1"}, "", ""}), 3);
}

TEST(Interposition, ModulesAreReportedAsTheyComeAndGo) { EXPECT_EQ(run({"modules_program", {}, {}, "", ""}), 0); }

}  // namespace
}  // namespace crosstalk::in_target::interposition_test
