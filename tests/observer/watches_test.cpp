// SPDX-License-Identifier: Apache-2.0
// Watching without a kernel: breakpoints are made up, and their reports are scripted.
#include "collectors/observer/watches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "profile/ring_reader.h"

namespace crosstalk::observer::watches_test {
namespace {

constexpr std::uint64_t line = 0x10000;
constexpr std::uint64_t key = 0x4711000;  // of the line, on the board
constexpr std::uint32_t ring_bytes = 64 * 1024;
constexpr std::uint64_t store_mark = 1;  // in a sample's flags: its access was a store

class FakeWorld final : public WatchWorld {
 public:
  struct Made {
    pid_t tid = 0;
    WatchedPlace place;
    std::uint32_t shots = 0;  // 0: not enabled
    bool open() const { return ::fcntl(fd, F_GETFD) != -1; }
    int fd = -1;
  };

  std::optional<OpenEvent> prepare(const WatchedThread& thread, const WatchedPlace& place) override {
    if (thread.tid == refused) {
      return std::nullopt;
    }
    OpenEvent event{UniqueFd(::dup(0)), ++last_id};
    made[last_id] = {thread.tid, place, 0, event.fd.get()};
    return event;
  }
  void enable(const OpenEvent& event, std::uint32_t shots) override {
    now += enabling_ns;
    made[event.id].shots = shots;
  }
  std::uint64_t now_ns() override { return now; }
  std::uint64_t cpu_ns() override { return 0; }
  std::uint32_t new_watch() override { return ++last_watch; }
  bool was_store(const WatchedThread& /*thread*/, const PerfSample& trap) override {
    return (trap.flags & store_mark) != 0;
  }

  /// The latest breakpoint of a thread at an offset of the line; 0: there is none.
  [[nodiscard]] std::uint64_t of(pid_t tid, std::uint64_t offset) const {
    std::uint64_t found = 0;
    for (const auto& [id, one] : made) {
      found = one.tid == tid && one.place.address % profile::cache_line == offset ? id : found;
    }
    return found;
  }

  std::map<std::uint64_t, Made> made;
  std::uint64_t now = 1000, last_id = 0, enabling_ns = 0;
  std::uint32_t last_watch = 0;
  pid_t refused = 0;
};

class WatchesTest : public testing::Test {
 protected:
  static constexpr pid_t first = 11, second = 12;

  WatchesTest() : board_(std::make_unique<watch_policy::Board>()), memory_(::memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(memory_.get(), off_t{4} * ring_bytes), 0);
    budget_.start(1);
    add(first);
    add(second);
  }

  void add(pid_t tid) {
    const auto index = static_cast<std::uint32_t>(threads_.size());
    auto ring = std::make_unique<ArenaRing>(
        slots_[index], index, *MappedMemory::map(memory_.get(), std::uint64_t{index} * ring_bytes, ring_bytes),
        ring_bytes);
    threads_.push_back(
        std::make_unique<WatchedThread>(tid, std::move(ring), OpenEvent{}, *PerfRing::map(memory_.get(), 1)));
  }

  Watches& watches() {
    if (!watches_) {
      watches_.emplace(world_, budget_, WatchSettings{4, 20'000'000, 10, 20});
    }
    return *watches_;
  }

  /// Opens a watch of a line that the second thread's process has at `elsewhere`.
  std::uint32_t open(std::uint64_t elsewhere = line) {
    WatchRequest request;
    request.line = line;
    request.others = {{threads_[1].get(), elsewhere}};
    request.board = board_.get();
    request.key = key;
    request.access = {0, 8, AccessKind::load, true, false};
    request.suspicion.partner = {2, 0, 8, AccessKind::store, 0};
    request.suspected = true;
    return watches().open(*threads_[0], request);
  }

  /// An access to the sampled word at `time`.
  void access(pid_t tid, std::uint64_t time_ns, bool store) {
    const std::uint64_t id = world_.of(tid, 0);
    if (id == 0 || !world_.made[id].open() || world_.made[id].shots == 0) {
      return;  // the kernel reports nothing
    }
    if (world_.made[id].place.mode == watch_policy::WatchMode::write_only && !store) {
      return;
    }
    --world_.made[id].shots;
    PerfSample sample;
    sample.event = id;
    sample.tid = tid;
    sample.time_ns = time_ns;
    sample.has_registers = true;
    sample.flags = store ? store_mark : 0;
    watches().trapped(*threads_[tid == first ? 0 : 1], sample);
  }

