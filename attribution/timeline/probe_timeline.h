// SPDX-License-Identifier: Apache-2.0
// Turns probes of lines (collectors/in_target/probe/) into communications: bytes changed while a thread stood still, so
// another thread stored to them.
//
// A probe says what was stored to, and not by whom: those are threads that are known to store there, by their samples.
// Nor does it say that nothing is stored where it saw nothing: its two looks were perhaps too near to each other. How
// often that was, the outcomes tell by their gaps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attribution/timeline/sampled_code.h"
#include "attribution/timeline/seen.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// May a probe that took the watch's place have seen a store? The samples there decide.
[[nodiscard]] bool may_have_seen_store(const profile::WatchRow& watch);

/// How often a line is stored to, by what probes of it have seen. While a partner is active, the chance that it stores
/// within a gap g is 1 - exp(-rate g): the victim stands still and does not compete, so `rate` is no rate of the
/// program's. Whether a partner is active is a matter of the program and of the processors.
struct StoreRate {
  double active = 0;     // the chance that a partner is active, 0..1
  double rate = 0;       // stores a nanosecond of one who is
  double detection = 1;  // of the probes to which a partner was active, the part that saw a store, 0..1
};
struct ProbeOutcome {
  double gap_ns = 0;
  bool changed = false;
};
/// The most likely rate; a detection of 1 where there are too few outcomes to tell.
[[nodiscard]] StoreRate store_rate(std::span<const ProbeOutcome> outcomes);

/// Collects, from samples, which threads use the probed lines, and finds the bytes that others stored to there.
class ProbedLines {
 public:
  /// All must outlive this.
  ProbedLines(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
              SampledCode& code);
  /// To be told of every sample.
  void add(const profile::SampleRow& sample);

  /// How a thread's use of some bytes of a line is known, weakest first.
  enum class Evidence : std::uint8_t { loads, is_about_to_store, stores };
  struct Use {
    AccessPoint point;
    Evidence evidence = Evidence::loads;
    double samples = 0;
  };
  /// Bytes that others have stored to: between the looks, or since the thread's last load, which it repeats to see
  /// that.
  [[nodiscard]] LineBytes changed(std::size_t watch) const;
  /// Returns the uses by threads that may have stored to the bytes `changed` while the thread of `watch` stood still:
  /// those that were sampled storing there; if there are none, those that were sampled where such a store follows
  /// soon, as threads that wait for their turn are. If there are none of these either and the process has only one
  /// other busy thread, which uses the line, returns that thread's uses. Else returns none.
  [[nodiscard]] std::vector<const Use*> who_stored(const profile::WatchRow& watch, LineBytes changed) const;

 private:
  using Line = std::pair<std::uint32_t, std::uint64_t>;  // process and address
  /// Notes a use of the line at `address`, if that was probed.
  void note(std::uint32_t process, AccessPoint point, std::uint64_t address, std::uint8_t width, Evidence evidence);
  [[nodiscard]] std::optional<std::uint32_t> process_of(ThreadId thread) const;

  void compare_value(const profile::SampleRow& sample);
  /// Do only these two threads of the process do anything, as far as samples tell?
  [[nodiscard]] bool are_alone(std::uint32_t process, ThreadId a, ThreadId b) const;

  std::span<const profile::WatchRow> watches_;
  std::span<const profile::ThreadRow> threads_;
  SampledCode& code_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> probes_;  // by thread and time
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> samples_;  // by process and thread
  std::vector<LineBytes> changed_;                                           // by watch
  std::map<Line, std::vector<Use>> lines_;
};

/// Probes that saw a store and name nobody.
[[nodiscard]] std::uint64_t unknown_writers(std::span<const profile::WatchRow> watches,
                                            std::span<const OwnershipTimeline> timelines);

/// Fills the timelines of probes that saw a store: communications from those who may have stored to the sampled
/// thread, in shares as they were sampled where there are several, and, where nobody is known to, an interrupted one.
/// `watches` and `timelines` go together.
void tell_probes(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                 const ProbedLines& lines);

}  // namespace crosstalk::attribution
