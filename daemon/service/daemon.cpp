// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/daemon.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "daemon/service/journal.h"
#include "daemon/service/messages.h"
#include "daemon/service/profile_store.h"
#include "daemon/service/service_manager.h"
#include "daemon/service/status.h"

namespace crosstalk::service {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t look_period_ns = 5 * second;
constexpr std::uint64_t housekeeping_period_ns = 10 * second;
constexpr std::uint64_t client_patience_ns = 10 * second;  // with a client that asks for nothing

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

Peer peer_of(const Credentials& credentials, const std::string& group) {
  const ::group* const named = ::getgrnam(group.c_str());
  const bool in_group = named != nullptr && std::find(credentials.groups.begin(), credentials.groups.end(),
                                                      named->gr_gid) != credentials.groups.end();
  return {credentials.user, in_group};
}

Result<void> check_state(const std::string& state) {
  if (auto made = make_directory(state); !made) {
    return made;
  }
  return ::access(state.c_str(), W_OK | X_OK) == 0
             ? Result<void>()
             : fail(ErrorCode::permission, "the state directory " + state + " cannot be written: " +
                                               std::strerror(errno) + "; choose another one in [state]");
}

}  // namespace

Daemon::Daemon(Configuration configuration, DaemonOptions options, UniqueFd signals)
    : configuration_(std::move(configuration)),
      options_(std::move(options)),
      signals_(std::move(signals)),
      sessions_({options_.program, configuration_.state}),
      reader_(options_.program),
      metrics_(configuration_.metrics_rows) {}

Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(Configuration configuration, DaemonOptions options) {
  auto signals = check_state(configuration.state).and_then(watch_signals);
  if (!signals) {
    return tl::unexpected<Error>(signals.error());
  }
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(configuration), std::move(options), std::move(*signals)));
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
  daemon->make_services();
  return daemon;
}

void Daemon::make_services() {
  for (const ServiceSettings& settings : configuration_.services) {
    if (settings.watch) {
      services_.emplace_back(settings, ServiceMeans{options_.program, configuration_.state});
    }
  }
}

void Daemon::run() {
  ServiceManager manager;
  manager.ready();
  while (!stopped()) {
    wait(monotonic_ns());
    const std::uint64_t now_ns = monotonic_ns();
    manager.alive(now_ns);
    take_signals(now_ns);
    accept_clients(now_ns);
    for (Client& client : clients_) {
      serve(client, now_ns);
    }
    tend_sessions(now_ns);
    tend_services(now_ns);
    look_after_profiles(now_ns);
    clients_.remove_if([](const Client& client) { return client.gone; });
  }
  manager.stopping();
}

bool Daemon::stopped() const {
  const auto runs = [](const WatchedService& service) { return service.recording(); };
  return stopping_ && sessions_.all().empty() && std::none_of(services_.begin(), services_.end(), runs) &&
         std::none_of(leaving_.begin(), leaving_.end(), runs);
}

void Daemon::wait(std::uint64_t now_ns) {
  std::vector<pollfd> polled;
  const auto add = [&](int fd) { polled.push_back({fd, POLLIN, 0}); };
  add(signals_.get());
  add(options_.listener.get());
  for (const Client& client : clients_) {
    add(client.channel.fd());
  }
  for (const Session& session : sessions_.all()) {
    add(session.worker.fd());
  }
  for (const auto* const services : {&services_}) {
    for (const WatchedService& service : *services) {
      const auto fds = service.fds();
      std::for_each(fds.begin(), fds.end(), add);
    }
  }
  const auto fds = reader_.fds();
  std::for_each(fds.begin(), fds.end(), add);
  const std::uint64_t due = std::min({services_.empty() ? UINT64_MAX : look_due_ns_, housekeeping_due_ns_,
                                      now_ns + (clients_.empty() && leaving_.empty() && !stopping_ ? 10 : 1) * second});
  const std::uint64_t left_ms = due > now_ns ? (due - now_ns) / 1'000'000 + 1 : 0;
  ::poll(polled.data(), polled.size(), static_cast<int>(left_ms));
}

