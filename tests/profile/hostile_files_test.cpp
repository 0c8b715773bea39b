// SPDX-License-Identifier: Apache-2.0
// Files that are no profiles, or were ones: each is refused in one line, and none crashes the reader.
#include <sqlite3.h>

#include <random>

#include "tests/profile/profile_files.h"
#include "tests/repeats.h"

namespace crosstalk::profile::hostile_files_test {
namespace {

void execute(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(db);
}

class HostileFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ProfileWriter writer = test::created(path_);
    ASSERT_TRUE(writer.put(test::a_session()));
    ASSERT_TRUE(writer.put(test::a_process(0)));
    ASSERT_TRUE(writer.put(test::a_thread(0)));
    WatchRow watch;
    watch.id = WatchId{7};
    watch.words.resize(1);
    ASSERT_TRUE(writer.put(watch));
    ASSERT_TRUE(writer.put(TrapRow{WatchId{7}, {}, 0, 0, 0, 0, 0, false, {}, {}, {}, 0, {}}));
    StackRow stack;
    stack.id = StackId{1};
    stack.bytes.assign(3000, 42);
    ASSERT_TRUE(writer.put(stack));
    LookaheadRow lookahead;
    lookahead.branches = {4, 8, 2};
    ASSERT_TRUE(writer.put(lookahead));
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(writer.put(test::a_sample()));
    }
    ASSERT_TRUE(writer.finish());
  }

  /// Opens and reads everything; the first error, if any.
  std::optional<Error> read() {
    const Result<ProfileReader> reader = ProfileReader::open(path_);
    if (!reader) {
      return reader.error();
    }
    const Result<void> samples = reader->for_each_sample([](const SampleRow&) {});
    const Result<void> stacks = reader->for_each_stack([](const StackRow&) {});
    const Result<void> lookaheads = reader->for_each_lookahead([](const LookaheadRow&) {});
    const Result<void> traps = reader->for_each_trapped_watch([](std::size_t, std::span<const TrapRow>) {}, [] {});
    return !traps        ? std::optional<Error>(traps.error())
           : !samples    ? std::optional<Error>(samples.error())
           : !stacks     ? std::optional<Error>(stacks.error())
           : !lookaheads ? std::optional<Error>(lookaheads.error())
                         : std::nullopt;
  }

  void expect_refused(ErrorCode code, const std::string& part) {
    const std::optional<Error> error = read();
    ASSERT_TRUE(error.has_value()) << "expected: " << part;
    EXPECT_EQ(error->code, code) << error->message;
    EXPECT_NE(error->message.find(part), std::string::npos) << error->message;
    EXPECT_NE(error->message.find(path_), std::string::npos) << error->message;
    EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
  }

  test::Directory directory_;
  std::string path_ = directory_ / "p.db";
};

TEST_F(HostileFile, TheUnharmedOneIsRead) { EXPECT_FALSE(read().has_value()); }

TEST_F(HostileFile, Missing) {
  std::filesystem::remove(path_);
  expect_refused(ErrorCode::not_found, "no such file");
}

TEST_F(HostileFile, Empty) {
  test::overwrite(path_, "");
  expect_refused(ErrorCode::corrupt, "empty");
}

TEST_F(HostileFile, Text) {
  test::overwrite(path_, std::string(5000, 'x'));
  expect_refused(ErrorCode::corrupt, "no crosstalk profile");
}

TEST_F(HostileFile, Directory) {
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  expect_refused(ErrorCode::corrupt, "no regular file");
}

TEST_F(HostileFile, OtherDatabase) {
  std::filesystem::remove(path_);
  execute(path_, "CREATE TABLE t(x)");
  expect_refused(ErrorCode::corrupt, "another application");
}

TEST_F(HostileFile, OtherSchema) {
  execute(path_, "PRAGMA user_version = 99");
  expect_refused(ErrorCode::unsupported, "schema version is 99");
}

