// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "base/clock.h"
#include "daemon/service/journal.h"
#include "daemon/service/messages.h"
#include "daemon/service/profile_store.h"
#include "daemon/service/service_manager.h"
#include "daemon/service/status.h"
#include "profile/left_log.h"

namespace crosstalk::service {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t look_period_ns = 5 * second;
constexpr std::uint64_t housekeeping_period_ns = 10 * second;

Result<UniqueFd> watch_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&watched, signal);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  UniqueFd fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  return fd.valid() ? Result<UniqueFd>(std::move(fd))
                    : fail(ErrorCode::system, std::string("cannot wait for signals: ") + std::strerror(errno));
}

/// Sessions need some descriptors each, and so do answers that clients have not received yet. Returns how many
/// connections leave enough for all else: the metrics' server spins without any.
std::size_t raise_descriptor_limit() {
  constexpr rlim_t for_all_else = 128;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return (std::max(limit.rlim_cur, 2 * for_all_else) - for_all_else) / 4;
}

/// True if services need members of the group.
bool uses_group(const Configuration& configuration) {
  return std::any_of(configuration.services.begin(), configuration.services.end(),
                     [](const ServiceSettings& service) { return service.access; });
}

}  // namespace

Daemon::Daemon(Configuration configuration, DaemonOptions options, UniqueFd signals, UniqueFd state)
    : configuration_(std::move(configuration)),
      options_(std::move(options)),
      signals_(std::move(signals)),
      state_(std::move(state)),
      clients_(std::move(options_.listener)),
      sessions_({options_.program, configuration_.state}),
      store_(configuration_.state),
      reader_(options_.program),
      metrics_(configuration_.metrics_rows) {}

Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(Configuration configuration, DaemonOptions options) {
  const std::size_t most_connections = raise_descriptor_limit();
  auto state = take_state(configuration.state);
  auto signals = state ? watch_signals() : tl::unexpected<Error>(state.error());
  if (!signals) {
    return tl::unexpected<Error>(signals.error());
  }
  clear_sessions(configuration.state);
  std::unique_ptr<Daemon> daemon(
      new Daemon(std::move(configuration), std::move(options), std::move(*signals), std::move(*state)));
  daemon->most_connections_ = most_connections;
  const Configuration& settings = daemon->configuration_;
  if (!settings.metrics_address.empty()) {
    auto server = MetricsServer::start(settings.metrics_address, settings.metrics_port);
    if (!server) {
      return tl::unexpected<Error>(server.error());
    }
    daemon->server_ = std::move(*server);
    log_line(Level::notice, "metrics are at http://" + settings.metrics_address + ":" +
                                std::to_string(daemon->server_->port()) + "/metrics");
  }
  daemon->find_group();
  daemon->make_services();
  return daemon;
}

// Looked up at the start and with the configuration: a lookup may wait for a directory service.
void Daemon::find_group() {
  group_ = group_id(configuration_.group);
  if (!group_ && uses_group(configuration_)) {
    log_line(Level::warning, "there is no group '" + configuration_.group +
                                 "', so only root may record services of other users; add it, and reload");
  }
}

/// Adds those of the configuration that are not there.
void Daemon::make_services() {
  for (const ServiceSettings& settings : configuration_.services) {
    const bool there = std::any_of(services_.begin(), services_.end(),
                                   [&](const WatchedService& service) { return service.settings() == settings; });
    if (settings.watch && !there) {
      services_.emplace_back(settings, ServiceMeans{options_.program, configuration_.state});
    }
  }
}

void Daemon::run() {
  ServiceManager manager;
  manager.ready();
  while (!stopped()) {
    wait(monotonic_ns(), manager.alive(monotonic_ns()));
    const std::uint64_t now_ns = monotonic_ns();
    take_signals(now_ns);
    serve_clients(now_ns);
    tend_sessions(now_ns);
    tend_services(now_ns);
    take_readings(now_ns);
    look_after_profiles(now_ns);
    clients_.remove_gone();
  }
}

bool Daemon::stopped() const {
  const auto runs = [](const WatchedService& service) { return service.recording(); };
  return stopping_ && sessions_.all().empty() && std::none_of(services_.begin(), services_.end(), runs) &&
         std::none_of(leaving_.begin(), leaving_.end(), runs);
}

