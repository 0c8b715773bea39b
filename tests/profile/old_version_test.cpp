// SPDX-License-Identifier: Apache-2.0
// A profile that an older crosstalk has written is read as it was meant. version_5.sql is `sqlite3 .dump` of one.
#include <sqlite3.h>

#include "profile/schema.h"
#include "tests/profile/profile_files.h"

namespace crosstalk::profile::old_version_test {
namespace {

using test::a_sample;
using test::a_session;

class OldVersion : public ::testing::Test {
 protected:
  void SetUp() override {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    // A dump does not say these.
    const std::string sql = test::contents(VERSION_5) + "PRAGMA user_version = 5; PRAGMA application_id = " +
                            std::to_string(schema::application_id);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  ProfileReader read() {
    Result<ProfileReader> reader = ProfileReader::open(path_);
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      std::abort();
    }
    return std::move(*reader);
  }
  test::Directory directory_;
  std::string path_ = directory_ / "old.db";
};

TEST_F(OldVersion, SamplesAreAClocks) {
  std::vector<SampleRow> samples;
  ASSERT_TRUE(read().for_each_sample([&](const SampleRow& row) { samples.push_back(row); }));
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].weight().value, 3'000'000U);
  EXPECT_FALSE(samples[0].registers);
  const SampleRow want = a_sample();
  const SampleRow& got = samples[1];
  EXPECT_EQ(got.time_ns, want.time_ns);
  EXPECT_EQ(got.access_ip, want.access_ip);
  EXPECT_EQ(got.address, want.address);
  EXPECT_EQ(got.watch, want.watch);
  EXPECT_EQ(got.from, want.from);
  EXPECT_EQ(got.measurement, Measurement{});
  EXPECT_EQ(got.weight().value, want.cpu_ns);
  EXPECT_EQ(got.weight().unit, WeightUnit::ns);
  ASSERT_TRUE(got.registers);
  EXPECT_EQ(got.registers->value[2], 0x2007U);
}

TEST_F(OldVersion, WatchesAndTraps) {
  const ProfileReader reader = read();
  ASSERT_EQ(reader.watches().size(), 1U);
  const WatchRow& watch = reader.watches()[0];
  EXPECT_EQ(watch.id, WatchId{7});
  EXPECT_EQ(watch.line, 0x7f0000001200U);
  EXPECT_EQ(watch.threads, 3U);
  EXPECT_EQ(watch.armed, 2U);
  EXPECT_TRUE(watch.suspected);
  EXPECT_EQ(watch.horizon_ns, 20'000'000U);
  EXPECT_EQ(watch.sample_weight().value, 4'000'000U);
  EXPECT_EQ(watch.close, CloseReason::full);
  EXPECT_EQ(watch.close_ns, watch.time_ns + 90'000);
  ASSERT_TRUE(watch.state);
  EXPECT_EQ(watch.state->word[7], 8);
  ASSERT_EQ(watch.words.size(), 2U);
  EXPECT_FLOAT_EQ(watch.words[1].probability, 0.25F);
  const std::vector<TrapRow> traps = test::traps_of(reader);
  ASSERT_EQ(traps.size(), 2U);
  EXPECT_EQ(traps[0].line, 0x7e0000001200U);
  ASSERT_TRUE(traps[0].frame);
  EXPECT_EQ(traps[0].frame->at(5), 25U);
  EXPECT_EQ(traps[1].registers.value[3], 0x300U);
  EXPECT_TRUE(traps[1].write_only);
}

TEST_F(OldVersion, TheRest) {
  const ProfileReader reader = read();
  EXPECT_EQ(reader.session().command, a_session().command);
  EXPECT_EQ(reader.session().config.partner, Partner::next_store) << "called the method then";
  EXPECT_EQ(reader.session().config.method, Method::none) << "no watchpoints were allowed";
  EXPECT_EQ(reader.processes().size(), 2U);
  EXPECT_EQ(reader.threads().size(), 2U);
  ASSERT_EQ(reader.modules().size(), 1U);
  EXPECT_EQ(reader.modules()[0].build_id, "ab01");
  ASSERT_EQ(reader.blocks().size(), 1U);
  EXPECT_EQ(reader.blocks()[0].site, 0x555555554100U);
  ASSERT_EQ(reader.shared_mappings().size(), 1U);
  EXPECT_EQ(reader.shared_mappings()[0].name, "/dev/shm/table");
  ASSERT_EQ(reader.messages().size(), 1U);
  EXPECT_EQ(reader.messages()[0].count, 2U);
  int lookaheads = 0;
  ASSERT_TRUE(reader.for_each_lookahead([&](const LookaheadRow& row) { lookaheads += row.passages == 3 ? 1 : 100; }));
  EXPECT_EQ(lookaheads, 1);
  int stacks = 0;
  ASSERT_TRUE(reader.for_each_stack([&](const StackRow& row) { stacks += row.bytes.size() == 256 ? 1 : 100; }));
  EXPECT_EQ(stacks, 1);
}

}  // namespace
}  // namespace crosstalk::profile::old_version_test