TEST_F(HostileFile, OtherSchemaInMetaOnly) {
  execute(path_, "UPDATE meta SET value = 99 WHERE key = 'schema_version'");
  expect_refused(ErrorCode::unsupported, "schema version is 99");
}

TEST_F(HostileFile, EventsWithGapsAndDamagedChainsAreCorrupt) {
  execute(path_, "INSERT INTO call_chain VALUES(1, x'80')");
  const Result<ProfileReader> reader = ProfileReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const Result<void> chains = reader->for_each_call_chain([](const CallChainRow&) {});
  ASSERT_FALSE(chains);
  EXPECT_EQ(chains.error().code, ErrorCode::corrupt);
  execute(path_, "INSERT INTO event VALUES(2, 'cycles', 4, 3, NULL, NULL, 0)");
  const std::optional<Error> error = read();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::corrupt) << error->message;
}

TEST_F(HostileFile, IsAProfileOrNoneByItsHeader) {
  EXPECT_TRUE(is_profile(path_));
  execute(path_, "PRAGMA application_id = 7");
  EXPECT_FALSE(is_profile(path_)) << "another application's database";
  EXPECT_FALSE(is_profile(path_ + ".none"));
  test::overwrite(path_, "int main() {}");
  EXPECT_FALSE(is_profile(path_));
}

TEST_F(HostileFile, StatesOfOddLengthAreCorrupt) {
  execute(path_, "UPDATE trap SET state = x'0102'");
  const std::optional<Error> error = read();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::corrupt) << error->message;
}

TEST_F(HostileFile, TruncatedAnywhere) {
  const std::string whole = test::contents(path_);
  for (const double part : {0.0001, 0.01, 0.1, 0.5, 0.9, 0.9999}) {
    test::overwrite(path_, whole.substr(0, static_cast<std::size_t>(static_cast<double>(whole.size()) * part) + 1));
    const std::optional<Error> error = read();
    ASSERT_TRUE(error.has_value()) << part;
    EXPECT_EQ(error->code, ErrorCode::corrupt) << error->message;
  }
}

