// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "daemon/row_sink.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Joins what several rings tell of one watch, in any order: its opening, the sample that opened it, and its
/// closing. A row is put when opening and sample are known, and again at the closing. Not thread-safe.
class WatchJoiner {
 public:
  explicit WatchJoiner(RowSink& sink) : sink_(&sink) {}

  /// `record` has been judged sound.
  void open(ThreadId thread, const profile::WatchOpen& record);
  /// A probe opens and closes at once.
  void probe(ThreadId thread, const profile::LineProbe& record);
  void sample(const profile::SampleRow& sample);
  void close(const profile::WatchClose& record);

  /// Lets go of watches whose missing parts will not come any more: those begun before `before_ns`
  /// (CLOCK_MONOTONIC). An opening whose sample or closing was lost is put as it is.
  void settle(std::uint64_t before_ns);
  /// The end of the session: settles all.
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
