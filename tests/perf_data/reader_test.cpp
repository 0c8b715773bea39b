// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/perf_data/file_bytes.h"

namespace crosstalk::perf_data::reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Bytes sample(ByteOrder order, std::uint64_t time_ns, std::uint64_t ip, std::uint64_t id = 31) {
  return record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, Bytes(order).u64(ip).u32(10).u32(11).words({time_ns, id}));
}

Bytes end_of_round(ByteOrder order) { return record(finished_round, 0, Bytes(order)); }

/// The contents of a file, as a visitor sees them.
struct Seen {
  Result<ReadSummary> summary;
  std::vector<std::uint64_t> ips;
  std::vector<std::size_t> events;
  std::vector<std::string> names;  // of threads and of files with build ids
};

Seen read(const Bytes& file) {
  Seen seen;
  Result<Reader> reader = Reader::open(file.all());
  if (!reader) {
    seen.summary = tl::unexpected<Error>(reader.error());
    return seen;
  }
  seen.summary = reader->read([&](const Record& record) -> Result<void> {
    if (const auto* each = std::get_if<Sample>(&record.content)) {
      seen.ips.push_back(each->ip);
      seen.events.push_back(each->event);
    } else if (const auto* comm = std::get_if<Comm>(&record.content)) {
      seen.names.emplace_back(comm->name);
    } else if (const auto* id = std::get_if<BuildId>(&record.content)) {
      seen.names.emplace_back(id->name);
    }
    return {};
  });
  return seen;
}

std::string error_of(const Bytes& file) {
  const Seen seen = read(file);
  return seen.summary ? "" : seen.summary.error().message;
}

TEST(PerfReader, AFileInOrderOfTime) {
  for (const ByteOrder order : both_orders) {
    Bytes data(order);
    data.add(sample(order, 100, 1)).add(sample(order, 90, 2)).add(end_of_round(order));
    data.add(sample(order, 95, 3)).add(sample(order, 110, 4)).add(end_of_round(order)).add(sample(order, 105, 5));
    const Seen seen = read(data_file(order, {}, {31}, data));
    ASSERT_TRUE(seen.summary) << seen.summary.error().message;
    EXPECT_THAT(seen.ips, ElementsAre(2, 3, 1, 5, 4));
    EXPECT_EQ(seen.summary->samples, 5U);
    EXPECT_EQ(seen.summary->records, 7U);
    EXPECT_EQ(seen.summary->out_of_order, 0U);
    EXPECT_FALSE(seen.summary->cut_off);
  }
}

TEST(PerfReader, APipeHasItsEventsAndNamesAmongTheRecords) {
  for (const ByteOrder order : both_orders) {
    AttributeText event;
    Bytes file = pipe_file(order);
    file.add(attribute_record(order, event, {31})).add(attribute_record(order, event, {32, 33}));
    file.add(record(event_update, 0, Bytes(order).words({2, 33}).text("mem-loads")));
    file.add(record(header_feature, 0, Bytes(order).u64(3).counted("machine")));
    file.add(record(header_tracing_data, 0, Bytes(order).u32(3).u32(0))).zeros(8);
    file.add(record(auxtrace, 0, Bytes(order).words({16, 0, 0, 0, 0}))).zeros(16);
    file.add(sample(order, 100, 1)).add(sample(order, 90, 2, 33)).add(sample(order, 120, 9, 77));
    Result<Reader> reader = Reader::open(file.all());
    ASSERT_TRUE(reader);
    std::vector<std::size_t> events;
    const auto summary = reader->read([&](const Record& record) -> Result<void> {
      if (const auto* each = std::get_if<Sample>(&record.content)) {
        events.push_back(each->event);
      }
      return {};
    });
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_THAT(events, ElementsAre(1, 0));
    EXPECT_EQ(summary->unknown_samples, 1U);
    EXPECT_EQ(summary->auxtrace_bytes, 16U);
    EXPECT_EQ(reader->events().list()[0].name, "cycles");
    EXPECT_EQ(reader->events().list()[1].name, "mem-loads");
    EXPECT_EQ(reader->features().hostname, "machine");
  }
}

