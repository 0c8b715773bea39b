// SPDX-License-Identifier: Apache-2.0
#include "daemon/substitute.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/thread_names.h"

namespace crosstalk::daemon::substitute_test {
namespace {

struct World {
  int attached = 0;
  std::vector<pid_t> taken;
  bool expects_more = true, refuses = false;
};

class FakeObserver final : public OutsideCollector {
 public:
  explicit FakeObserver(World& world) : world_(world) {}
  [[nodiscard]] int ended_fd() const override { return -1; }
  [[nodiscard]] Result<void> take(pid_t pid) override {
    world_.taken.push_back(pid);
    return world_.refuses ? fail(ErrorCode::permission, "it is another's") : Result<void>();
  }
  void expect_no_more() override { world_.expects_more = false; }
  void stop() override {}
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks() override { return {}; }

 private:
  World& world_;
};

class SubstituteTest : public testing::Test {
 protected:
  SubstituteTest() {
    options_.substitute.attach = [this](const std::string&) -> Result<std::unique_ptr<OutsideCollector>> {
      ++world_.attached;
      return std::make_unique<FakeObserver>(world_);
    };
  }
  /// This very process, as if it had executed `path` just now.
  static UnobservedProgram executed(const std::string& path) {
    UnobservedProgram program;
    program.reason = profile::Unobserved::statically_linked;
    program.pid = ::getpid();
    program.program = path;
    return program;
  }
  bool watch(UnobservedProgram& program) { return substitute_.watch(program, "/the/arena", 1, targets_); }

  World world_;
  RecordOptions options_;
  Substitute substitute_{options_};
  Targets targets_;
};

TEST_F(SubstituteTest, OneCollectorTakesAllPrograms) {
  UnobservedProgram program = executed(executable_of(::getpid()));
  EXPECT_TRUE(watch(program));
  EXPECT_TRUE(watch(program));
  EXPECT_EQ(world_.attached, 1);
  EXPECT_EQ(world_.taken, (std::vector<pid_t>{::getpid(), ::getpid()}));
  EXPECT_EQ(targets_.size(), 1U);
  substitute_.expect_no_more(targets_);
  EXPECT_FALSE(world_.expects_more);
}

TEST_F(SubstituteTest, AProgramIsTakenOnceItIsExecuted) {
  UnobservedProgram program = executed("/another/program");
  EXPECT_FALSE(watch(program));
  EXPECT_EQ(world_.attached, 0);
  EXPECT_EQ(program.unwatched, "") << "its exec may be under way";
}

TEST_F(SubstituteTest, TheReasonIsSaidIfItCannotBeWatched) {
  UnobservedProgram refused = executed(executable_of(::getpid()));
  world_.refuses = true;
  EXPECT_FALSE(watch(refused));
  EXPECT_EQ(
      reason_of(refused),
      "it is statically linked, and it could not be watched from outside: it is another's; link it dynamically to "
      "observe it");
  UnobservedProgram gone = executed("/a/program");
  gone.pid = 0x3ffffff;  // above the kernel's largest
  EXPECT_FALSE(watch(gone));
  EXPECT_EQ(gone.unwatched, "it had ended before it could be watched from outside");
  options_.substitute.attach = nullptr;
  options_.no_substitute = "perf events are forbidden";
  UnobservedProgram forbidden = executed(executable_of(::getpid()));
  EXPECT_FALSE(watch(forbidden));
  EXPECT_EQ(forbidden.unwatched, "perf events are forbidden");
}

}  // namespace
}  // namespace crosstalk::daemon::substitute_test
