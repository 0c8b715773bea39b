// SPDX-License-Identifier: Apache-2.0
// The second stage of an analysis: each sample is read and handed to every reader.
#pragma once

#include <optional>
#include <span>

#include "attribution/busy/stream_samples.h"
#include "attribution/code/function_code.h"
#include "attribution/counts/communication_counts.h"
#include "attribution/loops/called_loops.h"
#include "attribution/loops/callers.h"
#include "attribution/loops/loop_progress.h"
#include "attribution/memory/memory_samples.h"
#include "attribution/objects/code_at_samples.h"
#include "attribution/objects/sampled_uses.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/samples/strata.h"
#include "attribution/stacks/sampled_stacks.h"
#include "attribution/stages/processor_times.h"
#include "attribution/stages/reachable_time.h"
#include "attribution/stages/watch_sight.h"
#include "attribution/timeline/address_space.h"
#include "attribution/timeline/ownership_timeline.h"
#include "attribution/timeline/probe_timeline.h"
#include "attribution/timeline/third_parties.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

/// Returns the event whose weights replace time in an imported profile without an event of time: the first one with
/// samples. nullopt: there is no need of one, or no sample. Reads the samples of such a profile once more. Errors are
/// the reader's.
[[nodiscard]] Result<std::optional<profile::EventId>> event_of_shares(const profile::ProfileReader& profile);

/// All readers of samples.
struct SampleReaders {
  SampleReaders(const profile::ProfileReader& profile, const ProgramView& view, const AddressSpaces& spaces,
                const SharedIndex& shared, std::span<const OwnershipTimeline> timelines, const LineSet& lines,
                Strata& strata, std::span<const profile::WatchRow> trapless);

  /// Hands a sample to those that are there. `by_instruction`: also to `instructions`.
  void add(const profile::SampleRow& sample, bool by_instruction, StackTable& stacks);

  std::optional<LoopProgress> progress;  // one step for each sample: freed when the loops have their rates
  std::optional<CalledLoops> called;
  std::optional<StreamSamples> positions;
  ConsumerSamples consumers;
  LineStores stores;
  SampleDigest digest;
  ProcessorTimes processors;
  ReachableTime reachable;
  InstructionFigures instructions;
  CodeAtSamples code;
  ProbedLines probed;
  TellingWatches telling;
  std::optional<LineUses> uses;  // only if watchpoints may miss accesses
  MemorySamples memory;
  Callers callers;
  std::optional<SampledStacks> stacks;  // only if they are wanted
};

}  // namespace crosstalk::attribution
