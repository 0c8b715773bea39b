// SPDX-License-Identifier: Apache-2.0
// The two ends of a ring: wrapping, fullness, nesting in a real signal handler, and hostile bytes.
#include "profile/ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "profile/ring_reader.h"

namespace crosstalk::profile::ring_test {
namespace {

constexpr std::uint32_t ring_bytes = 4096;

struct Ring {
  ThreadSlot slot{};
  alignas(cache_line) std::byte bytes[ring_bytes] = {};
  RingWriter writer;
  RingReader reader{slot, bytes, ring_bytes};
  Ring() { writer.attach(&slot, bytes, ring_bytes); }

  bool write(std::uint64_t value, std::size_t tail = 0) {
    Sample sample;
    sample.header.type = RecordType::sample;
    sample.ip = value;
    std::array<std::byte, 512> text;  // no vector: signal handlers come here
    text.fill(static_cast<std::byte>(value));
    return writer.write(sample, text.data(), std::min(tail, text.size()));
  }

  /// The values of all records that can be read now.
  std::vector<std::uint64_t> read(ParseOutcome* outcome = nullptr) {
    std::vector<std::byte> batch;
    reader.drain(batch);
    std::vector<std::uint64_t> values;
    const ParseOutcome parsed = parse_records(batch, [&](const RecordView& record) {
      if (record.type() == RecordType::sample) {
        values.push_back(record.as<Sample>().ip);
        for (const std::byte byte : record.tail()) {
          EXPECT_EQ(byte, static_cast<std::byte>(values.back()));
        }
      }
    });
    if (outcome != nullptr) {
      *outcome = parsed;
    }
    return values;
  }
};

TEST(RingOfAThread, RecordsOfAllSizesComeThroughManyWraps) {
  Ring ring;
  std::mt19937 random(3);  // NOLINT: the same sequence each time
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int round = 0; round < 5000; ++round) {
    for (std::size_t i = random() % 8; i != 0; --i) {
      written += ring.write(written, random() % 300) ? 1 : 0;
    }
    ParseOutcome outcome;
    for (const std::uint64_t value : ring.read(&outcome)) {
      ASSERT_EQ(value, read++);
    }
    ASSERT_FALSE(outcome.corrupt);
  }
  EXPECT_EQ(read, written);
  EXPECT_EQ(ring.slot.lost_records.load(), 0U);
}

TEST(RingOfAThread, AFullRingCountsLossesAndGoesOn) {
  Ring ring;
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    kept += ring.write(kept) ? 1 : 0;
  }
  EXPECT_EQ(kept, ring_bytes / sizeof(Sample));
  EXPECT_EQ(ring.slot.lost_records.load(), 100 - kept);
  EXPECT_EQ(ring.slot.lost_bytes.load(), (100 - kept) * sizeof(Sample));
  EXPECT_EQ(ring.read().size(), kept);
  EXPECT_TRUE(ring.write(1));
  EXPECT_EQ(ring.read().size(), 1U);
}

TEST(RingOfAThread, ImpossibleSizesAreLosses) {
  Ring ring;
  EXPECT_EQ(ring.writer.reserve(0), nullptr);
  EXPECT_EQ(ring.writer.reserve(12), nullptr);
  EXPECT_EQ(ring.writer.reserve(ring_bytes + 8), nullptr);
  EXPECT_EQ(ring.writer.reserve(0x10000), nullptr);
  EXPECT_EQ(ring.slot.lost_records.load(), 4U);
  ASSERT_TRUE(ring.write(5));  // a loss leaves no write open
  EXPECT_EQ(ring.read(), std::vector<std::uint64_t>{5});
  RingWriter detached;
  EXPECT_EQ(detached.reserve(64), nullptr);
}

TEST(RingOfAThread, NothingIsPublishedBeforeTheOutermostWriteEnds) {
  Ring ring;
  Sample outer;
  outer.header = {RecordType::sample, sizeof(Sample), 0};
  outer.ip = 1;
  std::byte* at = ring.writer.reserve(sizeof outer);
  ASSERT_NE(at, nullptr);
  ASSERT_TRUE(ring.write(2));  // as a signal handler would
  EXPECT_TRUE(ring.read().empty());
  std::memcpy(at, &outer, sizeof outer);
  ring.writer.commit();
  EXPECT_EQ(ring.read(), (std::vector<std::uint64_t>{1, 2}));
}

TEST(RingOfAThread, AReservationThatIsNotFilledInIsSkipped) {
  Ring ring;
  ASSERT_NE(ring.writer.reserve(sizeof(Sample)), nullptr);
  ASSERT_TRUE(ring.write(2));
  EXPECT_TRUE(ring.read().empty());
  ring.writer.commit();
  ParseOutcome outcome;
  EXPECT_EQ(ring.read(&outcome), std::vector<std::uint64_t>{2});
  EXPECT_FALSE(outcome.corrupt);
}

Ring* interrupted = nullptr;
std::atomic<std::uint64_t> handler_written = 0;

