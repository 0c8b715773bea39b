// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/service/journal.h"
#include "daemon/service/messages.h"
#include "tests/service/temporary_folder.h"

namespace crosstalk::service::status_test {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t second = 1'000'000'000;

std::list<Session> sessions_of(const std::vector<uid_t>& users) {
  std::list<Session> sessions;
  for (const uid_t user : users) {
    auto worker = Worker::start({"/bin/true", {}, {}, false});
    EXPECT_TRUE(worker);
    sessions.push_back({sessions.size() + 1,
                        RequestKind::record,
                        user,
                        {{7, 8}, 0.02, {}, false},
                        "/p",
                        std::move(*worker),
                        10 * second,
                        true});
  }
  return sessions;
}

std::vector<WatchedService> services_of(std::size_t count, const TemporaryFolder& folder, bool access) {
  std::vector<WatchedService> services;
  for (std::size_t i = 0; i < count; ++i) {
    ServiceSettings settings{"service" + std::to_string(i), {MatchBy::unit, "a"}};
    settings.access = access;
    services.emplace_back(settings, ServiceMeans{"/bin/true", folder.path("")});
  }
  return services;
}

TEST(Status, ShowsEachPeerWhatTheyMaySee) {
  const TemporaryFolder folder;
  const auto sessions = sessions_of({1000, 1001});
  auto services = services_of(1, folder, true);
  ServiceSettings closed{"closed", {MatchBy::unit, "a"}};
  services.emplace_back(closed, ServiceMeans{"/bin/true", folder.path("")});
  const auto seen = [&](const Peer& peer) { return Json::parse(status_for(peer, sessions, services, 12 * second)); };
  EXPECT_EQ(seen({0, false})["sessions"].size(), 2U);
  EXPECT_EQ(seen({0, false})["services"].size(), 2U);
  const Json users = seen({1001, false});
  ASSERT_EQ(users["sessions"].size(), 1U);
  EXPECT_EQ(users["sessions"][0],
            Json::parse(R"({"id":2,"kind":"record","user":1001,"pids":[7,8],"budget":0.02,"for_s":2.0})"));
  EXPECT_TRUE(users["services"].empty());
  const Json members = seen({1002, true});
  EXPECT_TRUE(members["sessions"].empty());
  ASSERT_EQ(members["services"].size(), 1U);
  EXPECT_EQ(members["services"][0]["name"], "service0");
  EXPECT_EQ(members["services"][0]["recording"], false);
  EXPECT_FALSE(members.contains("left_out"));
}

TEST(Status, FitsAMessage) {
  const TemporaryFolder folder;
  const auto services = services_of(2000, folder, true);
  const std::string status = status_for({0, false}, {}, services, 0);
  const std::string message = to_message(Reply{Reply::Kind::status, 0, 0, 0, {}, status});
  EXPECT_LE(message.size(), most_message_bytes);
  EXPECT_GT(message.size(), most_message_bytes / 2);
  EXPECT_TRUE(Json::parse(status)["left_out"]);
}

TEST(ListOfProfiles, FitsAMessageWithTheNewest) {
  std::vector<StoredProfile> profiles;
  for (int i = 10'000; i < 20'000; ++i) {
    const std::string name = "web.db.202611260411" + std::to_string(i);
    profiles.push_back({"web", name, "/" + name, 123'456, 1'800'000'000, i == 19'999});
  }
  const std::string text = list_of(profiles);
  EXPECT_LE(to_message(Reply{Reply::Kind::profiles, 0, 0, 0, {}, text}).size(), most_message_bytes);
  const Json list = Json::parse(text);
  EXPECT_TRUE(list["left_out_older"]);
  EXPECT_EQ(list["profiles"].back()["name"], "web.db.20261126041119998");  // the last one is not finished
  EXPECT_EQ(Json::parse(list_of({}))["profiles"].size(), 0U);
}

TEST(Log, HasNoControlCharacters) {
  EXPECT_EQ(printable("a\nb\r\x1b[31mc\x7f\t"), "a?b??[31mc??");
  EXPECT_EQ(printable("\xc3\xa4 \xe2\x82\xac"), "\xc3\xa4 \xe2\x82\xac");
  EXPECT_EQ(printable("x\xc2\x9b"
                      "31m"),
            "x?31m");  // CSI, in one character
  EXPECT_EQ(printable("x\xc2"), "x\xc2");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");
}

}  // namespace
}  // namespace crosstalk::service::status_test
