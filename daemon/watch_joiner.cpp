// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch_joiner.h"

#include <algorithm>
#include <iterator>

namespace crosstalk::daemon {
namespace {

// Bounds the memory that a target can use: four watches at a time in each of 4096 threads.
constexpr std::size_t max_pending = 16384;

}  // namespace

WatchJoiner::Pending* WatchJoiner::at(std::uint32_t watch, std::uint64_t time_ns) {
  const auto found = pending_.find(watch);
  if (found != pending_.end()) {
    return &found->second;
  }
  if (watch == 0 || pending_.size() >= max_pending) {
    return nullptr;
  }
  Pending& made = pending_[watch];
  made.row.id = WatchId{watch};
  made.since_ns = time_ns;
  return &made;
}

/// Starts a watch or a probe; null if it is already known, or the limit is reached.
template <class Record>
WatchJoiner::Pending* WatchJoiner::begin(ThreadId thread, const Record& record) {
  Pending* pending = at(record.watch, record.time_ns);
  if (pending == nullptr || pending->opened) {
    return nullptr;
  }
  ++opened_;
  pending->opened = true;
  profile::WatchRow& row = pending->row;
  row.thread = thread;
  row.time_ns = record.time_ns;
  row.line = record.line;
  row.threads = record.threads;
  row.suspected = record.suspected != 0;
  return pending;
}

void WatchJoiner::open(ThreadId thread, const profile::WatchOpen& record) {
  Pending* pending = begin(thread, record);
  if (pending == nullptr) {
    return;
  }
  profile::WatchRow& row = pending->row;
  row.words.assign(std::begin(record.word), std::begin(record.word) + record.words);
  row.armed = record.armed;
  row.horizon_ns = record.horizon_ns;
  if (record.has_state != 0) {
    row.state = record.state;
  }
  advance(*pending);
}

void WatchJoiner::probe(ThreadId thread, const profile::LineProbe& record) {
  Pending* pending = begin(thread, record);
  if (pending == nullptr) {
    return;
  }
  profile::WatchRow& row = pending->row;
  row.armed = record.threads > 0 ? record.threads - 1 : 0;  // any store is seen
  row.horizon_ns = 0;                                       // all probes are equally brief
  row.probe =
      profile::ProbedLine{record.changed, record.gap_ns, record.value, static_cast<std::uint8_t>(record.value_bytes)};
  row.close = profile::CloseReason::horizon;
  row.close_ns = record.time_ns + record.gap_ns;
  advance(*pending);
}

void WatchJoiner::sample(const profile::SampleRow& sample) {
  Pending* pending = at(sample.watch.value, sample.time_ns);
  if (pending == nullptr || pending->sampled) {
    return;
  }
  profile::WatchRow& row = pending->row;
  row.sample_ip = sample.ip;
  row.sample_access_ip = sample.access_ip;
  row.sample_address = sample.address;
  row.sample_cpu_ns = sample.cpu_ns;
  row.sample_width = sample.width;
  row.sample_access = sample.access;
  row.sample_from = sample.from;
  row.sample_flags = sample.flags;
  row.sample_cpu = sample.cpu;
  row.sample_stack = sample.stack;
  row.sample_measurement = sample.measurement;
  pending->sampled = true;
  advance(*pending);
}

void WatchJoiner::close(const profile::WatchClose& record) {
  Pending* pending = at(record.watch, record.time_ns);
  if (pending == nullptr || pending->row.close) {
    return;
  }
  pending->row.close = record.reason;
  pending->row.close_ns = record.time_ns;
  advance(*pending);
}

void WatchJoiner::advance(Pending& pending) {
  if (!pending.opened || !pending.sampled) {
    return;
  }
  sink_->put(pending.row);
  pending.put = true;
  if (pending.row.close) {
    pending_.erase(pending.row.id.value);
  }
}

void WatchJoiner::settle(std::uint64_t before_ns) {
  std::erase_if(pending_, [&](const auto& entry) {
    const Pending& pending = entry.second;
    if (pending.since_ns >= before_ns) {
      return false;
    }
    if (pending.opened && !pending.put) {
      sink_->put(pending.row);
    }
    return true;
  });
}

}  // namespace crosstalk::daemon