void Daemon::take_signals(std::uint64_t now_ns) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (static_cast<int>(info.ssi_signo) == SIGHUP) {
      reload(now_ns);
    } else if (!stopping_) {
      log_line(Level::notice, "stopping; recordings end");
      stopping_ = true;
      sessions_.stop_all(now_ns);
      std::for_each(services_.begin(), services_.end(), [&](WatchedService& service) { service.stop(now_ns); });
    }
  }
}

// A service whose settings changed ends under its old settings, and begins again under the new ones.
void Daemon::reload(std::uint64_t now_ns) {
  ServiceManager::reloading();
  auto read = options_.configuration.empty() ? Result<Configuration>(configuration_)
                                             : read_configuration(options_.configuration);
  if (!read) {
    log_line(Level::error, read.error().message + "; the earlier configuration stays");
  } else if (read->state != configuration_.state || read->metrics_address != configuration_.metrics_address ||
             read->metrics_port != configuration_.metrics_port) {
    log_line(Level::error,
             "[state] directory and [metrics] address and port change at a restart only; the earlier "
             "configuration stays");
  } else if (!stopping_) {
    for (WatchedService& service : services_) {
      service.stop(now_ns);
      leaving_.push_back(std::move(service));
    }
    services_.clear();
    configuration_ = std::move(*read);
    make_services();
    look_due_ns_ = 0;
    log_line(Level::notice, "read the configuration again: " + std::to_string(services_.size()) + " watched services");
  }
  ServiceManager::reloaded();
}

void Daemon::accept_clients(std::uint64_t now_ns) {
  const std::size_t most = configuration_.sessions + 64;
  for (UniqueFd socket = accept_from(options_.listener.get()); socket.valid();
       socket = accept_from(options_.listener.get())) {
    Client client{Channel(std::move(socket)), {}, 0, now_ns, false};
    const auto credentials = client.channel.credentials();
    if (!credentials) {
      continue;
    }
    client.peer = peer_of(*credentials, configuration_.group);
    const auto of_user = std::count_if(clients_.begin(), clients_.end(),
                                       [&](const Client& other) { return other.peer.user == client.peer.user; });
    if (clients_.size() >= most || (client.peer.user != 0 && static_cast<std::size_t>(of_user) >= most / 2)) {
      refuse(client, {ErrorCode::refused, "too many connections are open; try again later"});
      continue;
    }
    clients_.push_back(std::move(client));
  }
}

void Daemon::serve(Client& client, std::uint64_t now_ns) {
  pollfd polled{client.channel.fd(), POLLIN, 0};
  while (!client.gone && ::poll(&polled, 1, 0) == 1) {
    const auto received = client.channel.receive();
    if (!received) {
      break;
    }
    client.gone = received->message.empty();
    if (!client.gone) {
      client.idle_since_ns = now_ns;
      answer(client, *received, now_ns);
    }
  }
  client.gone = client.gone || (client.session == 0 && now_ns - client.idle_since_ns > client_patience_ns);
  if (client.gone && client.session != 0) {
    sessions_.abandon(client.session, now_ns);
  }
}

void Daemon::answer(Client& client, const Received& received, std::uint64_t now_ns) {
  const auto request = parse_request(received.message);
  Result<void> answered = request ? Result<void>() : tl::unexpected<Error>(request.error());
  if (!answered) {
    refuse(client, answered.error());
    client.gone = client.session == 0;  // it speaks another language
    return;
  }
  switch (request->kind) {
    case RequestKind::record:
    case RequestKind::top:
      answered = begin_session(client, *request, now_ns);
      break;
    case RequestKind::stop:
      sessions_.stop(client.session, now_ns);
      break;
    case RequestKind::status:
      client.gone = !client.channel.send(to_message(
          Reply{Reply::Kind::status, 0, 0, 0, {}, status_for(client.peer, sessions_.all(), services_, now_ns)}));
      break;
    case RequestKind::profiles:
    case RequestKind::fetch:
      answered = send_profile(client, *request);
      break;
  }
  if (!answered) {
    refuse(client, answered.error());
  }
}