void Daemon::wait(std::uint64_t now_ns, std::uint64_t due_ns) {
  std::vector<pollfd> polled;
  const auto add = [&](int fd) { polled.push_back({fd, POLLIN, 0}); };
  const auto add_service = [&](const WatchedService& service) {
    const auto fds = service.fds();
    std::for_each(fds.begin(), fds.end(), add);
  };
  add(signals_.get());
  clients_.add_fds(polled, now_ns);
  for (const Session& session : sessions_.all()) {
    add(session.worker.fd());
  }
  std::for_each(services_.begin(), services_.end(), add_service);
  std::for_each(leaving_.begin(), leaving_.end(), add_service);
  const auto fds = reader_.fds();
  std::for_each(fds.begin(), fds.end(), add);
  const bool hurries = !clients_.empty() || !leaving_.empty() || stopping_;
  const std::uint64_t due = std::min({due_ns, services_.empty() ? UINT64_MAX : look_due_ns_, housekeeping_due_ns_,
                                      now_ns + (hurries ? 1 : 10) * second});
  const std::uint64_t left_ms = due > now_ns ? (due - now_ns) / 1'000'000 + 1 : 0;
  ::poll(polled.data(), polled.size(), static_cast<int>(left_ms));
}

void Daemon::take_signals(std::uint64_t now_ns) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (static_cast<int>(info.ssi_signo) == SIGHUP) {
      reload(now_ns);
    } else if (!stopping_) {
      ServiceManager::stopping();
      log_line(Level::notice, "stopping; recordings end");
      stopping_ = true;
      sessions_.stop_all(now_ns);
      std::for_each(services_.begin(), services_.end(), [&](WatchedService& service) { service.stop(now_ns); });
    }
  }
}

void Daemon::reload(std::uint64_t now_ns) {
  ServiceManager::reloading();
  auto read = options_.configuration.empty() ? Result<Configuration>(configuration_)
                                             : read_configuration(options_.configuration);
  if (!read) {
    log_line(Level::error, read.error().message + "; the earlier configuration stays");
  } else if (read->state != configuration_.state || read->metrics_address != configuration_.metrics_address ||
             read->metrics_port != configuration_.metrics_port || read->metrics_rows != configuration_.metrics_rows) {
    log_line(Level::error, "[state] directory and [metrics] change at a restart only; the earlier configuration stays");
  } else if (!stopping_) {
    replace_configuration(std::move(*read), now_ns);
  }
  ServiceManager::reloaded();
}

// A service whose settings changed ends under its old settings, and begins again under the new ones.
void Daemon::replace_configuration(Configuration&& configuration, std::uint64_t now_ns) {
  configuration_ = std::move(configuration);
  find_group();
  const auto& settings = configuration_.services;
  for (WatchedService& service : std::exchange(services_, {})) {
    const bool stays =
        service.settings().watch && std::find(settings.begin(), settings.end(), service.settings()) != settings.end();
    if (stays) {
      services_.push_back(std::move(service));
    } else {
      service.stop(now_ns);
      leaving_.push_back(std::move(service));
    }
  }
  make_services();
  look_due_ns_ = 0;
  housekeeping_due_ns_ = 0;
  log_line(Level::notice, "read the configuration again: " + std::to_string(services_.size()) + " watched services");
}

void Daemon::serve_clients(std::uint64_t now_ns) {
  clients_.serve([&](Client& client, const Received& received) { answer(client, received, now_ns); }, now_ns);
  for (Client& client : clients_.all()) {
    if (client.gone && client.session != 0) {
      sessions_.abandon(client.session, now_ns);
    }
  }
  clients_.remove_gone();  // first: they leave room for others
  figures_.refusals += clients_.accept(std::min(configuration_.sessions + 64UL, most_connections_), group_, now_ns);
}

void Daemon::answer(Client& client, const Received& received, std::uint64_t now_ns) {
  const auto request = parse_request(received.message);
  const auto answered = request ? carry_out(client, *request, now_ns) : tl::unexpected<Error>(request.error());
  if (!answered) {
    refuse(client, answered.error());
  }
  client.gone = client.gone || (!request && client.session == 0);  // it speaks another language
}