TEST_F(HostileFile, ValuesOutOfRange) {
  const std::string whole = test::contents(path_);
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE sample SET thread = 1", "thread is 1"},
      {"UPDATE sample SET thread = -1", "thread is -1"},
      {"UPDATE sample SET access = 4", "access is 4"},
      {"UPDATE sample SET origin = 'x', origin = -3", "origin is -3"},
      {"UPDATE sample SET flags = 255", "flags is 255"},
      {"UPDATE sample SET cpu = 65536", "cpu is 65536"},
      {"UPDATE sample SET width = 256", "width is 256"},
      {"UPDATE sample SET stack = 4294967296", "stack is 4294967296"},
      {"UPDATE sample SET registers = x''", "the length of registers is "},
      {"UPDATE sample SET registers = x'020000'", "the length of registers is "},
      {"UPDATE sample SET registers = x'000000'",
       "the length of registers is "},  // the first has nothing to count from
      {"UPDATE sample SET registers = x'010100'", "the length of registers is "},
      {"UPDATE sample SET registers = x'01010080'", "the length of registers is "},
      {"UPDATE sample SET registers = x'01010080808080808080808080808001'", "the length of registers is "},
      {"UPDATE sample SET registers = x'0100000000'", "the length of registers is "},
      {"UPDATE lookahead SET thread = 7", "thread is 7"},
      {"UPDATE lookahead SET end = 0", "end is 0"},
      {"UPDATE lookahead SET end = 6", "end is 6"},
      {"UPDATE lookahead SET instructions = 65537", "instructions is 65537"},
      {"UPDATE lookahead SET passages = -1", "passages is -1"},
      {"UPDATE lookahead SET cost_ns = 4294967296", "cost_ns is 4294967296"},
      {"UPDATE lookahead SET branches = x''", "the length of branches is 0"},
      {"UPDATE lookahead SET branches = x'0402'", "the length of branches is 2"},
      {"DROP TABLE lookahead", "no such table"},
      {"UPDATE thread SET process = 5", "process is 5"},
      {"UPDATE thread SET id = 1", "in table thread, id is 1"},
      {"CREATE TABLE t AS SELECT * FROM thread; UPDATE t SET id = 1; INSERT INTO thread SELECT * FROM t;"
       "UPDATE t SET id = 2; INSERT INTO thread SELECT * FROM t; DELETE FROM thread WHERE id = 0",
       "without gaps"},
      {"UPDATE thread SET clock = 3", "clock is 3"},
      {"UPDATE process SET modules_of = 9", "modules_of is 9"},
      {"UPDATE process SET observation = 5", "observation is 5"},
      {"UPDATE watch_word SET probability = 1.5", "probability is"},
      {"UPDATE watch SET close = 9, close_time = 0", "close is 9"},
      {"UPDATE watch_word SET length = 3", "length is 3"},
      {"UPDATE watch_word SET offset = 60, length = 8", "word is 0"},
      {"UPDATE watch_word SET watch = 8", "word is 0"},
      {"UPDATE trap SET registers = x'00'", "registers"},
      {"UPDATE trap SET word = 4", "word is 4"},
      {"INSERT INTO sample_measurement VALUES(1, 5, 1, 1, NULL, NULL, NULL, NULL)", "source is 5"},
      {"INSERT INTO sample_measurement VALUES(1, 1, 5, 1, NULL, NULL, NULL, NULL)", "unit is 5"},
      {"INSERT INTO sample_measurement VALUES(1, 1, 1, 1, -1, NULL, NULL, NULL)", "latency_cycles is -1"},
      {"INSERT INTO sample_measurement VALUES(99999, 1, 1, 1, NULL, NULL, NULL, NULL);"
       "INSERT INTO watch_measurement VALUES(7, 1, 5, 1, NULL, NULL)",
       "unit is 5"},
      {"DROP TABLE sample_measurement", "no such table"},
      {"INSERT INTO region VALUES(2, NULL, 'gap')", "without gaps"},
      {"INSERT INTO region VALUES(1, 1, 'in itself')", "parent is 1"},
      {"INSERT INTO region VALUES(1, -1, 'below')", "parent is -1"},
      {"INSERT INTO thread_region VALUES(0, 1, 1, 1, 0, 0, 0)", "region is 1"},
      {"INSERT INTO region VALUES(1, NULL, 'a'); INSERT INTO thread_region VALUES(0, 0, 1, 1, 0, 0, 0)", "region is 0"},
      {"UPDATE sample SET region = 7", "region is 7"},
      {"UPDATE stack SET bytes = x'0011'", "size is 3000"},
      {"UPDATE stack SET size = 99999999", "size is 99999999"},
      {"UPDATE meta SET value = 63 WHERE key = 'line_bytes'", "out of its range"},
      {"DELETE FROM meta WHERE key = 'schema_version'", "schema_version"},
      {"DROP TABLE trap", "no such table"},
      {"DROP TABLE sample; CREATE VIEW sample AS SELECT * FROM watch", "sample"},
      {"ALTER TABLE block DROP COLUMN kind", "no such column"},
  };
  for (const auto& [sql, part] : cases) {
    test::overwrite(path_, whole);
    execute(path_, sql);
    SCOPED_TRACE(sql);
    expect_refused(ErrorCode::corrupt, part);
  }
}

TEST_F(HostileFile, FlippedBytesNeverCrash) {
  const std::string whole = test::contents(path_);
  std::mt19937 random(7);  // NOLINT: the same file each time
  for (std::size_t round = 0; round < repeats(300); ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 8; ++i) {
      bytes[random() % (round % 2 == 0 ? 600 : bytes.size())] = static_cast<char>(random());
    }
    test::overwrite(path_, bytes);
    (void)read();
  }
}

}  // namespace
}  // namespace crosstalk::profile::hostile_files_test