Result<void> Daemon::begin_session(Client& client, const Request& request, std::uint64_t now_ns) {
  if (client.session != 0 || stopping_) {
    return fail(ErrorCode::refused, stopping_ ? "crosstalkd is stopping" : "a session runs on this connection already");
  }
  std::vector<BudgetShare> others;
  for (const WatchedService& service : services_) {
    others.push_back({service.pids(), service.settings().budget});
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

Result<void> Daemon::send_profile(const Client& client, const Request& request) const {
  const auto service = std::find_if(configuration_.services.begin(), configuration_.services.end(),
                                    [&](const ServiceSettings& each) { return each.name == request.service; });
  if (service == configuration_.services.end() || !may_see(client.peer, *service)) {
    return fail(ErrorCode::not_found, "there is no service '" + request.service +
                                          "' that you may see; crosstalk service status lists those that you may");
  }
  const auto profiles = profiles_of(configuration_.state, service->name);
  if (request.kind == RequestKind::profiles) {
    (void)client.channel.send(to_message(Reply{Reply::Kind::profiles, 0, 0, 0, {}, list_of(profiles)}));
    return {};
  }
  const auto wanted = std::find_if(profiles.rbegin(), profiles.rend(), [&](const StoredProfile& profile) {
    return profile.finished && (request.profile.empty() || profile.name == request.profile);
  });
  const UniqueFd file(wanted != profiles.rend() ? ::open(wanted->path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (!file.valid()) {
    return fail(ErrorCode::not_found, "there is no " +
                                          (request.profile.empty() ? "finished profile" : request.profile) + " of " +
                                          service->name + "; crosstalk service profiles lists those there are");
  }
  (void)client.channel.send(to_message(Reply{Reply::Kind::profile, 0, 0, 0, {}, ""}), {file.get()});
  return {};
}

void Daemon::refuse(Client& client, const Error& error) {
  ++figures_.refusals;
  client.gone =
      !client.channel.send(to_message(Reply{Reply::Kind::refused, 0, 0, 0, error.code, error.message})) || client.gone;
}

void Daemon::tend_sessions(std::uint64_t now_ns) {
  for (const SessionEnd& end : sessions_.tend(configuration_.longest_s, now_ns)) {
    for (Client& client : clients_) {
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
  const auto tend = [&](WatchedService& service) {
    const bool recorded = service.recording();
    for (const std::string& line : service.tend(now_ns)) {
      log_line(Level::notice, line);
    }
    if (recorded && !service.recording()) {
      look_due_ns_ = 0;
      housekeeping_due_ns_ = 0;
    }
  };
  std::for_each(services_.begin(), services_.end(), tend);
  std::for_each(leaving_.begin(), leaving_.end(), tend);
  std::erase_if(leaving_, [](const WatchedService& service) { return !service.recording(); });
  for (const auto& outcome : reader_.tend(now_ns)) {
    const auto figures = outcome.report.empty() ? fail(ErrorCode::corrupt, outcome.why) : figures_of(outcome.report);
    if (figures) {
      metrics_.add(outcome.service, *figures);
    } else {
      metrics_.add_failure(outcome.service);
      log_line(Level::warning, outcome.service + ": an interval was not read: " + figures.error().message);
    }
    publish();
  }
}

void Daemon::look_after_profiles(std::uint64_t now_ns) {
  if (now_ns < housekeeping_due_ns_) {
    return;
  }
  housekeeping_due_ns_ = now_ns + housekeeping_period_ns;
  for (WatchedService& service : services_) {
    for (StoredProfile& profile : service.take_finished()) {
      reader_.add(std::move(profile), service.settings().pprof);
    }
  }
  std::vector<StoredProfile> profiles = all_profiles(configuration_.state);
  for (const std::string& path :
       too_many(profiles, std::time(nullptr), configuration_.max_age_s, configuration_.max_bytes)) {
    remove_profile(path);
    std::erase_if(profiles, [&](const StoredProfile& profile) { return profile.path == path; });
  }
  figures_.profiles = profiles.size();
  figures_.profile_bytes = 0;
  for (const StoredProfile& profile : profiles) {
    figures_.profile_bytes += profile.bytes;
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
