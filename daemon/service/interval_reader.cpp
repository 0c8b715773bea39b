// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/interval_reader.h"

#include <algorithm>
#include <utility>

namespace crosstalk::service {
namespace {

constexpr std::size_t most_waiting = 64;
constexpr std::size_t most_errors = 4096;  // bytes, of which the first line is told
// A job has the lowest priority: on a machine without idle time it gets about a hundredth of a processor.
constexpr std::uint64_t reader_patience_ns = 600'000'000'000;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void IntervalReader::add(StoredProfile profile, bool pprof) {
  if (waiting_.size() >= most_waiting) {
    const Job& oldest = waiting_.front();
    dropped_.push_back({oldest.profile.service, "", "profiles come faster than they can be read", oldest.pprof});
    waiting_.pop_front();
  }
  waiting_.push_back({profile, false});
  if (pprof) {
    waiting_.push_back({std::move(profile), true});
  }
}

std::vector<int> IntervalReader::fds() const { return worker_ ? worker_->fds() : std::vector<int>(); }

void IntervalReader::begin_next(std::uint64_t now_ns, std::vector<Outcome>& outcomes) {
  if (worker_ || waiting_.empty()) {
    return;
  }
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  const std::string& path = current_.profile.path;
  std::vector<std::string> arguments = {"report", "--format", "json", "-i", path};
  if (current_.pprof) {
    arguments = {"export", "--format", "pprof", "-i", path, "-o", path + ".pb.gz"};
  }
  auto worker = Worker::start({program_, arguments, {}, true});
  if (!worker) {  // the others wait for the next call: the machine may lack processes for a moment
    outcomes.push_back({current_.profile.service, "", worker.error().message, current_.pprof});
    return;
  }
  worker_ = std::move(*worker);
  output_.clear();
  errors_.clear();
  too_long_ = false;
  begun_ns_ = now_ns;
}

/// Takes all that the job has written, so that it never waits for us.
void IntervalReader::read_on() {
  constexpr std::size_t part = 1U << 20U;
  std::string text = worker_->read_output(part);
  too_long_ = too_long_ || output_.size() + text.size() > most_bytes_;
  if (!too_long_) {
    output_ += text;
  }
  text = worker_->read_errors(part);
  errors_ += text.substr(0, most_errors - std::min(most_errors, errors_.size()));
}

IntervalReader::Outcome IntervalReader::outcome_of(int status) {
  Outcome outcome{current_.profile.service, "", "", current_.pprof};
  if (too_long_) {
    outcome.why = "its report is longer than " + std::to_string(most_bytes_) + " bytes";
  } else if (status != 0 || (output_.empty() && !current_.pprof)) {
    outcome.why = errors_.empty() ? "crosstalk ended with status " + std::to_string(status) : first_line(errors_);
  } else if (!current_.pprof) {
    outcome.report = std::move(output_);
  }
  return outcome;
}

std::vector<IntervalReader::Outcome> IntervalReader::tend(std::uint64_t now_ns) {
  std::vector<Outcome> outcomes = std::exchange(dropped_, {});
  if (worker_) {
    if (too_long_) {
      worker_->stop(now_ns, 0);  // it has nothing to finish
    } else if (now_ns - begun_ns_ > reader_patience_ns) {
      worker_->stop(now_ns);
    }
    const auto status = worker_->poll_status();  // first: what it wrote before its end is there
    read_on();
    if (status) {
      outcomes.push_back(outcome_of(*status));
      worker_.reset();
      output_ = std::string();
    }
  }
  begin_next(now_ns, outcomes);
  return outcomes;
}

}  // namespace crosstalk::service
