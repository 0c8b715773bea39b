// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/metrics_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace crosstalk::service {
namespace {

constexpr unsigned int most_connections = 16;
constexpr unsigned int patience_s = 10;  // for a client that does not read

class Server final : public MetricsServer {
 public:
  Result<void> listen(const std::string& address, std::uint16_t port);
  ~Server() override {
    if (daemon_ != nullptr) {
      ::MHD_stop_daemon(daemon_);
    }
  }
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void publish(std::string text) override {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  [[nodiscard]] std::uint16_t port() const override {
    const MHD_DaemonInfo* const info = ::MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
    return info != nullptr ? info->port : 0;
  }

 private:
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* url, const char* method,
                           const char* version, const char* data, std::size_t* size, void** state);
  [[nodiscard]] std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;
  std::string text_ = "# EOF\n";
};

MHD_Result Server::answer(void* self, MHD_Connection* connection, const char* url, const char* method,
                          const char* /*version*/, const char* /*data*/, std::size_t* size, void** /*state*/) {
  const std::string_view verb = method;
  const bool reads = verb == MHD_HTTP_METHOD_GET || verb == MHD_HTTP_METHOD_HEAD;
  const bool found = std::string_view(url) == "/metrics";
  *size = 0;
  const std::string body = !reads  ? "use GET\n"
                           : found ? static_cast<Server*>(self)->text()
                                   : "crosstalkd: the metrics are at /metrics\n";
  MHD_Response* const response = ::MHD_create_response_from_buffer(body.size(), const_cast<char*>(body.data()),
                                                                   MHD_RESPMEM_MUST_COPY);  // NOLINT: it is copied
  ::MHD_add_response_header(
      response, MHD_HTTP_HEADER_CONTENT_TYPE,
      found && reads ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : "text/plain; charset=utf-8");
  const unsigned int status = !reads ? MHD_HTTP_METHOD_NOT_ALLOWED : found ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND;
  const MHD_Result queued = ::MHD_queue_response(connection, status, response);
  ::MHD_destroy_response(response);
  return queued;
}

Result<void> Server::listen(const std::string& address, std::uint16_t port) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  const bool is_four = ::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
  const bool is_six = !is_four && ::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1;
  if (!is_four && !is_six) {
    return fail(ErrorCode::invalid_argument,
                "[metrics] address must be an IP address, like \"127.0.0.1\"; it is '" + address + "'");
  }
  const void* const bound = is_four ? static_cast<const void*>(&four) : &six;
  const unsigned int flags = static_cast<unsigned int>(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL) |
                             (is_six ? unsigned{MHD_USE_IPv6} : 0U);
  daemon_ = ::MHD_start_daemon(flags, port, nullptr, nullptr, answer, this, MHD_OPTION_SOCK_ADDR, bound,
                               MHD_OPTION_CONNECTION_LIMIT, most_connections, MHD_OPTION_CONNECTION_TIMEOUT, patience_s,
                               MHD_OPTION_END);
  return daemon_ != nullptr
             ? Result<void>()
             : fail(ErrorCode::system, "cannot serve metrics at " + address + " port " + std::to_string(port) + ": " +
                                           std::strerror(errno) + "; choose another port in [metrics]");
}

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address, std::uint16_t port) {
  auto server = std::make_unique<Server>();
  if (auto listens = server->listen(address, port); !listens) {
    return tl::unexpected<Error>(listens.error());
  }
  return server;
}

}  // namespace crosstalk::service