  struct Seen {
    std::vector<profile::WatchOpen> opened;
    std::vector<std::pair<std::uint32_t, profile::WatchTrap>> traps;  // thread's number
    std::vector<profile::WatchClose> closed;
  };
  Seen seen() {
    Seen all;
    for (std::uint32_t i = 0; i < threads_.size(); ++i) {
      auto ring = MappedMemory::map(memory_.get(), std::uint64_t{i} * ring_bytes, ring_bytes);
      profile::RingReader reader(slots_[i], ring->begin(), ring_bytes);
      std::vector<std::byte> batch;
      reader.drain(batch);
      profile::parse_records(batch, [&](const profile::RecordView& record) {
        if (record.type() == profile::RecordType::watch_open) {
          all.opened.push_back(record.as<profile::WatchOpen>());
        } else if (record.type() == profile::RecordType::watch_trap) {
          all.traps.emplace_back(i + 1, record.as<profile::WatchTrap>());
        } else if (record.type() == profile::RecordType::watch_close) {
          all.closed.push_back(record.as<profile::WatchClose>());
        }
      });
    }
    std::sort(all.traps.begin(), all.traps.end(),
              [](const auto& a, const auto& b) { return a.second.sequence < b.second.sequence; });
    return all;
  }

  FakeWorld world_;
  std::unique_ptr<watch_policy::Board> board_;
  watch_policy::Budget budget_{};
  UniqueFd memory_;
  profile::ThreadSlot slots_[2]{};
  WatchedThreads threads_;
  std::optional<Watches> watches_;
};

TEST_F(WatchesTest, AllThreadsAreArmedForABoundedNumberOfAccesses) {
  const std::uint32_t watch = open();
  ASSERT_NE(watch, 0U);
  EXPECT_EQ(world_.made[world_.of(first, 0)].shots, shots_a_breakpoint);
  EXPECT_EQ(world_.made[world_.of(second, 0)].shots, shots_a_breakpoint);
  const Seen all = seen();
  ASSERT_EQ(all.opened.size(), 1U);
  EXPECT_EQ(all.opened[0].watch, watch);
  EXPECT_EQ(all.opened[0].threads, 2U);
  EXPECT_EQ(all.opened[0].armed, 1U);
  EXPECT_EQ(all.opened[0].line, line);
}

TEST_F(WatchesTest, AThreadIsArmedWhereItsProcessHasTheLine) {
  constexpr std::uint64_t elsewhere = 0x5000040;
  ASSERT_NE(open(elsewhere), 0U);
  EXPECT_EQ(world_.made[world_.of(first, 0)].place.address, line);
  EXPECT_EQ(world_.made[world_.of(second, 0)].place.address, elsewhere);
  access(first, 1001, true);
  access(second, 1002, true);
  watches().settle(world_.now);
  const auto traps = seen().traps;
  ASSERT_EQ(traps.size(), 2U);
  EXPECT_EQ(traps[0].second.line, 0U);  // as the watch has it
  EXPECT_EQ(traps[1].second.line, elsewhere);
}

TEST_F(WatchesTest, TheBoardThatKnowsTheLineIsTold) {
  board_->publish(key, {1, 0, 8, AccessKind::store, 0});
  ASSERT_NE(open(), 0U);
  for (std::uint64_t time = 1001; time < 1040; ++time) {
    access(time % 2 == 0 ? first : second, time, true);
  }
  EXPECT_EQ(board_->publish(key, {2, 0, 8, AccessKind::store, 0}).hits, 1U);
}

TEST_F(WatchesTest, WithoutAnotherThreadNothingIsWatched) {
  world_.refused = second;
  EXPECT_EQ(open(), 0U);
  EXPECT_TRUE(watches().has_room(true));
  EXPECT_TRUE(seen().opened.empty());
  EXPECT_EQ(watches().next_end_ns(), UINT64_MAX);
}

TEST_F(WatchesTest, OfARunTheFirstAccessAndTheFirstStoreAreTaken) {
  ASSERT_NE(open(), 0U);
  for (std::uint64_t time = 1001; time < 1005; ++time) {
    access(first, time, false);
  }
  access(first, 1005, true);
  access(first, 1006, true);
  access(second, 1007, false);
  access(second, 1008, true);
  access(first, 1009, false);
  const auto traps = seen().traps;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> taken;
  taken.reserve(traps.size());
  for (const auto& [thread, trap] : traps) {
    taken.emplace_back(thread, trap.time_ns);
  }
  EXPECT_EQ(taken, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{
                       {1, 1001}, {1, 1005}, {2, 1007}, {2, 1008}, {1, 1009}}));
}

TEST_F(WatchesTest, SequencesHaveNoGaps) {
  ASSERT_NE(open(), 0U);
  for (std::uint64_t time = 1001; time < 1010; ++time) {
    access(time % 2 == 0 ? first : second, time, true);
  }
  const auto traps = seen().traps;
  ASSERT_GT(traps.size(), 3U);
  for (std::uint32_t i = 0; i < traps.size(); ++i) {
    EXPECT_EQ(traps[i].second.sequence, i);
  }
}

