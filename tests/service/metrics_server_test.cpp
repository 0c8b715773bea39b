// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/metrics_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace crosstalk::service::metrics_server_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

UniqueFd connect(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

std::string answer_to(std::uint16_t port, const std::string& request) {
  const UniqueFd socket = connect(port);
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> part{};
  for (ssize_t length = 1; length > 0;) {
    length = ::read(socket.get(), part.data(), part.size());
    answer.append(part.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  return answer;
}

std::string get(std::uint16_t port, const std::string& path, const std::string& method = "GET") {
  return answer_to(port, method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

TEST(MetricsServer, ServesTheLatestText) {
  const auto server = MetricsServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server) << server.error().message;
  const std::uint16_t port = (*server)->port();
  EXPECT_NE(port, 0);
  EXPECT_THAT(get(port, "/metrics"), EndsWith("\r\n\r\n# EOF\n"));
  (*server)->publish("first\n# EOF\n");
  (*server)->publish("second\n# EOF\n");
  const std::string answer = get(port, "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 13\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nsecond\n# EOF\n"));
  EXPECT_THAT(get(port, "/metrics?name[]=x"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(MetricsServer, RefusesAnythingElse) {
  const auto server = MetricsServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  const std::uint16_t port = (*server)->port();
  EXPECT_THAT(get(port, "/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(port, "/metrics/../etc/passwd"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(port, "/metrics", "DELETE"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(answer_to(port, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"),
              StartsWith("HTTP/1.1 405 "));
  const std::string head = get(port, "/metrics", "HEAD");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  (void)answer_to(port, "garbage\r\n\r\n");
  EXPECT_THAT(get(port, "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(MetricsServer, AnswersOthersWhileSomeSayNothing) {
  const auto server = MetricsServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  std::array<UniqueFd, 10> silent;
  for (UniqueFd& socket : silent) {
    socket = connect((*server)->port());
  }
  EXPECT_THAT(get((*server)->port(), "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(MetricsServer, TakesTextsWhileItServes) {
  const auto server = MetricsServer::start("127.0.0.1", 0);
  ASSERT_TRUE(server);
  std::thread publisher([&] {
    for (std::size_t i = 0; i < 2000; ++i) {
      (*server)->publish(std::string(i, 'a') + "\n# EOF\n");
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(get((*server)->port(), "/metrics"), EndsWith("\n# EOF\n"));
  }
  publisher.join();
}

TEST(MetricsServer, TellsWhyItCannotServe) {
  for (const char* const address : {"localhost", "", "256.0.0.1", "127.0.0.1:80"}) {
    const auto server = MetricsServer::start(address, 0);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(server.error().message, HasSubstr("must be an IP address"));
  }
  const auto first = MetricsServer::start("127.0.0.1", 0);
  ASSERT_TRUE(first);
  const auto second = MetricsServer::start("127.0.0.1", (*first)->port());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace crosstalk::service::metrics_server_test