void write_in_handler(int) {
  const std::uint64_t value = handler_written.load(std::memory_order_relaxed);
  if (interrupted->write(1'000'000'000 + value, value % 100)) {
    handler_written.store(value + 1, std::memory_order_relaxed);
  }
}

TEST(RingOfAThread, HandlersMayInterruptAnywhere) {
  Ring ring;
  interrupted = &ring;
  struct sigaction action = {};
  action.sa_handler = write_in_handler;
  ::sigaction(SIGPROF, &action, nullptr);
  std::atomic<bool> done = false;
  std::uint64_t outer = 0;
  std::uint64_t inner = 0;
  bool corrupt = false;
  sigset_t profiling;
  sigemptyset(&profiling);
  sigaddset(&profiling, SIGPROF);
  std::thread recorder([&] {
    ::pthread_sigmask(SIG_BLOCK, &profiling, nullptr);
    bool last = false;
    while (!last) {
      last = done.load();
      ParseOutcome outcome;
      for (const std::uint64_t value : ring.read(&outcome)) {
        std::uint64_t& expected = value >= 1'000'000'000 ? inner : outer;
        EXPECT_EQ(value % 1'000'000'000, expected);
        ++expected;
      }
      corrupt = corrupt || outcome.corrupt;
    }
  });
  const itimerval timer{{0, 100}, {0, 100}};
  ::setitimer(ITIMER_REAL, nullptr, nullptr);
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  std::uint64_t written = 0;
  for (int i = 0; i < 2'000'000 || handler_written.load() < 50; ++i) {
    written += ring.write(written, static_cast<std::size_t>(i % 64)) ? 1 : 0;
    if (i % 1000 == 0) {
      ::raise(SIGPROF);
    }
  }
  const itimerval off{};
  ::setitimer(ITIMER_PROF, &off, nullptr);
  ::signal(SIGPROF, SIG_IGN);
  done.store(true);
  recorder.join();
  EXPECT_FALSE(corrupt);
  EXPECT_EQ(outer, written);
  EXPECT_EQ(inner, handler_written.load());
  EXPECT_GT(inner, 0U);
}

TEST(HostileRing, AnImpossibleHeadIsFollowedAndHeals) {
  for (const std::uint64_t head : {std::uint64_t{2} * ring_bytes, std::uint64_t{5}, ~std::uint64_t{0}}) {
    Ring ring;
    ASSERT_TRUE(ring.write(1));
    ASSERT_EQ(ring.read().size(), 1U);
    ring.slot.head.store(head);
    std::vector<std::byte> batch;
    EXPECT_TRUE(ring.reader.drain(batch).corrupt);
    EXPECT_TRUE(batch.empty());
    (void)ring.write(2);  // publishes the true head again, written or lost
    ring.reader.drain(batch);
    ASSERT_TRUE(ring.write(3));
    const auto values = ring.read();
    ASSERT_FALSE(values.empty());
    EXPECT_EQ(values.back(), 3U);
  }
}

TEST(HostileRing, TheReadersTailIsItsOwn) {
  Ring ring;
  ASSERT_TRUE(ring.write(1));
  ASSERT_EQ(ring.read().size(), 1U);
  ring.slot.tail.store(0);
  EXPECT_TRUE(ring.read().empty());
}

TEST(HostileRing, ImpossibleHeadersEndTheBatch) {
  const RecordHeader impossible[] = {
      {RecordType::sample, 0, 0},           {RecordType::sample, 4, 0},    {RecordType::sample, 60, 0},
      {RecordType::sample, 32, 0},          {RecordType::sample, 4096, 0}, {RecordType::sample, 64, 1},
      {static_cast<RecordType>(99), 64, 0}, {RecordType::padding, 0, 0},   {RecordType::sample, 64, 0xffffffff},
  };
  for (const RecordHeader& header : impossible) {
    Ring ring;
    ASSERT_TRUE(ring.write(1));
    ASSERT_TRUE(ring.write(2));
    std::memcpy(ring.bytes + sizeof(Sample), &header, sizeof header);
    ParseOutcome outcome;
    EXPECT_EQ(ring.read(&outcome), std::vector<std::uint64_t>{1});
    EXPECT_TRUE(outcome.corrupt);
    ASSERT_TRUE(ring.write(3));
    EXPECT_EQ(ring.read(), std::vector<std::uint64_t>{3});
  }
}

TEST(HostileRing, AnArenaMustLieWithinItsMapping) {
  constexpr std::uint64_t behind_header = (sizeof(ArenaHeader) + cache_line - 1) / cache_line * cache_line;
  constexpr std::uint64_t slots_at = behind_header + cross_process_bytes;
  constexpr std::uint64_t waits_at = slots_at + 2 * sizeof(ThreadSlot);
  constexpr std::uint64_t rings_at = waits_at + 2 * sizeof(ThreadWaits);
  alignas(cache_line) static std::byte memory[rings_at + 3 * ring_stride(4096)];
  auto* header = new (memory) ArenaHeader();
  header->header_bytes = sizeof(ArenaHeader);
  header->slot_count = 2;
  header->ring_bytes = 4096;
  header->cross_process_offset = behind_header;
  header->slots_offset = slots_at;
  header->rings_offset = rings_at;
  header->total_bytes = header->rings_offset + 2 * ring_stride(4096);
  const ArenaView view{header};
  EXPECT_TRUE(view.valid(header->total_bytes));
  EXPECT_FALSE(view.valid(header->total_bytes - 1));
  header->slot_count = 3;
  EXPECT_FALSE(view.valid(sizeof memory));
  header->slot_count = 2;
  header->ring_bytes = 4095;
  EXPECT_FALSE(view.valid(sizeof memory));
  header->ring_bytes = 4096;
  header->cross_process_offset = behind_header + cache_line;  // would reach into the slots
  EXPECT_FALSE(view.valid(sizeof memory));
  header->cross_process_offset = behind_header;
  EXPECT_TRUE(view.valid(sizeof memory));
  header->rings_offset = rings_at - cache_line;  // the tables of waits would reach into it
  EXPECT_FALSE(view.valid(sizeof memory));
  header->rings_offset = ~std::uint64_t{0} - 100;
  EXPECT_FALSE(view.valid(sizeof memory));
}

}  // namespace
}  // namespace crosstalk::profile::ring_test