TEST_F(WatchesTest, EnoughRunsEndIt) {
  ASSERT_NE(open(), 0U);
  for (std::uint64_t time = 1001; time < 1040; ++time) {
    access(time % 2 == 0 ? first : second, time, true);
  }
  const Seen all = seen();
  ASSERT_EQ(all.closed.size(), 1U);
  EXPECT_EQ(all.closed[0].reason, profile::CloseReason::full);
  EXPECT_EQ(all.closed[0].traps, all.traps.size());
  for (const auto& [id, made] : world_.made) {
    EXPECT_FALSE(made.open()) << id;
  }
}

TEST_F(WatchesTest, WhoHammersIsDisarmedAndArmedAgainForTheNextOwner) {
  ASSERT_NE(open(), 0U);
  const std::uint64_t before = world_.of(first, 0);
  for (std::uint64_t time = 1001; time < 1013; ++time) {
    access(first, time, true);
  }
  watches().settle(world_.now);
  EXPECT_FALSE(world_.made[before].open());
  access(second, 1020, true);
  watches().settle(world_.now);
  const std::uint64_t after = world_.of(first, 0);
  EXPECT_NE(after, before);
  EXPECT_TRUE(world_.made[after].open());
  EXPECT_EQ(world_.made[after].shots, shots_a_breakpoint);
}

TEST_F(WatchesTest, WhoOnlyReadsIsWatchedForStores) {
  ASSERT_NE(open(), 0U);
  for (std::uint64_t time = 1001; time < 1016; ++time) {
    access(second, time, false);
  }
  watches().settle(world_.now);
  EXPECT_EQ(world_.made[world_.of(second, 0)].place.mode, watch_policy::WatchMode::write_only);
  access(second, 1020, true);
  const auto traps = seen().traps;
  ASSERT_EQ(traps.size(), 2U);
  EXPECT_EQ(traps[1].second.write_only, 1);
}

TEST_F(WatchesTest, TimeEndsIt) {
  ASSERT_NE(open(), 0U);
  EXPECT_EQ(watches().next_end_ns(), world_.now + 20'000'000);
  world_.now += 20'000'001;
  watches().settle(world_.now);
  const Seen all = seen();
  ASSERT_EQ(all.closed.size(), 1U);
  EXPECT_EQ(all.closed[0].reason, profile::CloseReason::horizon);
  EXPECT_TRUE(watches().has_room(true));
}

TEST_F(WatchesTest, ItsTimeBeginsWhenAllAreArmed) {
  world_.enabling_ns = 30'000'000;
  const std::uint64_t before_ns = world_.now;
  ASSERT_NE(open(), 0U);
  EXPECT_EQ(watches().next_end_ns(), world_.now + 20'000'000);
  watches().settle(world_.now);
  const Seen all = seen();
  EXPECT_TRUE(all.closed.empty());
  ASSERT_EQ(all.opened.size(), 1U);
  EXPECT_EQ(all.opened[0].time_ns, before_ns);  // accesses that come while the others are armed are in it
}

TEST_F(WatchesTest, WhatIsStillInTheRingsIsWaitedFor) {
  ASSERT_NE(open(), 0U);
  const std::uint64_t end_ns = watches().next_end_ns();
  world_.now = end_ns + 50'000'000;
  watches().settle(end_ns - 1);
  access(second, end_ns - 1, true);
  Seen all = seen();
  EXPECT_TRUE(all.closed.empty());
  EXPECT_EQ(all.traps.size(), 1U);
  watches().settle(world_.now);
  all = seen();
  ASSERT_EQ(all.closed.size(), 1U);
  EXPECT_EQ(all.closed[0].time_ns, world_.now);
}

TEST_F(WatchesTest, AThreadThatEndsLeavesItsWatches) {
  ASSERT_NE(open(), 0U);
  watches().leave(*threads_[1]);
  EXPECT_FALSE(world_.made[world_.of(second, 0)].open());
  EXPECT_TRUE(world_.made[world_.of(first, 0)].open());
  watches().leave(*threads_[0]);
  EXPECT_EQ(seen().closed.size(), 1U);
  EXPECT_TRUE(watches().has_room(true));
}

TEST_F(WatchesTest, WhatComesOfNoBreakpointOfOursIsPassedOver) {
  ASSERT_NE(open(), 0U);
  PerfSample sample;
  sample.event = 4711;
  sample.has_registers = true;
  watches().trapped(*threads_[0], sample);
  EXPECT_TRUE(seen().traps.empty());
}

TEST_F(WatchesTest, AccessesAreChargedToTheirThread) {
  ASSERT_NE(open(), 0U);
  access(second, 1001, true);
  access(second, 1002, true);
  EXPECT_EQ(slots_[1].handlers_ns.load(), 20U);
  EXPECT_EQ(slots_[0].handlers_ns.load(), 0U);
}

TEST_F(WatchesTest, TheEndClosesAll) {
  ASSERT_NE(open(), 0U);
  watches().close_all();
  const Seen all = seen();
  ASSERT_EQ(all.closed.size(), 1U);
  EXPECT_EQ(all.closed[0].reason, profile::CloseReason::stopped);
}

}  // namespace
}  // namespace crosstalk::observer::watches_test