Result<void> Daemon::carry_out(Client& client, const Request& request, std::uint64_t now_ns) {
  switch (request.kind) {
    case RequestKind::record:
    case RequestKind::top:
      return begin_session(client, request, now_ns);
    case RequestKind::stop:
      return sessions_.stop(client.session, now_ns) ? Result<void>()
                                                    : fail(ErrorCode::not_found, "no session runs on this connection");
    case RequestKind::status:
      client.gone = !client.channel.send(to_message(
          Reply{Reply::Kind::status, 0, 0, 0, {}, status_for(client.peer, sessions_.all(), services_, now_ns)}));
      return {};
    case RequestKind::profiles:
    case RequestKind::fetch:
      return send_profile(client, request);
  }
  return {};
}

Result<void> Daemon::begin_session(Client& client, const Request& request, std::uint64_t now_ns) {
  if (client.session != 0 || stopping_) {
    return fail(ErrorCode::refused, stopping_ ? "crosstalkd is stopping" : "a session runs on this connection already");
  }
  std::vector<BudgetShare> others;
  for (const WatchedService& service : services_) {
    others.push_back(service.share());
  }
  const auto begun = sessions_.begin(request, client.peer, configuration_, std::move(others), now_ns);
  if (!begun) {
    return tl::unexpected<Error>(begun.error());
  }
  Session& session = **begun;
  client.session = session.id;
  const UniqueFd output = session.worker.take_output();
  const UniqueFd errors = session.worker.take_errors();
  client.gone =
      !client.channel.send(to_message(Reply{Reply::Kind::started, session.id, session.share.budget, 0, {}, ""}),
                           {errors.get(), output.get()});
  log_line(Level::notice, "session " + std::to_string(session.id) + " of user " + std::to_string(client.peer.user) +
                              " records process " + std::to_string(request.pids.front()) +
                              (request.pids.size() > 1 ? ", ..." : ""));
  return {};
}

