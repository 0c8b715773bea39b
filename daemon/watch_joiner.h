// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "daemon/row_sink.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Joins the records of one watch from several rings, in any order: its opening, the sample that opened it, and its
/// closing. Puts a row once opening and sample are known, and again at the closing. Not thread-safe.
class WatchJoiner {
 public:
  explicit WatchJoiner(RowSink& sink) : sink_(&sink) {}

  /// `record` must have passed its checks.
  void open(ThreadId thread, const profile::WatchOpen& record);
  /// Adds a probe, which opens and closes at once.
  void probe(ThreadId thread, const profile::LineProbe& record);
  void sample(const profile::SampleRow& sample);
  void close(const profile::WatchClose& record);

  /// Settles watches begun before `before_ns` (CLOCK_MONOTONIC), whose missing parts will not arrive any more. Puts an
  /// opening whose sample or closing was lost as it is.
  void settle(std::uint64_t before_ns);
  /// Ends the session: settles all.
  void finish() { settle(~std::uint64_t{0}); }

  [[nodiscard]] std::uint64_t opened() const { return opened_; }
  [[nodiscard]] std::size_t pending() const { return pending_.size(); }

 private:
  struct Pending {
    profile::WatchRow row;
    std::uint64_t since_ns = 0;
    bool opened = false, sampled = false, put = false;
  };
  Pending* at(std::uint32_t watch, std::uint64_t time_ns);
  template <class Record>
  Pending* begin(ThreadId thread, const Record& record);
  void advance(Pending& pending);

  RowSink* sink_;
  std::unordered_map<std::uint32_t, Pending> pending_;
  std::uint64_t opened_ = 0;
};

}  // namespace crosstalk::daemon
