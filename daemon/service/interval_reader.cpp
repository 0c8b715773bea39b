// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/interval_reader.h"

#include <utility>

namespace crosstalk::service {
namespace {

constexpr std::size_t most_waiting = 64;
constexpr std::size_t most_bytes = 64 << 20U;  // of a report
constexpr std::uint64_t patience_ns = 120'000'000'000;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void IntervalReader::add(StoredProfile profile, bool pprof) {
  if (waiting_.size() >= most_waiting) {
    if (!waiting_.front().pprof) {
      dropped_.push_back({waiting_.front().profile.service, "", "profiles come faster than they can be read"});
    }
    waiting_.pop_front();
  }
  waiting_.push_back({profile, false});
  if (pprof) {
    waiting_.push_back({std::move(profile), true});
  }
}

std::vector<int> IntervalReader::fds() const {
  return worker_ ? std::vector<int>{worker_->fd(), worker_->output().get()} : std::vector<int>();
}

void IntervalReader::begin_next(std::uint64_t now_ns, std::vector<Outcome>& outcomes) {
  while (!worker_ && !waiting_.empty()) {
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    const std::string& path = current_.profile.path;
    std::vector<std::string> arguments = {"report", "--format", "json", "-i", path};
    if (current_.pprof) {
      arguments = {"export", "--format", "pprof", "-i", path, "-o", path + ".pb.gz"};
    }
    auto worker = Worker::start({program_, arguments, {}, true});
    if (!worker) {
      outcomes.push_back({current_.profile.service, "", worker.error().message});
      continue;
    }
    worker_ = std::move(*worker);
    output_.clear();
    begun_ns_ = now_ns;
  }
}

std::vector<IntervalReader::Outcome> IntervalReader::tend(std::uint64_t now_ns) {
  std::vector<Outcome> outcomes = std::exchange(dropped_, {});
  if (worker_) {
    if (now_ns - begun_ns_ > patience_ns) {
      worker_->stop(now_ns);
    }
    const auto status = worker_->poll_status();
    output_ += read_waiting(worker_->output(), most_bytes - output_.size());
    if (status) {
      const std::string why = *status == 0 ? "" : first_line(read_waiting(worker_->errors(), 4096));
      if (!current_.pprof) {
        outcomes.push_back({current_.profile.service, *status == 0 ? std::move(output_) : "", why});
      }
      worker_.reset();
      output_.clear();
    }
  }
  begin_next(now_ns, outcomes);
  return outcomes;
}

}  // namespace crosstalk::service
