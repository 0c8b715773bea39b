// SPDX-License-Identifier: Apache-2.0
// Begin and end of an attachment, by a scripted collector.
#include "daemon/attached_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/unique_fd.h"

namespace crosstalk::daemon::attached_processes_test {
namespace {

constexpr std::uint64_t begin_ns = 1000;

struct World {
  UniqueFd ended{::eventfd(0, EFD_CLOEXEC)};
  int attached = 0, stopped = 0;
  std::string arena;
};

class FakeCollector final : public OutsideCollector {
 public:
  explicit FakeCollector(World& world) : world_(world) {}
  [[nodiscard]] int ended_fd() const override { return world_.ended.get(); }
  void stop() override { ++world_.stopped; }
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks() override { return {{"seen", "it was seen", 1}}; }

 private:
  World& world_;
};

class AttachedProcessesTest : public testing::Test {
 protected:
  AttachedProcesses attach(std::uint64_t delay_ns, std::uint64_t duration_ns) {
    auto attached = AttachedProcesses::attach(attachment(delay_ns, duration_ns), "/the/arena", begin_ns);
    EXPECT_TRUE(attached);
    return std::move(*attached);
  }

  Attachment attachment(std::uint64_t delay_ns, std::uint64_t duration_ns) {
    return {delay_ns, duration_ns, [this](const std::string& arena) -> Result<std::unique_ptr<OutsideCollector>> {
              ++world_.attached;
              world_.arena = arena;
              if (refuses_) {
                return fail(ErrorCode::refused, "process 7: it has ended");
              }
              return std::make_unique<FakeCollector>(world_);
            }};
  }

  World world_;
  bool refuses_ = false;
};

TEST_F(AttachedProcessesTest, EndWithTheLastOfThem) {
  AttachedProcesses processes = attach(0, 0);
  EXPECT_EQ(world_.attached, 1);
  EXPECT_EQ(world_.arena, "/the/arena");
  EXPECT_EQ(processes.fd(), world_.ended.get());
  EXPECT_FALSE(processes.poll_end(UINT64_MAX - 1));
  EXPECT_EQ(world_.stopped, 0);
  ::eventfd_write(world_.ended.get(), 1);
  EXPECT_TRUE(processes.poll_end(begin_ns + 1));
  EXPECT_EQ(world_.stopped, 1);
  ASSERT_EQ(processes.take_remarks().size(), 1U);
  EXPECT_EQ(processes.take_remarks()[0].code, "seen");
}

TEST_F(AttachedProcessesTest, AreLeftWhenTheTimeIsUp) {
  AttachedProcesses processes = attach(0, 500);
  EXPECT_FALSE(processes.poll_end(begin_ns + 40)) << "attaching took so long";
  EXPECT_FALSE(processes.poll_end(begin_ns + 539));
  EXPECT_TRUE(processes.poll_end(begin_ns + 540));
  EXPECT_EQ(world_.stopped, 1);
}

TEST_F(AttachedProcessesTest, AreLeftBySignalsThatEndPrograms) {
  AttachedProcesses processes = attach(0, 0);
  processes.tell(SIGUSR1);
  EXPECT_FALSE(processes.poll_end(begin_ns));
  processes.tell(SIGINT);
  EXPECT_TRUE(processes.poll_end(begin_ns));
}

TEST_F(AttachedProcessesTest, AreAttachedToAfterTheDelay) {
  AttachedProcesses processes = attach(300, 500);
  EXPECT_EQ(processes.fd(), -1);
  EXPECT_FALSE(processes.poll_end(begin_ns + 299));
  EXPECT_EQ(world_.attached, 0);
  EXPECT_FALSE(processes.poll_end(begin_ns + 310));
  EXPECT_EQ(world_.attached, 1);
  EXPECT_FALSE(processes.poll_end(begin_ns + 320));
  EXPECT_FALSE(processes.poll_end(begin_ns + 819));
  EXPECT_TRUE(processes.poll_end(begin_ns + 820));
}

TEST_F(AttachedProcessesTest, WhoCanNotBeAttachedToAtOnceIsRefused) {
  refuses_ = true;
  const auto attached = AttachedProcesses::attach(attachment(0, 0), "", begin_ns);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().message, "process 7: it has ended");
}

TEST_F(AttachedProcessesTest, WhoCanNotBeAttachedToLaterIsNamed) {
  refuses_ = true;
  AttachedProcesses processes = attach(300, 0);
  EXPECT_TRUE(processes.poll_end(begin_ns + 300));
  EXPECT_EQ(world_.stopped, 0);
  ASSERT_EQ(processes.take_remarks().size(), 1U);
  EXPECT_EQ(processes.take_remarks()[0].code, "not_watched");
  EXPECT_EQ(processes.take_remarks()[0].text, "process 7: it has ended");
}

TEST_F(AttachedProcessesTest, AnEndBeforeTheDelayIsOverIsSaid) {
  AttachedProcesses processes = attach(300, 0);
  processes.leave();
  EXPECT_TRUE(processes.poll_end(begin_ns + 1));
  EXPECT_EQ(world_.attached, 0);
  ASSERT_EQ(processes.take_remarks().size(), 1U);
  EXPECT_EQ(processes.take_remarks()[0].code, "not_watched");
}

}  // namespace
}  // namespace crosstalk::daemon::attached_processes_test
