// SPDX-License-Identifier: Apache-2.0
// Names of the profiles of a recording that begins a new one from time to time.
#include "profile/switched_files.h"

#include "tests/profile/profile_files.h"

namespace crosstalk::profile::switched_files_test {
namespace {

TEST(SwitchedFiles, HaveTheMomentInUtcBehindTheName) {
  EXPECT_EQ(switched_name("a/p.db", 1'795'666'291'123), "a/p.db.20261126041131123");
  EXPECT_EQ(switched_name("p", 7), "p.19700101000000007");
  EXPECT_LT(switched_name("p", 1'795'666'291'999), switched_name("p", 1'795'666'292'000));
}

TEST(SwitchedFiles, AreFoundByTheName) {
  const test::Directory directory;
  for (const char* const name :
       {"p.db.20261126041131124", "p.db.20261126041131123", "p.db.20261126041131123-wal", "p.db.2026112604113112x",
        "p.db.2026112604113112", "q.db.20261126041131123", "p.db.old"}) {
    test::overwrite(directory / name, "");
  }
  const std::string name = directory / "p.db";
  EXPECT_EQ(switched_files(name), (std::vector<std::string>{name + ".20261126041131123", name + ".20261126041131124"}));
  EXPECT_TRUE(switched_files(directory / "none").empty());
  EXPECT_TRUE(switched_files(directory / "no/such/folder/p.db").empty());
}

TEST(SwitchedFiles, HaveALogFromTheBeginUntilTheyAreFinished) {
  const test::Directory directory;
  const std::string name = directory / "p.db";
  ProfileWriter writer = test::created(name);
  EXPECT_TRUE(directory.names().contains("p.db-wal")) << "before the first row";
  EXPECT_TRUE(is_profile(name));
  ASSERT_TRUE(writer.put(test::a_session()));
  ASSERT_TRUE(writer.commit());
  EXPECT_TRUE(directory.names().contains("p.db-wal"));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(directory.names(), std::set<std::string>{"p.db"});
}

TEST(SwitchedFiles, AreNamedWhereTheirCommonNameIsNoFile) {
  const test::Directory directory;
  const std::string name = directory / "p.db";
  const auto error = [&] { return ProfileReader::open(name).error().message; };
  EXPECT_NE(error().find("record one with"), std::string::npos) << error();
  test::overwrite(name + ".20261126041131123", "");
  EXPECT_NE(error().find("'" + name + ".20261126041131123'; name one of them"), std::string::npos) << error();
  test::overwrite(name + ".20261126041131124", "");
  EXPECT_NE(error().find(".20261126041131124' and 1 before it"), std::string::npos) << error();
}

}  // namespace
}  // namespace crosstalk::profile::switched_files_test