TEST(PerfReader, CompressedRecordsGoOnFromPieceToPiece) {
  for (const ByteOrder order : both_orders) {
    for (const std::uint32_t kind : {compressed, compressed2}) {
      Bytes inner(order);
      for (std::uint64_t i = 0; i < 100; ++i) {
        inner.add(sample(order, 1000 - i, i));
      }
      Compressor compressor;
      Bytes data(order);
      for (std::size_t at = 0; at < inner.size();) {  // pieces end within records
        const std::size_t size = std::min<std::size_t>(inner.size() - at, 333);
        const auto piece = compressor.piece(inner.all().subspan(at, size));
        Bytes body(order);
        if (kind == compressed2) {
          body.u64(piece.size()).add(piece).zeros((8 - piece.size() % 8) % 8);
        } else {
          body.add(piece);
        }
        data.add(record(kind, 0, body));
        at += size;
      }
      const Seen seen = read(data_file(order, {}, {31}, data));
      ASSERT_TRUE(seen.summary) << seen.summary.error().message;
      ASSERT_EQ(seen.ips.size(), 100U);
      EXPECT_EQ(seen.ips.front(), 99U);
      EXPECT_EQ(seen.ips.back(), 0U);
      EXPECT_FALSE(seen.summary->cut_off);
    }
  }
}

TEST(PerfReader, DamagedCompressedRecordsAreNamed) {
  const ByteOrder order = ByteOrder::little;
  const Bytes nonsense = record(compressed, 0, Bytes(order).words({1, 2, 3}));
  EXPECT_THAT(error_of(pipe_file(order).add(nonsense)), HasSubstr("at offset 0x10, record COMPRESSED: it cannot be"));
  Compressor first;
  const auto zeros = first.piece(Bytes(order).zeros(64).all());
  EXPECT_THAT(error_of(pipe_file(order).add(record(compressed, 0, Bytes(order).add(zeros)))),
              HasSubstr("a record in it has 0 bytes"));
  Compressor second;
  const auto nested = second.piece(record(compressed, 0, Bytes(order).u64(1)).all());
  EXPECT_THAT(error_of(pipe_file(order).add(record(compressed, 0, Bytes(order).add(nested)))),
              HasSubstr("in the compressed record there, record COMPRESSED: a compressed record holds another"));
  const Bytes too_long = record(compressed2, 0, Bytes(order).words({9, 1}));
  EXPECT_THAT(error_of(pipe_file(order).add(too_long)), HasSubstr("record COMPRESSED2: its data do not fit"));
  Compressor third;
  const auto part = third.piece(sample(order, 1, 1).all().first(20));
  const Seen seen =
      read(pipe_file(order).add(attribute_record(order, {}, {31})).add(record(compressed, 0, Bytes(order).add(part))));
  ASSERT_TRUE(seen.summary);
  EXPECT_TRUE(seen.summary->cut_off);
}

TEST(PerfReader, FeaturesAreRead) {
  for (const ByteOrder order : both_orders) {
    const auto text = [&](Feature feature, const char* content) {
      return FeatureText{static_cast<std::uint32_t>(feature), Bytes(order).counted(content)};
    };
    Bytes ids(order), topology(order), events(order), numa(order), cache(order);
    ids.add(
        record(0, PERF_RECORD_MISC_USER, Bytes(order).u32(10).raw("0123456789abcdefghij").zeros(4).text("/lib/a.so")));
    events.u32(1).u32(136).add(attribute(order, {})).u32(1).counted("mem-loads").u64(31);
    topology.u32(1).counted("0-1").u32(1).counted("0-1").u32(5).u32(0).u32(6).u32(1);
    topology.u32(1).counted("0-1").u32(3).u32(4);
    numa.u32(1).u32(2).words({1000, 10}).counted("0-1");
    cache.u32(1).u32(1).u32(2).u32(64).u32(8).u32(4).counted("Data").counted("32K").counted("0-1");
    const std::vector<FeatureText> features = {
        {static_cast<std::uint32_t>(Feature::build_id), ids},
        text(Feature::hostname, "machine"),
        text(Feature::os_release, "6.1"),
        {static_cast<std::uint32_t>(Feature::processors), Bytes(order).u32(2).u32(1)},
        text(Feature::cpu_description, "a processor"),
        {static_cast<std::uint32_t>(Feature::command_line), Bytes(order).u32(2).counted("perf").counted("record")},
        {static_cast<std::uint32_t>(Feature::event_description), events},
        {static_cast<std::uint32_t>(Feature::cpu_topology), topology},
        {static_cast<std::uint32_t>(Feature::numa_topology), numa},
        {static_cast<std::uint32_t>(Feature::pmu_mappings), Bytes(order).u32(1).u32(4).counted("cpu")},
        {static_cast<std::uint32_t>(Feature::cache), cache},
        {200, Bytes(order).u64(1)}};
    const Bytes file = data_file(order, {}, {31}, sample(order, 100, 1), features);
    Result<Reader> reader = Reader::open(file.all());
    ASSERT_TRUE(reader) << reader.error().message;
    const Features& read_ones = reader->features();
    EXPECT_EQ(read_ones.hostname, "machine");
    EXPECT_EQ(read_ones.os_release, "6.1");
    EXPECT_EQ(read_ones.cpus_available, 2U);
    EXPECT_EQ(read_ones.cpus_online, 1U);
    EXPECT_EQ(read_ones.cpu_description, "a processor");
    EXPECT_THAT(read_ones.command_line, ElementsAre("perf", "record"));
    EXPECT_EQ(reader->events().list()[0].name, "mem-loads");
    ASSERT_EQ(read_ones.places.size(), 2U);
    EXPECT_EQ(read_ones.places[1].core, 6U);
    EXPECT_EQ(read_ones.places[1].socket, 1U);
    ASSERT_EQ(read_ones.numa.size(), 1U);
    EXPECT_EQ(read_ones.numa[0].cpus, "0-1");
    EXPECT_EQ(read_ones.pmus[0].name, "cpu");
    EXPECT_EQ(read_ones.caches[0].line_bytes, 64U);
    EXPECT_EQ(read_ones.caches[0].cpus, "0-1");
    EXPECT_THAT(read(file).names, ElementsAre("/lib/a.so"));
  }
}

