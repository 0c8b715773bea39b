// SPDX-License-Identifier: Apache-2.0
// Turns probes of lines (collectors/in_target/probe/) into communications: if bytes changed while a thread stood still,
// another thread stored to them.
//
// A probe shows the stored bytes, not the storing thread: candidates are threads that are known by their samples to
// store there. A probe without a change does not prove that nothing is stored: its two looks may have been too close.
// The outcomes by gap tell how often that was.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "attribution/timeline/sampled_code.h"
#include "attribution/timeline/seen.h"
#include "attribution/timeline/shared_index.h"
#include "attribution/timeline/store_rate.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// True if a probe that took the watch's place may have seen a store. The samples there decide.
[[nodiscard]] bool may_have_seen_store(const profile::WatchRow& watch);

/// Collects from samples which threads use the probed lines, and finds the bytes that others stored to.
class ProbedLines {
 public:
  /// All must outlive this.
  ProbedLines(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
              const SharedIndex& shared, SampledCode& code);
  /// Takes every sample.
  void add(const profile::SampleRow& sample);

  /// The evidence of a thread's use of some bytes of a line, weakest first.
  enum class Evidence : std::uint8_t { loads, is_about_to_store, stores };
  struct Use {
    AccessPoint point;
    Evidence evidence = Evidence::loads;
    double samples = 0;
  };
  /// Bytes that others have stored to: between the looks, or since the last load of a thread that repeats it to see
  /// that.
  [[nodiscard]] LineBytes changed(std::size_t watch) const;
  /// Returns the uses of threads that may have stored to the changed bytes while the thread of `watch` stood still:
  /// those sampled storing there; if there are none, those sampled where such a store follows soon, such as threads
  /// that wait for their turn. If there are none of these either and the process has only one other busy thread, which
  /// uses the line, returns that thread's uses. If nobody else was sampled there, since arrays of structures repeat,
  /// the only thread that is known to store to the same bytes of other lines on the page. If nobody is known, the only
  /// other busy thread that can reach the line, without an instruction. Else returns none. Threads of other processes
  /// count where these share the memory.
  [[nodiscard]] std::vector<Use> who_stored(std::size_t watch) const;

 private:
  /// Notes a use of `width` bytes at `place` if their line was probed or, if it stores, if another line on its page
  /// was.
  void note(AccessPoint point, MemoryPlace place, std::uint8_t width, Evidence evidence);
  static void note(std::vector<Use>& uses, const AccessPoint& point, Evidence evidence);
  [[nodiscard]] std::vector<Use> who_stores_nearby(std::size_t watch) const;
  [[nodiscard]] std::optional<MemoryPlace> place(ThreadId thread, std::uint64_t time_ns, std::uint64_t address) const;

  void compare_value(const profile::SampleRow& sample);
  /// A thread that can reach a line, when samples show no second busy one beside the thread that was probed there: of
  /// those of the process or, of shared memory, of all that have been sampled in it.
  struct OnlyOther {
    ThreadId thread;
    bool busy = false;
  };
  [[nodiscard]] std::optional<OnlyOther> only_other(MemoryPlace line, ThreadId self) const;

  std::span<const profile::WatchRow> watches_;
  std::span<const profile::ThreadRow> threads_;
  const SharedIndex& shared_;
  SampledCode& code_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> probes_;  // by thread and time
  std::map<std::uint32_t, std::uint64_t> samples_;                           // by thread
  std::set<std::pair<std::uint32_t, std::uint32_t>> sharers_;                // of shared memory, and threads
  std::vector<std::optional<MemoryPlace>> places_;  // of lines, by watch; none: of an unknown thread
  std::vector<LineBytes> changed_;                  // by watch
  std::map<MemoryPlace, std::vector<Use>> lines_;
  std::map<MemoryPlace, std::vector<Use>> pages_;  // stores
};

/// The number of probes that saw a store by an unknown thread.
[[nodiscard]] std::uint64_t unknown_writers(std::span<const profile::WatchRow> watches,
                                            std::span<const OwnershipTimeline> timelines);

/// Fills the timelines of probes that saw a store: communications from the possible producers to the sampled thread,
/// divided in proportion to their samples if there are several; without a known producer, an interrupted one. `watches`
/// and `timelines` go together. A communication's weight includes the missed ones, estimated from the rate of
/// stores to its line; returns these rates.
ProbeRates tell_probes(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                       const ProbedLines& lines);

}  // namespace crosstalk::attribution
