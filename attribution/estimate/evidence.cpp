// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/evidence.h"

#include <algorithm>
#include <map>

namespace crosstalk::attribution {
namespace {

/// Durations of watches on lines without known users: mostly brief, a random part of them longer.
struct Durations {
  std::uint64_t brief_ns = UINT64_MAX;               // horizon of brief watches
  std::uint64_t lasting_ns = 0;                      // how long those last that see nothing, in the middle
  std::map<std::uint32_t, std::uint64_t> of_thread;  // the same, of those that a thread has opened, if they are many
  double long_weight = 1;

  [[nodiscard]] std::uint64_t lasting_of(std::uint32_t thread) const {
    const auto own = of_thread.find(thread);
    return own != of_thread.end() ? own->second : lasting_ns;
  }
};

std::uint64_t middle_of(std::vector<std::uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Fills in the typical duration of brief watches without an event. They end by a CPU-time clock of the thread that
/// opened them, or with its next sample, some time after the sample; their recorded ends give that time. Threads that
/// switch context often have no such clock, so each thread is measured by itself.
void fill_lasting(Durations& result, std::span<const profile::WatchRow> watches,
                  std::span<const OwnershipTimeline> timelines) {
  constexpr std::size_t many = 16;
  std::vector<std::uint64_t> lasted;
  std::map<std::uint32_t, std::vector<std::uint64_t>> of_thread;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    const bool saw_nobody = std::all_of(timelines[i].accesses.begin(), timelines[i].accesses.end(),
                                        [&](const AccessPoint& point) { return point.thread == watch.thread; });
    if (!watch.suspected && watch.horizon_ns == result.brief_ns && watch.close == profile::CloseReason::horizon &&
        saw_nobody && watch.close_ns > watch.time_ns) {
      lasted.push_back(watch.close_ns - watch.time_ns);
      of_thread[watch.thread.value].push_back(watch.close_ns - watch.time_ns);
    }
  }
  result.lasting_ns = lasted.empty() ? result.brief_ns : std::max(middle_of(lasted), result.brief_ns);
  for (auto& [thread, own] : of_thread) {
    if (own.size() >= many) {
      result.of_thread[thread] = std::max(middle_of(own), result.brief_ns);
    }
  }
}

/// The time until which a brief watch would have seen the accesses of `watch`. After another thread takes the line, it
/// continues for a while, and ends with the first trap after that.
std::uint64_t brief_until(const profile::WatchRow& watch, std::span<const AccessPoint> accesses,
                          std::uint64_t lasting_ns) {
  std::uint64_t until = watch.time_ns + lasting_ns;
  bool taken = false;
  for (const AccessPoint& point : accesses) {
    if (point.time_ns > until) {
      return taken ? point.time_ns : until;
    }
    if (!taken && point.thread != watch.thread) {
      taken = true;
      until = std::max(until, point.time_ns + profile::verdict_ns);
    }
  }
  return until;
}

Durations durations_of(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines) {
  Durations result;
  double all = 0;
  double longer = 0;
  for (const profile::WatchRow& watch : watches) {
    if (!watch.suspected) {
      result.brief_ns = std::min(result.brief_ns, watch.horizon_ns);
    }
  }
  for (const profile::WatchRow& watch : watches) {
    all += watch.suspected ? 0 : 1;
    longer += !watch.suspected && watch.horizon_ns > result.brief_ns ? 1 : 0;
  }
  result.long_weight = longer > 0 ? all / longer : 1;
  fill_lasting(result, watches, timelines);
  return result;
}

/// The users of each line that was watched without all threads armed.
class LineUsers {
 public:
  LineUsers(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines) {
    for (const profile::WatchRow& watch : watches) {
      if (!arming_of(watch).complete()) {
        lines_[watch.line];
      }
    }
    for (std::size_t i = 0; !lines_.empty() && i < watches.size(); ++i) {
      const auto line = lines_.find(watches[i].line);
      if (line != lines_.end()) {
        for (const AccessPoint& point : timelines[i].accesses) {
          line->second[point.thread.value] |= stores(point.kind);
        }
      }
    }
  }

  struct Counts {
    std::uint32_t storers = 0, visitors = 0;
  };
  [[nodiscard]] Counts others(const profile::WatchRow& watch) const {
    Counts counts;
    if (const auto line = lines_.find(watch.line); line != lines_.end()) {
      for (const auto& [thread, stored] : line->second) {
        counts.storers += thread != watch.thread.value && stored ? 1 : 0;
        counts.visitors += thread != watch.thread.value ? 1 : 0;
      }
    }
    return counts;
  }

 private:
  std::map<std::uint64_t, std::map<std::uint32_t, bool>> lines_;  // by address and thread: has it stored?
};

void fill_armed(Evidence& seen, const LineUsers& users) {
  const profile::WatchRow& watch = *seen.watch;
  seen.arming = arming_of(watch);
  if (!seen.arming.complete()) {
    const LineUsers::Counts counts = users.others(watch);
    seen.storers = std::max(counts.storers, 1U);
    seen.visitors = std::max(counts.visitors, 1U);
  }
}

}  // namespace

struct WatchEvidence::Common {
  Durations durations;
  LineUsers users;
};

WatchEvidence::WatchEvidence(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines,
                             const Strata& strata)
    : watches_(watches),
      timelines_(timelines),
      strata_(strata),
      common_(new Common{durations_of(watches, timelines), LineUsers(watches, timelines)}) {}

WatchEvidence::~WatchEvidence() = default;

Evidence WatchEvidence::at(std::size_t index) const {
  const profile::WatchRow& watch = watches_[index];
  const OwnershipTimeline& timeline = timelines_[index];
  const Durations& durations = common_->durations;
  Evidence seen;
  seen.thread = watch.thread;
  seen.weight = static_cast<double>(watch.sample_weight().value);
  seen.stratum = strata_.of_watch(index);
  seen.communications = timeline.communications;
  seen.accesses = timeline.accesses;
  seen.watch = &watch;
  seen.sampled = watch.sample_access;
  seen.interrupted = timeline.interrupted;
  seen.unit = watch.sample_weight().unit;
  fill_armed(seen, common_->users);
  seen.brief = watch.horizon_ns <= durations.brief_ns;
  if (!seen.brief) {
    seen.brief_until_ns = brief_until(watch, timeline.accesses, durations.lasting_of(watch.thread.value));
    seen.long_weight = watch.suspected ? 1 : durations.long_weight;
  }
  return seen;
}

std::size_t WatchEvidence::communications() const {
  std::size_t all = 0;
  for (const OwnershipTimeline& timeline : timelines_) {
    all += timeline.communications.size();
  }
  return all;
}

Expansion expansion_of(const Strata& strata) { return {strata.all(), strata.threads(), std::nullopt}; }

}  // namespace crosstalk::attribution
