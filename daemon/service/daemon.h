// SPDX-License-Identifier: Apache-2.0
// The daemon: answers clients, keeps services watched, and looks after the profiles. One thread, which waits in poll();
// the metrics are served by a thread of their own.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/service/clients.h"
#include "daemon/service/configuration.h"
#include "daemon/service/interval_reader.h"
#include "daemon/service/metrics.h"
#include "daemon/service/metrics_server.h"
#include "daemon/service/processes.h"
#include "daemon/service/profile_store.h"
#include "daemon/service/sessions.h"
#include "daemon/service/watched_service.h"

namespace crosstalk::service {

struct DaemonOptions {
  std::string configuration;  // path; empty: defaults, no service
  std::string program;        // path of `crosstalk`
  UniqueFd listener;          // a listening SOCK_SEQPACKET socket
};

class Daemon {
 public:
  /// Fails if the state directory cannot be written, if another daemon has it, or if the metrics cannot be served.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(Configuration configuration, DaemonOptions options);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  /// Works until SIGTERM or SIGINT. SIGHUP reads the configuration again. Recordings end, and their profiles are
  /// whole, when it returns.
  void run();

 private:
  Daemon(Configuration configuration, DaemonOptions options, UniqueFd signals, UniqueFd state);
  void make_services();
  void find_group();
  void wait(std::uint64_t now_ns, std::uint64_t due_ns);
  void take_signals(std::uint64_t now_ns);
  void reload(std::uint64_t now_ns);
  void replace_configuration(Configuration&& configuration, std::uint64_t now_ns);
  void serve_clients(std::uint64_t now_ns);
  void answer(Client& client, const Received& received, std::uint64_t now_ns);
  [[nodiscard]] Result<void> carry_out(Client& client, const Request& request, std::uint64_t now_ns);
  [[nodiscard]] Result<void> begin_session(Client& client, const Request& request, std::uint64_t now_ns);
  [[nodiscard]] Result<void> send_profile(Client& client, const Request& request) const;
  void refuse(Client& client, const Error& error);
  void tend_sessions(std::uint64_t now_ns);
  void tend_services(std::uint64_t now_ns);
  void tend(WatchedService& service, std::uint64_t now_ns);
  void take_readings(std::uint64_t now_ns);
  static void take_in_log_of(const StoredProfile& profile);
  void read_finished(const std::vector<StoredProfile>& profiles, std::int64_t now_s);
  void look_after_profiles(std::uint64_t now_ns);
  void publish();
  [[nodiscard]] bool stopped() const;

  Configuration configuration_;
  DaemonOptions options_;
  UniqueFd signals_, state_;    // state_: the lock of the state directory
  std::optional<gid_t> group_;  // of the configuration
  std::size_t most_connections_ = 0;
  Clients clients_;
  Sessions sessions_;
  ProfileStore store_;
  ProcessList processes_;
  std::vector<WatchedService> services_;
  std::list<WatchedService> leaving_;  // of an earlier configuration; they end
  IntervalReader reader_;
  Metrics metrics_;
  std::unique_ptr<MetricsServer> server_;  // null: none
  DaemonFigures figures_;
  std::uint64_t look_due_ns_ = 0, housekeeping_due_ns_ = 0;
  bool stopping_ = false;
};

}  // namespace crosstalk::service
