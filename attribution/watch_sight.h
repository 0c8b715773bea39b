// SPDX-License-Identifier: Apache-2.0
// Whether watchpoints could show what there was to see. Where they report nothing, that nothing was seen is no evidence
// of anything: the recorder's self-test says so, or, found late, hundreds of watches without a single trap on lines
// that threads did exchange.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/model.h"
#include "attribution/timeline/sampled_code.h"

namespace crosstalk::attribution {

/// Watches that had to trap if watchpoints work: on lines that a thread was sampled at before and after, and another
/// one, too, one of them storing, with a watchpoint armed for another thread.
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
  std::unordered_map<std::uint64_t, Line> lines_;  // that were watched
};

/// That many without a trap are no chance.
inline constexpr std::uint64_t enough_telling_watches = 200;

/// What the watchpoints of a recording could show. `fruitless`: telling watches, of a recording in which nothing
/// trapped; else 0.
[[nodiscard]] WatchSight watch_sight(const profile::Session& session, std::span<const profile::MessageRow> messages,
                                     std::uint64_t fruitless);

/// A sentence to begin a report with, or one beside what was seen; empty: everything could be seen.
[[nodiscard]] std::string blindness_in_words(const WatchSight& sight);

}  // namespace crosstalk::attribution