Result<void> Daemon::send_profile(Client& client, const Request& request) const {
  const auto service = std::find_if(configuration_.services.begin(), configuration_.services.end(),
                                    [&](const ServiceSettings& each) { return each.name == request.service; });
  if (service == configuration_.services.end() || !may_see(client.peer, *service)) {
    return fail(ErrorCode::not_found, "there is no service '" + request.service +
                                          "' that you may see; crosstalk service status lists those that you may");
  }
  const auto profiles = profiles_of(configuration_.state, service->name);
  if (request.kind == RequestKind::profiles) {
    client.gone = !client.channel.send(to_message(Reply{Reply::Kind::profiles, 0, 0, 0, {}, list_of(profiles)}));
    return {};
  }
  const auto wanted = std::find_if(profiles.rbegin(), profiles.rend(), [&](const StoredProfile& profile) {
    return (request.profile.empty() || profile.name == request.profile) && is_whole(profile.path);
  });
  const UniqueFd file(wanted != profiles.rend() ? ::open(wanted->path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (!file.valid()) {
    return fail(ErrorCode::not_found, "there is no " +
                                          (request.profile.empty() ? "finished profile" : request.profile) + " of " +
                                          service->name + "; crosstalk service profiles lists those there are");
  }
  client.gone = !client.channel.send(to_message(Reply{Reply::Kind::profile, 0, 0, 0, {}, ""}), {file.get()});
  return {};
}

void Daemon::refuse(Client& client, const Error& error) {
  ++figures_.refusals;
  client.gone =
      !client.channel.send(to_message(Reply{Reply::Kind::refused, 0, 0, 0, error.code, error.message})) || client.gone;
}

void Daemon::tend_sessions(std::uint64_t now_ns) {
  for (const BegunProfile& begun : sessions_.take_begun()) {
    for (Client& client : clients_.all()) {
      if (client.session == begun.id) {
        const Reply reply{Reply::Kind::begun, begun.id, 0, 0, {}, ""};
        client.gone = !client.channel.send(to_message(reply), {begun.profile.get()}) || client.gone;
      }
    }
  }
  for (const SessionEnd& end : sessions_.tend(configuration_.longest_s, now_ns)) {
    for (Client& client : clients_.all()) {
      if (client.session == end.id) {
        const std::vector<int> profile = end.profile.valid() ? std::vector<int>{end.profile.get()} : std::vector<int>();
        const Reply reply{Reply::Kind::ended, end.id, 0, end.exit_status, {}, ""};
        client.gone = !client.channel.send(to_message(reply), profile) || client.gone;
        client.session = 0;
        client.idle_since_ns = now_ns;
      }
    }
  }
}

void Daemon::tend_services(std::uint64_t now_ns) {
  if (!services_.empty() && now_ns >= look_due_ns_) {
    look_due_ns_ = now_ns + look_period_ns;
    const std::vector<Process> all = processes_.look(now_ns);
    const bool changing = !leaving_.empty();  // a service never has two recordings
    for (WatchedService& service : services_) {
      if (!changing) {
        service.look(all, now_ns);
      }
    }
  }
  std::for_each(services_.begin(), services_.end(), [&](WatchedService& service) { tend(service, now_ns); });
  std::for_each(leaving_.begin(), leaving_.end(), [&](WatchedService& service) { tend(service, now_ns); });
}

void Daemon::tend(WatchedService& service, std::uint64_t now_ns) {
  const bool recorded = service.recording();
  for (const std::string& line : service.tend(now_ns)) {
    log_line(Level::notice, line);
  }
  if (recorded && !service.recording()) {
    look_due_ns_ = 0;
    housekeeping_due_ns_ = 0;
  }
}

void Daemon::take_readings(std::uint64_t now_ns) {
  for (const auto& outcome : reader_.tend(now_ns)) {
    const auto figures = outcome.report.empty() ? fail(ErrorCode::corrupt, outcome.why) : figures_of(outcome.report);
    if (figures) {
      metrics_.add(outcome.service, *figures);
    } else if (!outcome.copy) {
      metrics_.add_failure(outcome.service);
      log_line(Level::warning, outcome.service + ": an interval was not read: " + figures.error().message);
    } else if (!outcome.why.empty()) {
      log_line(Level::warning, outcome.service + ": a profile was not copied for pprof: " + outcome.why);
    }
    publish();
  }
}

/// Makes a killed recorder's profile one file, which clients may have.
void Daemon::take_in_log_of(const StoredProfile& profile) {
  const auto taken = profile::take_in_log(profile.path);
  log_line(taken ? Level::notice : Level::warning, profile.service + ": the recorder of " + profile.name +
                                                       " was killed" + (taken ? "" : "; " + taken.error().message));
}

/// Has finished profiles read. The last one of a service that leaves is its successor's to find, if there is one.
void Daemon::read_finished(const std::vector<StoredProfile>& profiles, std::int64_t now_s) {
  const auto read = [&](WatchedService& service) {
    for (StoredProfile& profile : service.take_finished(profiles, now_s)) {
      if (profile.has_log) {
        take_in_log_of(profile);
      }
      reader_.add(std::move(profile), service.settings().pprof);
    }
  };
  std::for_each(services_.begin(), services_.end(), read);
  for (WatchedService& service : leaving_) {
    const bool replaced = std::any_of(services_.begin(), services_.end(), [&](const WatchedService& other) {
      return other.settings().name == service.settings().name;
    });
    if (!replaced) {
      read(service);
    }
  }
}

void Daemon::look_after_profiles(std::uint64_t now_ns) {
  if (now_ns < housekeeping_due_ns_) {
    return;
  }
  housekeeping_due_ns_ = now_ns + housekeeping_period_ns;
  const std::int64_t now_s = std::time(nullptr);
  const std::vector<StoredProfile> profiles = store_.look();
  read_finished(profiles, now_s);
  std::erase_if(leaving_, [](const WatchedService& service) { return !service.recording(); });
  const auto removed = too_many(profiles, now_s, configuration_.max_age_s, configuration_.max_bytes);
  const std::set<std::string> paths(removed.begin(), removed.end());
  std::for_each(paths.begin(), paths.end(), remove_profile);
  figures_.profiles = profiles.size() - paths.size();
  figures_.profile_bytes = 0;
  for (const StoredProfile& profile : profiles) {
    figures_.profile_bytes += paths.contains(profile.path) ? 0 : profile.bytes;
  }
  publish();
}

void Daemon::publish() {
  if (!server_) {
    return;
  }
  figures_.sessions = static_cast<std::uint32_t>(sessions_.all().size());
  figures_.sessions_begun = sessions_.begun();
  figures_.watched.clear();
  for (const WatchedService& service : services_) {
    figures_.watched[service.settings().name] = service.recording();
  }
  server_->publish(metrics_.text(figures_));
}

}  // namespace crosstalk::service