TEST(PerfReader, ADamagedFeatureIsNamedAndLeftOut) {
  const ByteOrder order = ByteOrder::little;
  const auto error = [&](Feature feature, const Bytes& bytes) {
    const Bytes file = data_file(order, {}, {31}, sample(order, 1, 1), {{static_cast<std::uint32_t>(feature), bytes}});
    const Seen seen = read(file);
    EXPECT_TRUE(seen.summary);
    EXPECT_THAT(seen.ips, ElementsAre(1));
    return seen.summary && seen.summary->damaged.size() == 1 ? seen.summary->damaged[0] : "";
  };
  EXPECT_THAT(error(Feature::hostname, Bytes(order).u32(0xffffffff)), HasSubstr("feature HOSTNAME: it is cut off"));
  EXPECT_THAT(error(Feature::command_line, Bytes(order).u32(0xffffffff)), HasSubstr("feature CMDLINE"));
  EXPECT_THAT(error(Feature::numa_topology, Bytes(order).words({UINT64_MAX, 4096, UINT64_MAX, 0, UINT64_MAX})),
              HasSubstr("feature NUMA_TOPOLOGY"));
  EXPECT_THAT(error(Feature::event_description, Bytes(order).words({1, 8, 1})), HasSubstr("feature EVENT_DESC"));
  EXPECT_THAT(error(Feature::build_id, Bytes(order).u32(0).u16(0).u16(64)), HasSubstr("record HEADER_BUILD_ID"));
}

TEST(PerfReader, AnEmptyFeatureSaysNothing) {
  const ByteOrder order = ByteOrder::little;
  const Seen seen = read(data_file(order, {}, {31}, sample(order, 1, 1),
                                   {{static_cast<std::uint32_t>(Feature::cpu_description), Bytes(order)}}));
  ASSERT_TRUE(seen.summary);
  EXPECT_THAT(seen.ips, ElementsAre(1));
  EXPECT_TRUE(seen.summary->damaged.empty());
  EXPECT_FALSE(seen.summary->cut_off);
}

TEST(PerfReader, APartOfAFileIsReadAsFarAsItGoes) {
  const ByteOrder order = ByteOrder::little;
  Bytes whole = data_file(order, {}, {31}, sample(order, 100, 1).add(sample(order, 110, 2)),
                          {{3, Bytes(order).counted("machine")}});
  const std::size_t features = 16 + Bytes(order).counted("machine").size();
  for (const std::size_t missing : {std::size_t{1}, features - 8, features + 4}) {
    Bytes part = whole;
    part.data().resize(whole.size() - missing);
    const Seen seen = read(part);
    ASSERT_TRUE(seen.summary) << missing << ": " << seen.summary.error().message;
    EXPECT_TRUE(seen.summary->cut_off) << missing;
    EXPECT_EQ(seen.ips.size(), missing > features ? 1U : 2U) << missing;
  }
}

