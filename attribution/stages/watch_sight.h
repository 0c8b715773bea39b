// SPDX-License-Identifier: Apache-2.0
// Tells if watchpoints could show all communication. If they do not fire, an absence of communication proves nothing.
// The recording says so (its self-test, its method, its messages), or 200 watches without a trap that should have
// trapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/timeline/sampled_code.h"

namespace crosstalk::attribution {

/// Counts watches that should have trapped: a thread was sampled on the line both before and after the watch opened,
/// and so were other threads, one of all stores to it, and a watchpoint was armed in another thread.
class TellingWatches {
 public:
  /// All must outlive this.
  TellingWatches(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
                 SampledCode& code);
  void add(const profile::SampleRow& sample);
  [[nodiscard]] std::uint64_t count() const;

 private:
  struct Stay {
    std::uint64_t begin_ns = UINT64_MAX, end_ns = 0;  // first and last sample
    void add(std::uint64_t time_ns);
  };
  struct Line {
    ThreadId first;
    bool used = false, stored = false;
    Stay of_first, of_others;
  };
  [[nodiscard]] std::uint64_t key(ThreadId thread, std::uint64_t address) const;

  std::span<const profile::WatchRow> watches_;
  std::span<const profile::ThreadRow> threads_;
  SampledCode& code_;
  std::unordered_map<std::uint64_t, Line> lines_;  // watched lines
};

/// So many watches without a trap cannot be chance.
inline constexpr std::uint64_t enough_telling_watches = 200;

/// Judges the watchpoints of a recording. `fruitless`: the number of telling watches if the recording has no trap, else
/// 0.
[[nodiscard]] WatchSight watch_sight(const profile::Session& session, std::span<const profile::MessageRow> messages,
                                     std::uint64_t fruitless);

/// A sentence to begin a report with, or to add to its findings; empty: watchpoints could show everything.
[[nodiscard]] std::string blindness_in_words(const WatchSight& sight);

}  // namespace crosstalk::attribution
