// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectors/perf_data/record_decoder.h"
#include "tests/perf_data/file_bytes.h"

namespace crosstalk::perf_data::records_test {
namespace {

constexpr std::uint64_t usual = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU;

Events events_of(ByteOrder order, std::uint64_t sample_type = usual) {
  Events events;
  AttributeText text;
  text.sample_type = sample_type;
  const Bytes bytes = attribute(order, text);
  ByteCursor cursor(bytes.all(), order);
  const Bytes ids = Bytes(order).words({31, 32});
  EXPECT_TRUE(events.add(*take_attribute(cursor, bytes.size()), WordView(ids.all(), order)));
  return events;
}

/// Appends the identity fields that follow a record's own fields.
Bytes& with_identity(Bytes& body) { return body.u32(10).u32(11).words({5000, 32}).u32(2).u32(0); }

Result<Record> decode(std::uint32_t type, std::uint16_t misc, const Bytes& body) {
  const Bytes bytes = record(type, misc, body);
  static std::vector<std::vector<std::byte>> kept;  // records are views
  kept.emplace_back(bytes.all().begin(), bytes.all().end());
  return decode_record(kept.back(), bytes.order(), events_of(bytes.order()), {0x1f0, false});
}

void expect_identity(const Record& record) {
  EXPECT_EQ(record.identity.pid, 10);
  EXPECT_EQ(record.identity.tid, 11);
  EXPECT_EQ(record.identity.time_ns, 5000U);
  EXPECT_EQ(record.identity.cpu, 2U);
}

TEST(PerfRecordsOfFiles, AMapping) {
  for (const ByteOrder order : both_orders) {
    Bytes body(order);
    body.u32(10).u32(11).words({0x400000, 0x2000, 0x1000}).text("/usr/bin/program");
    const auto record =
        decode(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA, with_identity(body));
    ASSERT_TRUE(record);
    expect_identity(*record);
    const auto& mapping = std::get<Mapping>(record->content);
    EXPECT_EQ(mapping.pid, 10);
    EXPECT_EQ(mapping.begin, 0x400000U);
    EXPECT_EQ(mapping.bytes, 0x2000U);
    EXPECT_EQ(mapping.file_offset, 0x1000U);
    EXPECT_EQ(mapping.name, "/usr/bin/program");
    EXPECT_TRUE(mapping.is_data);
    EXPECT_FALSE(mapping.has_protection);
  }
}

TEST(PerfRecordsOfFiles, AMappingOfTheSecondKindHasAnInodeOrABuildId) {
  for (const ByteOrder order : both_orders) {
    Bytes with_inode(order);
    with_inode.u32(10).u32(11).words({0x400000, 0x2000, 0x1000}).u32(8).u32(1).words({77, 3}).u32(5).u32(2).text("a");
    auto record = decode(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, with_identity(with_inode));
    ASSERT_TRUE(record);
    const auto mapping = std::get<Mapping>(record->content);
    EXPECT_EQ(mapping.inode, 77U);
    EXPECT_EQ(mapping.inode_generation, 3U);
    EXPECT_EQ(mapping.protection, 5U);
    EXPECT_EQ(mapping.name, "a");
    EXPECT_TRUE(mapping.build_id.empty());

    Bytes with_id(order);
    with_id.u32(10).u32(11).words({0x400000, 0x2000, 0x1000}).put(std::uint8_t{16}).raw("123");
    with_id.raw("0123456789abcdefghij").u32(5).u32(2).text("/lib/b.so");
    record = decode(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, with_identity(with_id));
    ASSERT_TRUE(record);
    const auto& other = std::get<Mapping>(record->content);
    ASSERT_EQ(other.build_id.size(), 16U);
    EXPECT_EQ(other.build_id[15], std::byte{'f'});
    EXPECT_EQ(other.inode, 0U);
    EXPECT_EQ(other.name, "/lib/b.so");
  }
}

TEST(PerfRecordsOfFiles, TasksThatBeginAndEnd) {
  for (const ByteOrder order : both_orders) {
    Bytes body(order);
    body.u32(20).u32(10).u32(21).u32(11).u64(4000);
    Bytes same = body;
    auto record = decode(PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, with_identity(body));
    ASSERT_TRUE(record);
    expect_identity(*record);
    const auto& fork = std::get<Fork>(record->content);
    EXPECT_EQ(fork.pid, 20);
    EXPECT_EQ(fork.parent_pid, 10);
    EXPECT_EQ(fork.tid, 21);
    EXPECT_EQ(fork.parent_tid, 11);
    EXPECT_TRUE(fork.exec);
    record = decode(PERF_RECORD_EXIT, 0, with_identity(same));
    ASSERT_TRUE(record);
    EXPECT_EQ(std::get<Exit>(record->content).tid, 21);

    Bytes comm(order);
    comm.u32(10).u32(11).text("worker");
    record = decode(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, with_identity(comm));
    ASSERT_TRUE(record);
    EXPECT_EQ(std::get<Comm>(record->content).name, "worker");
    EXPECT_EQ(std::get<Comm>(record->content).tid, 11);
    EXPECT_TRUE(std::get<Comm>(record->content).exec);
  }
}

TEST(PerfRecordsOfFiles, WhatWasLost) {
  for (const ByteOrder order : both_orders) {
    Bytes lost(order), samples(order);
    lost.words({31, 12});
    samples.u64(5);
    auto record = decode(PERF_RECORD_LOST, 0, with_identity(lost));
    ASSERT_TRUE(record);
    EXPECT_EQ(std::get<Lost>(record->content).count, 12U);
    record = decode(PERF_RECORD_LOST_SAMPLES, 0, with_identity(samples));
    ASSERT_TRUE(record);
    EXPECT_EQ(std::get<Lost>(record->content).count, 5U);

    Bytes throttle(order);
    throttle.words({4000, 31, 8});
    record = decode(PERF_RECORD_THROTTLE, 0, with_identity(throttle));
    ASSERT_TRUE(record);
    EXPECT_TRUE(std::holds_alternative<Throttle>(record->content));
  }
}

TEST(PerfRecordsOfFiles, OfTheRestThreadAndTimeAreKnown) {
  for (const ByteOrder order : both_orders) {
    for (const std::uint32_t type : {std::uint32_t{PERF_RECORD_SWITCH}, std::uint32_t{PERF_RECORD_UNTHROTTLE}, 40U}) {
      Bytes body(order);
      const auto record = decode(type, 0, with_identity(body));
      ASSERT_TRUE(record) << record_name(type);
      expect_identity(*record);
      EXPECT_TRUE(std::holds_alternative<Other>(record->content));
    }
  }
}

TEST(PerfRecordsOfFiles, ABuildIdMaySayItsLength) {
  constexpr std::uint16_t has_size = 1U << 15U;
  for (const ByteOrder order : both_orders) {
    for (const bool says : {false, true}) {
      Bytes body(order);
      body.u32(0xffffffff).raw("0123456789abcdefghij").put(std::uint8_t{16}).raw("\1\1\1").text("/lib/b.so");
      const auto misc = static_cast<std::uint16_t>(PERF_RECORD_MISC_USER | (says ? has_size : 0));
      const auto record = decode(header_build_id, misc, body);
      ASSERT_TRUE(record);
      const auto& id = std::get<BuildId>(record->content);
      EXPECT_EQ(id.pid, -1);
      EXPECT_EQ(id.bytes.size(), says ? 16U : 20U);
      EXPECT_EQ(id.name, "/lib/b.so");
      EXPECT_FALSE(id.of_kernel);
    }
  }
}

TEST(PerfRecordsOfFiles, AnErrorNamesOffsetAndRecord) {
  const auto record = decode(PERF_RECORD_MMAP2, 0, Bytes(ByteOrder::little).zeros(48));
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::corrupt);
  EXPECT_EQ(record.error().message, "at offset 0x1f0, record MMAP2: its fields do not fit into its 56 bytes");
  const auto sample = decode(PERF_RECORD_SAMPLE, 0, Bytes(ByteOrder::little).zeros(16));
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().message, "at offset 0x1f0, record SAMPLE: its fields do not fit into its 24 bytes");
  const auto short_one = decode(PERF_RECORD_COMM, 0, Bytes(ByteOrder::little).zeros(8));
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error().message, "at offset 0x1f0, record COMM: it is too short to say who and when");
}

