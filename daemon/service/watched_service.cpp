// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/watched_service.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace crosstalk::service {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t first_pause_ns = second;
constexpr std::uint64_t longest_pause_ns = 300 * second;

std::vector<std::string> arguments_of(const ServiceSettings& settings, const std::vector<pid_t>& pids,
                                      const std::string& state) {
  std::vector<std::string> arguments = {"record",
                                        "-q",
                                        "-p",
                                        fmt::format("{}", fmt::join(pids, ",")),
                                        "--budget",
                                        fmt::format("{:g}", 100 * settings.budget),
                                        "--switch-output",
                                        std::to_string(settings.interval_s) + "s",
                                        "-o",
                                        state + "/services/" + settings.name + "/" + settings.name + ".db"};
  if (settings.children) {
    arguments.emplace_back("--children");
  }
  return arguments;
}

}  // namespace

WatchedService::WatchedService(ServiceSettings settings, ServiceMeans means)
    : settings_(std::move(settings)), means_(std::move(means)) {
  for (const StoredProfile& profile : profiles_of(means_.state, settings_.name)) {
    seen_.insert(profile.name);  // an earlier daemon's
  }
}

std::vector<int> WatchedService::fds() const {
  return worker_ ? std::vector<int>{worker_->fd(), worker_->errors().get()} : std::vector<int>();
}

void WatchedService::look(const std::vector<Process>& all, std::uint64_t now_ns) {
  if (stopped_) {
    return;
  }
  constexpr std::size_t most = 64;
  std::vector<pid_t> pids = processes_of(all, settings_.match, settings_.children);
  pids.resize(std::min(pids.size(), most));
  if (!worker_) {
    if (!pids.empty() && now_ns >= retry_ns_) {
      begin(pids, now_ns);
    } else if (pids.empty()) {
      state_ = "no process of it runs";
    }
    return;
  }
  const bool has_new = std::any_of(
      pids.begin(), pids.end(), [&](pid_t pid) { return std::find(pids_.begin(), pids_.end(), pid) == pids_.end(); });
  if (has_new && !worker_->stopping() && now_ns - begun_ns_ > second) {
    worker_->stop(now_ns);  // the next look begins with all of them
  }
}

void WatchedService::begin(const std::vector<pid_t>& pids, std::uint64_t now_ns) {
  auto worker = make_directory(means_.state + "/services/" + settings_.name).and_then([&] {
    return Worker::start({means_.program, arguments_of(settings_, pids, means_.state), {}, false});
  });
  if (!worker) {
    fail_for(worker.error().message, now_ns);
    return;
  }
  worker_ = std::move(*worker);
  pids_ = pids;
  begun_ns_ = now_ns;
  last_words_.clear();
  state_ = "recorded since it was found";
}

void WatchedService::fail_for(const std::string& why, std::uint64_t now_ns) {
  pause_ns_ = std::min(longest_pause_ns, std::max(first_pause_ns, 2 * pause_ns_));
  retry_ns_ = now_ns + pause_ns_;
  state_ = fmt::format("cannot be recorded: {}; the next try is in {} s", why, pause_ns_ / second);
}

std::vector<std::string> WatchedService::tend(std::uint64_t now_ns) {
  std::vector<std::string> lines;
  if (!worker_) {
    return lines;
  }
  std::istringstream words(read_waiting(worker_->errors(), 64 * 1024));
  for (std::string line; std::getline(words, line);) {
    lines.push_back(settings_.name + ": " + line);
    last_words_ = line.starts_with("crosstalk: ") ? line.substr(11) : line;
  }
  if (worker_->stopping()) {
    worker_->stop(now_ns);  // kills it when patience ends
  }
  const auto status = worker_->poll_status();
  if (!status) {
    return lines;
  }
  const bool told = worker_->stopping();
  worker_.reset();
  pids_.clear();
  if (*status != 0 && !told) {
    fail_for(last_words_.empty() ? fmt::format("the recorder ended with status {}", *status) : last_words_, now_ns);
    lines.push_back(settings_.name + ": " + state_);
  } else {
    pause_ns_ = 0;
    retry_ns_ = now_ns;
    state_ = "its processes have ended";
  }
  return lines;
}

std::vector<StoredProfile> WatchedService::take_finished() {
  std::vector<StoredProfile> finished;
  std::set<std::string> there;
  for (StoredProfile& profile : profiles_of(means_.state, settings_.name)) {
    there.insert(profile.name);
    if (profile.finished && seen_.insert(profile.name).second) {
      finished.push_back(std::move(profile));
    }
  }
  std::erase_if(seen_, [&](const std::string& name) { return !there.contains(name); });
  return finished;
}

void WatchedService::stop(std::uint64_t now_ns) {
  stopped_ = true;
  if (worker_) {
    worker_->stop(now_ns);
  }
}

}  // namespace crosstalk::service