TEST(PerfReader, WhatIsCutOffEndsAKilledRecording) {
  for (const ByteOrder order : both_orders) {
    Bytes data = sample(order, 100, 1).add(sample(order, 110, 2));
    data.data().resize(data.size() - 4);
    const Bytes killed = data_file(order, {}, {31}, data, {}, true);
    const Seen seen = read(killed);
    ASSERT_TRUE(seen.summary);
    EXPECT_THAT(seen.ips, ElementsAre(1));
    EXPECT_TRUE(seen.summary->cut_off);
    const Seen cut_in_the_data = read(data_file(order, {}, {31}, data));
    ASSERT_TRUE(cut_in_the_data.summary);
    EXPECT_TRUE(cut_in_the_data.summary->cut_off);
  }
}

TEST(PerfReader, WhatIsNoPerfDataFileIsRefused) {
  const ByteOrder order = ByteOrder::little;
  EXPECT_THAT(error_of(Bytes(order)), HasSubstr("too short"));
  EXPECT_THAT(error_of(Bytes(order).raw("SQLite format 3").zeros(100)), HasSubstr("no perf.data file"));
  EXPECT_THAT(error_of(Bytes(order).raw("PERFFILE").zeros(100)), HasSubstr("before 2.6.38"));
  EXPECT_THAT(error_of(Bytes(order).words({0x32454c4946524550, 104})), HasSubstr("cut off"));
}

TEST(PerfReader, NoPlaceInTheHeaderIsTrusted) {
  const ByteOrder order = ByteOrder::little;
  const Bytes good = data_file(order, {}, {31}, sample(order, 1, 1), {{3, Bytes(order).counted("a")}});
  ASSERT_EQ(error_of(good), "");
  for (std::size_t word = 1; word < good.size() / 8; ++word) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{0x7fff},
                                      std::uint64_t{1} << 32U, UINT64_MAX - 7, UINT64_MAX}) {
      Bytes file = good;
      std::memcpy(file.data().data() + 8 * word, &value, sizeof value);
      (void)read(file);  // any answer; sanitizers judge
    }
  }
  Bytes file = good;
  const std::uint64_t far = 1ULL << 40U;
  std::memcpy(file.data().data() + 40, &far, sizeof far);
  EXPECT_THAT(error_of(file), HasSubstr("the data is at offset 0x10000000000"));
}

TEST(PerfReader, ARecordOfNoLengthIsNamed) {
  const ByteOrder order = ByteOrder::little;
  EXPECT_THAT(error_of(pipe_file(order).zeros(16)),
              HasSubstr("at offset 0x10, record of type 0: it says that it has 0"));
  const Seen behind = read(data_file(order, {}, {31}, sample(order, 1, 1).add(Bytes(order).zeros(16))));
  ASSERT_TRUE(behind.summary);
  EXPECT_THAT(behind.ips, ElementsAre(1));
  EXPECT_TRUE(behind.summary->cut_off);
  EXPECT_THAT(error_of(pipe_file(order).add(sample(order, 1, 1))),
              HasSubstr("record SAMPLE: no event was described before it"));
}

TEST(PerfReader, AnErrorOfTheVisitorIsPassedOn) {
  const ByteOrder order = ByteOrder::little;
  const Bytes file = data_file(order, {}, {31}, sample(order, 1, 1));
  Result<Reader> reader = Reader::open(file.all());
  const auto summary = reader->read([](const Record&) -> Result<void> { return fail(ErrorCode::system, "full"); });
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().message, "full");
}

TEST(PerfRoundQueue, ItsMemoryIsBounded) {
  constexpr std::size_t most = 10000;
  RoundQueue queue(most);
  std::vector<std::uint64_t> times;
  const auto take = [&](const QueuedRecord& record) -> Result<void> {
    times.push_back(record.time_ns);
    return {};
  };
  const std::vector<std::byte> bytes(100);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(queue.put(2000 - i, {}, bytes, true, take));
    ASSERT_LE((i + 1 - times.size()) * bytes.size(), most);
  }
  ASSERT_TRUE(queue.end(take));
  EXPECT_EQ(times.size(), 1000U);
  EXPECT_GT(queue.out_of_order(), 0U);
}

TEST(PerfRoundQueue, EqualTimesStayInOrder) {
  RoundQueue queue;
  std::vector<std::uint64_t> offsets;
  const auto take = [&](const QueuedRecord& record) -> Result<void> {
    offsets.push_back(record.place.offset);
    return {};
  };
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue.put(7, {i, false}, {}, false, take));
  }
  ASSERT_TRUE(queue.end(take));
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(offsets[i], i);
  }
}

}  // namespace
}  // namespace crosstalk::perf_data::reader_test
