// SPDX-License-Identifier: Apache-2.0
// Many connections, and clients that do not behave. Peers are this user, who may be root.
#include "daemon/service/clients.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/service/journal.h"
#include "daemon/service/messages.h"
#include "tests/service/temporary_folder.h"

namespace crosstalk::service::clients_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

class ClientsTest : public ::testing::Test {
 protected:
  ClientsTest() : path_(folder_.path("s")), clients_(std::move(*listen_at(path_))) {}

  void connect(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto channel = Channel::connect(path_);
      ASSERT_TRUE(channel) << channel.error().message;
      theirs_.push_back(std::move(*channel));
    }
  }
  std::uint32_t accept(std::size_t most) { return clients_.accept(most, std::nullopt, now_); }
  /// Answers each message with itself; returns how many there were.
  int serve() {
    int answered = 0;
    clients_.serve(
        [&](Client& client, const Received& received) {
          ++answered;
          client.gone = client.gone || !client.channel.send(received.message);
        },
        now_);
    return answered;
  }
  [[nodiscard]] std::size_t gone() {
    const auto& all = clients_.all();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const Client& each) { return each.gone; }));
  }

  TemporaryFolder folder_;
  std::string path_;
  Clients clients_;
  std::vector<Channel> theirs_;
  std::uint64_t now_ = 100 * second;
};

TEST_F(ClientsTest, AreAcceptedSomeAtATurn) {
  connect(40);
  EXPECT_EQ(accept(100), 0U);
  EXPECT_LT(clients_.all().size(), 40U);
  EXPECT_EQ(accept(100), 0U);
  EXPECT_EQ(clients_.all().size(), 40U);
  EXPECT_EQ(clients_.all().front().peer.user, ::geteuid());
  EXPECT_FALSE(clients_.all().front().peer.in_group);
}

TEST_F(ClientsTest, OfOneUserAreLimited) {
  const std::size_t room = ::geteuid() == 0 ? 10 + 16 : 5;
  connect(30);
  EXPECT_EQ(accept(10), 30 - room);
  EXPECT_EQ(clients_.all().size(), room);
  const auto reply = parse_reply(theirs_.back().receive()->message);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->kind, Reply::Kind::refused);
  EXPECT_EQ(theirs_.back().receive()->message, "");  // closed
}

TEST_F(ClientsTest, OfOtherUsersLeaveRoomForRoot) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can be several users";
  }
  const std::string path = path_;
  ::chmod(folder_.path("").c_str(), 0755);
  const auto connect_as = [&](uid_t user) {
    int status = 0;
    const pid_t child = ::fork();
    if (child == 0) {
      bool ready = ::setuid(user) == 0;
      std::vector<Channel> channels;
      for (int i = 0; i < 8; ++i) {
        auto channel = Channel::connect(path);
        ready = ready && channel;
        if (channel) {
          channels.push_back(std::move(*channel));
        }
      }
      ::_exit(ready ? 0 : 1);
    }
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return accept(10);
  };
  EXPECT_EQ(connect_as(1000), 3U);  // half of 10 each
  EXPECT_EQ(connect_as(1001), 3U);
  EXPECT_EQ(connect_as(1002), 8U);
  connect(1);
  EXPECT_EQ(accept(10), 0U);
  EXPECT_EQ(clients_.all().size(), 11U);
}

TEST_F(ClientsTest, AreServedInTurn) {
  connect(2);
  (void)accept(10);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(theirs_[0].send("spam"));
  }
  ASSERT_TRUE(theirs_[1].send("hello"));
  const int first = serve();
  EXPECT_LT(first, 20);
  EXPECT_EQ(theirs_[1].receive()->message, "hello");
}

TEST_F(ClientsTest, ThatVanishAreGone) {
  connect(3);
  (void)accept(10);
  theirs_.erase(theirs_.begin() + 1);
  (void)serve();
  EXPECT_EQ(gone(), 1U);
  clients_.remove_gone();
  EXPECT_EQ(clients_.all().size(), 2U);
}

TEST_F(ClientsTest, ThatAskForNothingAreGoneAfterAWhile) {
  connect(2);
  (void)accept(10);
  clients_.all().front().session = 7;  // its session may take long
  now_ += 10 * second;
  (void)serve();
  EXPECT_EQ(gone(), 0U);
  now_ += 1;
  (void)serve();
  EXPECT_EQ(gone(), 1U);
  EXPECT_FALSE(clients_.all().front().gone);
}

TEST_F(ClientsTest, ThatAskWithoutReadingAreGone) {
  connect(1);
  (void)accept(10);
  int asked = 0;
  for (; asked < 10'000 && gone() == 0; ++asked) {
    ASSERT_TRUE(theirs_[0].send(std::string(100, 'a')));
    (void)serve();
  }
  EXPECT_GT(asked, 10);
  EXPECT_EQ(gone(), 1U);
}

TEST_F(ClientsTest, WhoseMessageIsTooLongAreGone) {
  connect(1);
  (void)accept(10);
  ASSERT_TRUE(theirs_[0].send(std::string(most_message_bytes + 1, 'a')));
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(gone(), 1U);
}

TEST_F(ClientsTest, WaitWithoutDescriptorsAndTheDaemonDoesNotSpin) {
  connect(1);
  log_line(Level::warning, "a first line");  // a sanitizer needs descriptors the first time
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none{3, limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_EQ(accept(10), 0U);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(clients_.empty());
  std::vector<pollfd> polled;
  clients_.add_fds(polled, now_);
  EXPECT_TRUE(polled.empty());  // a listener with a connection would be readable at once
  (void)accept(10);
  EXPECT_TRUE(clients_.empty());
  now_ += second;
  clients_.add_fds(polled, now_);
  EXPECT_EQ(polled.size(), 1U);
  (void)accept(10);
  EXPECT_EQ(clients_.all().size(), 1U);
}

TEST_F(ClientsTest, OfTheGroupAreMarked) {
  connect(1);
  EXPECT_EQ(clients_.accept(10, ::getegid(), now_), 0U);
  EXPECT_TRUE(clients_.all().front().peer.in_group);
}

TEST(GroupId, IsOfTheGroupDatabase) {
  EXPECT_EQ(group_id("root"), 0U);
  EXPECT_EQ(group_id("no such group, surely"), std::nullopt);
  EXPECT_EQ(group_id(""), std::nullopt);
}

}  // namespace
}  // namespace crosstalk::service::clients_test
