// SPDX-License-Identifier: Apache-2.0
// The stream crosstalk.top/1: written, read, and read when it is not what it should be.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "driver/live/stream.h"
#include "live_snapshot.h"

namespace crosstalk::driver::live::live_stream_test {
namespace {

using test::sample_snapshot;

std::string refusal(const std::string& line) {
  const auto read = read_snapshot(line);
  return read ? "" : read.error().message;
}

TEST(TopStream, ALineSaysAllOfASnapshot) {
  const std::string line = line_of(sample_snapshot());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = read_snapshot(line);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(line_of(*read), line);
  EXPECT_EQ(read->sequence, 7U);
  EXPECT_EQ(read->objects[0].exchange.gain_s, 3.5);
  EXPECT_EQ(read->objects[1].exchange.gain_s, std::nullopt);
  EXPECT_EQ(read->loops[0].busy_class, "in_l2");
  EXPECT_EQ(read->threads[3].tid, 4245);
}

TEST(TopStream, TheFieldsOfTheInterfaceAreThere) {
  const auto object = nlohmann::json::parse(line_of(sample_snapshot()));
  for (const char* const name :
       {"schema",   "sequence",   "time_unix_s", "window_s", "refresh_s", "command",  "pids",
        "cpu_s",    "processors", "source",      "method",   "watching",  "overhead", "losses",
        "warnings", "threads",    "cells",       "lines",    "objects",   "loops",    "findings"}) {
    EXPECT_TRUE(object.contains(name)) << name;
  }
  EXPECT_EQ(object["schema"], "crosstalk.top/1");
  EXPECT_EQ(object["cells"][0]["false_cost_s"], 4.0);
  EXPECT_TRUE(object["objects"][1]["gain_s"].is_null());
}

TEST(TopStream, FieldsThatAreNotKnownArePassedOver) {
  auto object = nlohmann::json::parse(line_of(sample_snapshot()));
  object["colour"] = {{"red", 1}};
  object["threads"][0]["mood"] = "good";
  const auto read = read_snapshot(object.dump());
  ASSERT_TRUE(read);
  EXPECT_EQ(line_of(*read), line_of(sample_snapshot()));
}

TEST(TopStream, AbsentFieldsAndNullsAreUnknown) {
  const auto bare = read_snapshot(R"({"schema":"crosstalk.top/1"})");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->cpu_s);
  EXPECT_TRUE(bare->threads.empty());
  auto object = nlohmann::json::parse(line_of(sample_snapshot()));
  object["cpu_s"] = nullptr;
  object["objects"] = nullptr;
  object["threads"][1]["name"] = nullptr;
  const auto read = read_snapshot(object.dump());
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->cpu_s);
  EXPECT_TRUE(read->objects.empty());
  EXPECT_TRUE(read->threads[1].name.empty());
}

TEST(TopStream, GarbageIsRefusedInOneLine) {
  EXPECT_NE(refusal("").find("it is not JSON"), std::string::npos);
  EXPECT_NE(refusal("hello").find("it is not JSON"), std::string::npos);
  EXPECT_NE(refusal("[1,2]").find("no JSON object"), std::string::npos);
  EXPECT_NE(refusal("{}").find("no schema"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.report/1"})").find("crosstalk.report/1"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","sequence":"x"})").find("sequence"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","sequence":-1})").find("sequence"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","cpu_s":"much"})").find("cpu_s is no number"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","threads":[{"index":1e99}]})").find("threads[0].index"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","threads":[7]})").find("threads[0]"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","pids":[4294967296]})").find("pids[0]"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"crosstalk.top/1","overhead":[]})").find("overhead"), std::string::npos);
}

TEST(TopStream, HugeListsAreRefused) {
  std::string line = R"({"schema":"crosstalk.top/1","lines":[{})";
  for (int i = 0; i < 20'000; ++i) {
    line += ",{}";
  }
  EXPECT_NE(refusal(line + "]}").find("at most 20000 rows"), std::string::npos);
}

TEST(TopStream, HostileNamesArePassedOnAsUtf8) {
  Snapshot snapshot = sample_snapshot();
  snapshot.threads[1].name = "bad\xff\x1b[31m\n";
  const std::string line = line_of(snapshot);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = read_snapshot(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->threads[1].name, "bad\xef\xbf\xbd\x1b[31m\n");
}

/// Whatever happens to a line on its way, it is read or refused.
TEST(TopStream, DamagedLinesAreReadOrRefused) {
  const std::string line = line_of(sample_snapshot());
  std::mt19937 random(4711);  // NOLINT(cert-msc51-cpp): the same each time
  const std::string pieces = "{}[],:\"0-.eE+nulltrue\\u\xff 9";
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = line;
    const std::size_t changes = 1 + random() % 4;
    for (std::size_t change = 0; change < changes; ++change) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = pieces[random() % pieces.size()];
          break;
        case 1:
          damaged.erase(at, random() % 40);
          break;
        default:
          damaged.insert(at, 1 + random() % 3, pieces[random() % pieces.size()]);
          break;
      }
    }
    const auto read = read_snapshot(damaged);
    refused += read ? 0 : 1;
    if (!read) {
      EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
      EXPECT_FALSE(read.error().message.empty());
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 3000);
}

TEST(LineCutter, BytesComeInAnyPieces) {
  LineCutter cutter;
  std::vector<std::string> lines;
  for (const char* const piece : {"on", "e\ntw", "", "o\n\nthr", "ee"}) {
    ASSERT_TRUE(cutter.add(piece));
    while (const auto line = cutter.next()) {
      lines.push_back(*line);
    }
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", ""}));
  EXPECT_EQ(cutter.rest(), "three");
}

TEST(LineCutter, ALineWithoutEndIsRefused) {
  LineCutter cutter;
  const std::string megabyte(1 << 20, 'x');
  Result<void> added;
  int megabytes = 0;
  for (; added && megabytes < 20; ++megabytes) {
    added = cutter.add(megabyte);
    EXPECT_FALSE(cutter.next());
  }
  EXPECT_EQ(megabytes, 17);
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("longer than 16 MiB"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::driver::live::live_stream_test
