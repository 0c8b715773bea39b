// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "daemon/service/messages.h"
#include "tests/service/temporary_folder.h"

namespace crosstalk::service::channel_test {
namespace {

using ::testing::HasSubstr;

/// Two ends of a connection; those of the first do not block.
struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    daemon = Channel(UniqueFd(ends[0]));
    client = Channel(UniqueFd(ends[1]));
  }
  Channel daemon{UniqueFd()}, client{UniqueFd()};
};

ino_t inode(int fd) {
  struct stat of {};
  return ::fstat(fd, &of) == 0 ? of.st_ino : 0;
}

TEST(Channel, KeepsTheBordersOfMessages) {
  const Pair pair;
  EXPECT_FALSE(pair.daemon.receive());
  ASSERT_TRUE(pair.client.send("one"));
  ASSERT_TRUE(pair.client.send("two"));
  EXPECT_EQ(pair.daemon.receive()->message, "one");
  EXPECT_EQ(pair.daemon.receive()->message, "two");
  EXPECT_FALSE(pair.daemon.receive());
}

TEST(Channel, PassesDescriptors) {
  const Pair pair;
  const TemporaryFolder folder;
  const UniqueFd file(::open(folder.path("f").c_str(), O_RDWR | O_CREAT, 0600));
  const UniqueFd null(::open("/dev/null", O_RDONLY));
  ASSERT_TRUE(pair.daemon.send("m", {file.get(), null.get()}));
  const auto received = pair.client.receive();
  ASSERT_EQ(received->descriptors.size(), 2U);
  EXPECT_EQ(inode(received->descriptors[0].get()), inode(file.get()));
  EXPECT_EQ(inode(received->descriptors[1].get()), inode(null.get()));
  EXPECT_NE(::fcntl(received->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Channel, ClosesMoreDescriptorsThanAMessageHas) {
  const Pair pair;
  const UniqueFd null(::open("/dev/null", O_RDONLY));
  // Not by send(), which sends no more than four.
  std::array<char, 1> byte{'m'};
  iovec part{byte.data(), 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(50 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(50 * sizeof(int));
  const int sent = null.get();
  for (int i = 0; i < 50; ++i) {
    std::memcpy(CMSG_DATA(rights) + static_cast<std::size_t>(i) * sizeof(int), &sent, sizeof(int));
  }
  const int before = ::dup(0);
  ::close(before);
  ASSERT_EQ(::sendmsg(pair.client.fd(), &header, 0), 1);
  EXPECT_EQ(pair.daemon.receive()->message, "m");  // its descriptors go with it
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(before, after);
}

TEST(Channel, AClosedEndIsAnEmptyMessage) {
  Pair pair;
  ASSERT_TRUE(pair.client.send("last"));
  pair.client = Channel(UniqueFd());
  EXPECT_EQ(pair.daemon.receive()->message, "last");
  EXPECT_EQ(pair.daemon.receive()->message, "");
  EXPECT_FALSE(pair.daemon.send("x"));  // and no signal
}

TEST(Channel, AnEndThatClosedWithUnreadMessagesIsAnEmptyMessage) {
  Pair pair;
  ASSERT_TRUE(pair.daemon.send("unread"));
  pair.client = Channel(UniqueFd());
  EXPECT_EQ(pair.daemon.receive()->message, "");  // ECONNRESET
}

TEST(Channel, AMessageOfTheGreatestLengthPassesALongerOneEndsTheConnection) {
  const Pair pair;
  const std::string longest(most_message_bytes, 'a');
  ASSERT_TRUE(pair.client.send(longest));
  EXPECT_EQ(pair.daemon.receive()->message, longest);
  ASSERT_TRUE(pair.client.send(longest + "b"));
  EXPECT_EQ(pair.daemon.receive()->message, "");
}

TEST(Channel, SendingDoesNotWaitForAReader) {
  const Pair pair;
  int sent = 0;
  while (sent < 100'000 && pair.daemon.send(std::string(1000, 'a'))) {
    ++sent;
  }
  EXPECT_GT(sent, 10);
  EXPECT_LT(sent, 100'000);
  EXPECT_GT(pair.daemon.unread(), 1000U * 10);
  while (sent-- > 0) {
    EXPECT_EQ(pair.client.receive()->message.size(), 1000U);
  }
  EXPECT_EQ(pair.daemon.unread(), 0U);
}

TEST(Channel, KnowsWhoIsConnected) {
  const Pair pair;
  const auto credentials = pair.daemon.credentials();
  ASSERT_TRUE(credentials);
  EXPECT_EQ(credentials->pid, ::getpid());
  EXPECT_EQ(credentials->user, ::geteuid());
  EXPECT_THAT(credentials->groups, ::testing::Contains(::getegid()));
}

TEST(Channel, KnowsAllGroupsOfAPeer) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can choose groups";
  }
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const auto listener = listen_at(path);
  ASSERT_TRUE(listener);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<gid_t, 100> groups{};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      groups[i] = 5000 + static_cast<gid_t>(i);
    }
    const bool ready = ::setgroups(groups.size(), groups.data()) == 0 && ::setgid(4000) == 0;
    const auto channel = Channel::connect(path);
    ::_exit(ready && channel && channel->receive() ? 0 : 1);
  }
  UniqueFd socket;
  while (!socket.valid()) {
    socket = std::move(*accept_from(listener->get()));
  }
  const Channel channel(std::move(socket));
  const auto credentials = channel.credentials();
  ASSERT_TRUE(credentials);
  EXPECT_EQ(credentials->pid, child);
  EXPECT_EQ(credentials->groups.size(), 101U);
  EXPECT_THAT(credentials->groups, ::testing::IsSupersetOf({4000U, 5000U, 5099U}));
  EXPECT_TRUE(channel.send("bye"));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ListenAt, LetsEveryoneConnect) {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const auto listener = listen_at(path);
  ASSERT_TRUE(listener) << listener.error().message;
  struct stat of {};
  ASSERT_EQ(::stat(path.c_str(), &of), 0);
  EXPECT_EQ(of.st_mode & 0777U, 0666U);
  const auto nobody = accept_from(listener->get());
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(nobody->valid());
  const auto client = Channel::connect(path);
  ASSERT_TRUE(client) << client.error().message;
  const auto accepted = accept_from(listener->get());
  ASSERT_TRUE(accepted && accepted->valid());
  EXPECT_NE(::fcntl(accepted->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(accepted->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(ListenAt, RefusesASocketThatSomebodyListensAt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const auto first = listen_at(path);
  ASSERT_TRUE(first);
  const auto second = listen_at(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::refused);
  EXPECT_THAT(second.error().message, HasSubstr("another crosstalkd listens at " + path));
  EXPECT_TRUE(Channel::connect(path));
}

TEST(ListenAt, ReplacesASocketThatNobodyListensAt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  { const auto gone = listen_at(path); }
  EXPECT_EQ(Channel::connect(path).error().code, ErrorCode::not_found);
  const auto listener = listen_at(path);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(Channel::connect(path));
}

TEST(ListenAt, LeavesAnythingElseAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("file")) << "content";
  const auto listener = listen_at(folder.path("file"));
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::system);
  EXPECT_THAT(listener.error().message, HasSubstr("choose another path with --socket"));
  EXPECT_EQ(folder.content("file"), "content");
  EXPECT_FALSE(listen_at(folder.path("none/s")));
  EXPECT_EQ(listen_at("").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(listen_at(folder.path(std::string(108, 'a'))).error().code, ErrorCode::invalid_argument);
}

TEST(Connect, TellsThatNobodyAnswers) {
  const TemporaryFolder folder;
  const auto channel = Channel::connect(folder.path("none"));
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, ErrorCode::not_found);
  EXPECT_THAT(channel.error().message, HasSubstr("systemctl start crosstalkd"));
}

TEST(AcceptFrom, TellsThatThereIsNoDescriptor) {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const auto listener = listen_at(path);
  const auto client = Channel::connect(path);
  ASSERT_TRUE(listener && client);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none{3, limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const auto accepted = accept_from(listener->get());
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code, ErrorCode::system);
  EXPECT_TRUE(accept_from(listener->get())->valid());  // it has waited
}

}  // namespace
}  // namespace crosstalk::service::channel_test
