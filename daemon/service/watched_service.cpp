// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/watched_service.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "daemon/service/journal.h"
#include "daemon/service/messages.h"

namespace crosstalk::service {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t first_pause_ns = second;
constexpr std::uint64_t longest_pause_ns = 300 * second;
constexpr std::uint64_t start_gap_ns = 2 * second;  // between the starts of recordings, for services that die at once
constexpr std::uint64_t least_length_ns = 10 * second;  // of a recording, for services that get ever new processes

std::vector<std::string> arguments_of(const ServiceSettings& settings, const std::vector<pid_t>& pids,
                                      const std::vector<int>& pidfds, const std::string& state) {
  std::vector<std::string> arguments = {"record",
                                        "-q",
                                        "-p",
                                        fmt::format("{}", fmt::join(pids, ",")),
                                        "--pidfd",
                                        fmt::format("{}", fmt::join(pidfds, ",")),
                                        "--budget",
                                        fmt::format("{:g}", 100 * settings.budget),
                                        "--switch-output",
                                        std::to_string(settings.interval_s) + "s",
                                        "-o",
                                        as_output(state + "/services/" + settings.name + "/" + settings.name + ".db")};
  if (settings.children) {
    arguments.emplace_back("--children");
  }
  return arguments;
}

}  // namespace

WatchedService::WatchedService(ServiceSettings settings, ServiceMeans means)
    : settings_(std::move(settings)), means_(std::move(means)) {
  (void)take_finished(profiles_of(means_.state, settings_.name), std::time(nullptr));  // an earlier daemon's
}

BudgetShare WatchedService::share() const { return {pids_, settings_.budget, ancestors_, settings_.children}; }

std::vector<int> WatchedService::fds() const { return worker_ ? worker_->fds() : std::vector<int>(); }

/// False for another process that has got a recorded one's pid.
bool WatchedService::records(pid_t pid) const {
  const auto found = std::find(pids_.begin(), pids_.end(), pid);
  return found != pids_.end() && !has_ended(pidfds_[static_cast<std::size_t>(found - pids_.begin())]);
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
  const bool has_new = std::any_of(pids.begin(), pids.end(), [&](pid_t pid) { return !records(pid); });
  if (has_new && !worker_->stopping() && now_ns - begun_ns_ >= least_length_ns) {
    worker_->stop(now_ns);  // the next look begins with all of them
  }
}

// The list of processes may be a minute old, and their pids may have been used again.
void WatchedService::begin(const std::vector<pid_t>& pids, std::uint64_t now_ns) {
  pids_.clear();
  pidfds_.clear();
  ancestors_.clear();
  std::vector<int> kept, numbers;
  for (const pid_t pid : pids) {
    auto held = hold(pid);
    if (!held || !belongs_to(held->process, settings_.match)) {
      continue;
    }
    numbers.push_back(kept_number(kept.size()));
    kept.push_back(held->pidfd.get());
    pids_.push_back(pid);
    pidfds_.push_back(std::move(held->pidfd));
    const std::vector<pid_t> ancestors = ancestors_of(pid);
    ancestors_.insert(ancestors_.end(), ancestors.begin(), ancestors.end());
  }
  if (pids_.empty()) {
    state_ = "no process of it runs";
    return;
  }
  begun_ns_ = now_ns;
  retry_ns_ = now_ns + start_gap_ns;
  auto worker = make_directory(means_.state + "/services/" + settings_.name).and_then([&] {
    return Worker::start({means_.program, arguments_of(settings_, pids_, numbers, means_.state), kept, false});
  });
  if (!worker) {
    pids_.clear();
    fail_for(worker.error().message, now_ns);
    log_line(Level::error, settings_.name + ": " + state_);
    return;
  }
  worker_ = std::move(*worker);
  words_.clear();
  last_words_.clear();
  state_ = "is recorded";
}

void WatchedService::fail_for(const std::string& why, std::uint64_t now_ns) {
  pause_ns_ = std::min(longest_pause_ns, std::max(first_pause_ns, 2 * pause_ns_));
  retry_ns_ = now_ns + pause_ns_;
  state_ = fmt::format("cannot be recorded: {}; the next try is in {} s", why, pause_ns_ / second);
}

/// Takes the lines that the recording has written; `all`: with one that has no end.
void WatchedService::read_words(std::vector<std::string>& lines, bool all) {
  constexpr std::size_t longest_line = 4096;
  words_ += worker_->read_errors(64 * 1024UL);
  while (!words_.empty()) {
    const std::size_t newline = words_.find('\n');
    if (newline == std::string::npos && !all && words_.size() < longest_line) {
      return;
    }
    const std::string line = words_.substr(0, std::min(newline, longest_line));
    words_.erase(0, line.size() + (line.size() == newline ? 1 : 0));
    lines.push_back(settings_.name + ": " + line);
    last_words_ = line.starts_with("crosstalk: ") ? line.substr(11) : line;
  }
}

std::vector<std::string> WatchedService::tend(std::uint64_t now_ns) {
  std::vector<std::string> lines;
  if (!worker_) {
    return lines;
  }
  if (worker_->stopping()) {
    worker_->stop(now_ns);  // kills it when patience ends
  }
  const auto status = worker_->poll_status();  // first: what it wrote before its end is there
  (void)worker_->read_output(64 * 1024UL);
  read_words(lines, status.has_value());
  if (status) {
    end(*status, now_ns, lines);
  }
  return lines;
}

void WatchedService::end(int status, std::uint64_t now_ns, std::vector<std::string>& lines) {
  const bool told = worker_->stopping();
  worker_.reset();
  pids_.clear();
  pidfds_.clear();
  if (now_ns - begun_ns_ > longest_pause_ns || status == 0) {
    pause_ns_ = 0;
  }
  if (status != 0 && !told) {
    fail_for(last_words_.empty() ? fmt::format("the recorder ended with status {}", status) : last_words_, now_ns);
    lines.push_back(settings_.name + ": " + state_);
  } else {
    state_ = "its processes have ended";
  }
}

std::vector<StoredProfile> WatchedService::take_finished(const std::vector<StoredProfile>& profiles,
                                                         std::int64_t now_s) {
  std::vector<StoredProfile> finished;
  std::vector<std::string> seen;
  for (const StoredProfile& profile : profiles) {
    if (profile.service != settings_.name) {
      continue;
    }
    if (!std::binary_search(seen_.begin(), seen_.end(), profile.name)) {
      if (!is_whole(profile.path) && !is_left(profile, now_s)) {
        continue;
      }
      finished.push_back(profile);
    }
    seen.push_back(profile.name);
  }
  seen_ = std::move(seen);  // by name, as the profiles are
  return finished;
}

void WatchedService::stop(std::uint64_t now_ns) {
  stopped_ = true;
  if (worker_) {
    worker_->stop(now_ns);
  }
}

}  // namespace crosstalk::service