TEST(PerfRecordsOfFiles, TheTimeIsKnownBeforeTheRest) {
  for (const ByteOrder order : both_orders) {
    const Events events = events_of(order);
    Bytes comm(order);
    comm.u32(10).u32(11).text("worker");
    EXPECT_EQ(time_of_record(record(PERF_RECORD_COMM, 0, with_identity(comm)).all(), order, events), 5000U);
    Bytes sample(order);
    sample.u64(0x401000).u32(10).u32(11).words({6000, 31}).u32(1).u32(0);
    EXPECT_EQ(time_of_record(record(PERF_RECORD_SAMPLE, 0, sample).all(), order, events), 6000U);
    EXPECT_EQ(time_of_record(record(PERF_RECORD_SAMPLE, 0, Bytes(order).u64(1)).all(), order, events), 0U);
  }
}

TEST(PerfEvents, RecordsAreToldApartByTheirIds) {
  for (const ByteOrder order : both_orders) {
    for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{PERF_SAMPLE_IDENTIFIER}}) {
      Events events;
      for (const std::uint64_t id : {31, 32}) {
        AttributeText text;
        text.sample_type = usual | more;
        const Bytes bytes = attribute(order, text);
        ByteCursor cursor(bytes.all(), order);
        const Bytes ids = Bytes(order).u64(id);
        ASSERT_TRUE(events.add(*take_attribute(cursor, bytes.size()), WordView(ids.all(), order)));
      }
      Bytes sample(order), comm(order);
      if (more != 0) {
        sample.u64(32);
      }
      sample.u64(0x401000).u32(10).u32(11).words({6000, 32}).u32(1).u32(0);
      with_identity(comm.u32(10).u32(11).text("worker"));
      if (more != 0) {
        comm.u64(32);
      }
      EXPECT_EQ(events.of_record(true, WordView(sample.all(), order)), 1U);
      EXPECT_EQ(events.of_record(false, WordView(comm.all(), order)), 1U);
      EXPECT_EQ(events.of_record(true, WordView(Bytes(order).zeros(48).all(), order)), 0U);
      EXPECT_FALSE(events.of_record(true, WordView(Bytes(order).words({7, 7, 7, 7, 7, 7}).all(), order)));
      EXPECT_FALSE(events.of_record(true, WordView({}, order)));
    }
  }
}

TEST(PerfEvents, EventsThatCanNotBeToldApartAreRefused) {
  Events events;
  Attribute with_id, without;
  with_id.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ID;
  without.sample_type = PERF_SAMPLE_IP;
  Attribute elsewhere = with_id;
  elsewhere.sample_type |= PERF_SAMPLE_ADDR;
  ASSERT_TRUE(events.add(with_id, {}));
  EXPECT_FALSE(events.add(without, {}));
  EXPECT_FALSE(events.add(elsewhere, {}));
  EXPECT_TRUE(events.add(with_id, {}));
  EXPECT_EQ(events.list().size(), 2U);
}

}  // namespace
}  // namespace crosstalk::perf_data::records_test
