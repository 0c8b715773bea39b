// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/trap_reading.h"

#include <algorithm>
#include <span>
#include <utility>

#include "attribution/objects/near_callers.h"
#include "attribution/samples/arming.h"
#include "attribution/timeline/probe_effect.h"
#include "attribution/timeline/probe_timeline.h"

namespace crosstalk::attribution {
namespace {

/// True if another thread than the sampled one accessed the line.
bool visited(const profile::WatchRow& watch, const OwnershipTimeline& timeline) {
  return std::any_of(timeline.accesses.begin(), timeline.accesses.end(),
                     [&](const AccessPoint& point) { return point.thread != watch.thread; });
}

/// Reads the traps once, and keeps only the parts needed later: traps are most of the profile of a program that mainly
/// communicates.
Result<TrapsRead> timelines_of(const profile::ProfileReader& profile, const ProgramView& view, StackTable& stacks) {
  const AccessLookup lookup = [&](Moment moment, std::uint64_t ip) { return view.access_before(moment, ip); };
  NearCallers near(view, stacks);
  const CallersLookup callers = [&](const profile::TrapRow& trap) { return near.of(trap); };
  const std::vector<profile::WatchRow>& watches = profile.watches();
  const ArmingFailures failures(watches);
  TrapsRead result;
  const auto restart = [&] {
    result.timelines.assign(watches.size(), {});
    result.traps = {};
  };
  restart();
  const auto take = [&](std::size_t watch, std::span<const profile::TrapRow> traps) {
    OwnershipTimeline timeline = ownership_timeline(watches[watch], traps, view.threads(), lookup, callers);
    if (failures.misses_threads(watches[watch])) {  // successive accesses that it saw may not have been successive
      timeline.communications.clear();
      timeline.interrupted.clear();
      timeline.invalidations.clear();
    }
    prefer_watched_stores(timeline.communications);
    timeline.communications.shrink_to_fit();
    timeline.invalidations.shrink_to_fit();
    if (!visited(watches[watch], timeline)) {
      std::vector<AccessPoint>().swap(timeline.accesses);
    }
    result.timelines[watch] = std::move(timeline);
    result.traps.add(static_cast<std::uint32_t>(watch), traps);
  };
  if (auto read = profile.for_each_trapped_watch(take, restart); !read) {
    return tl::unexpected<Error>(read.error());
  }
  result.traps.shrink();
  return result;
}

/// Collects the lines with communication, the stacks of both sides, and those of the blocks there.
void find_interesting(std::span<const OwnershipTimeline> timelines, const ProgramView& view, const BlockIndex& blocks,
                      LineSet& lines, StackTable& stacks) {
  for (const OwnershipTimeline& timeline : timelines) {
    for (const SeenCommunication& seen : timeline.communications) {
      for (const AccessPoint& point : {seen.producer, seen.consumer}) {
        const Moment moment = view.moment(point.thread, point.time_ns);
        lines.add(moment.process, point.line);
        stacks.want(point.stack, point.thread, moment);
        if (const auto* block = blocks.find(moment, point.line + point.bytes.first())) {
          stacks.want(block->stack, moment);
        }
      }
    }
  }
}

/// The same for probes that may have seen a store; the samples tell who stored.
void find_probed(std::span<const profile::WatchRow> watches, const ProgramView& view, const BlockIndex& blocks,
                 LineSet& lines, StackTable& stacks) {
  for (const profile::WatchRow& watch : watches) {
    if (!may_have_seen_store(watch)) {
      continue;
    }
    const Moment moment = view.moment(watch.thread, watch.time_ns);
    lines.add(moment.process, watch.line);
    stacks.want(watch.sample_stack, watch.thread, moment);
    if (const auto* block = blocks.find(moment, watch.sample_address)) {
      stacks.want(block->stack, moment);
    }
  }
}

/// Requests the stacks of threads that created threads: data that they share lie there.
void want_creations(const profile::ProfileReader& profile, const ProgramView& view, StackTable& stacks) {
  constexpr std::size_t most = 2000;  // of a program that makes threads all the time, some
  const auto& creations = profile.thread_creations();
  const std::size_t step = creations.size() / most + 1;
  for (std::size_t i = 0; i < creations.size(); i += step) {
    const profile::ThreadCreationRow& creation = creations[i];
    stacks.want(creation.stack, creation.thread, view.moment(creation.thread, creation.time_ns));
  }
}

}  // namespace

Result<TrapsRead> read_traps(const profile::ProfileReader& profile, const ProgramView& view, const BlockIndex& blocks,
                             LineSet& lines, StackTable& stacks) {
  Result<TrapsRead> traps = timelines_of(profile, view, stacks);
  if (traps) {
    find_interesting(traps->timelines, view, blocks, lines, stacks);
    find_probed(profile.watches(), view, blocks, lines, stacks);
    want_creations(profile, view, stacks);
    for (const profile::SampledWaitRow& wait : profile.sampled_waits()) {
      stacks.want(wait.stack, view.moment(wait.thread, wait.time_ns));
    }
  }
  return traps;
}

}  // namespace crosstalk::attribution
