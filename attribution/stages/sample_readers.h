// SPDX-License-Identifier: Apache-2.0
// The second stage of an analysis: the samples are streamed once, past all that need them.
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
#include "attribution/stages/processor_times.h"
#include "attribution/stages/watch_sight.h"
#include "attribution/timeline/address_space.h"
#include "attribution/timeline/ownership_timeline.h"
#include "attribution/timeline/probe_timeline.h"
#include "attribution/timeline/third_parties.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

/// Returns the event that shares refer to if no sample represents time: the first one with samples. nullopt: samples
/// represent time. Errors are the reader's.
[[nodiscard]] Result<std::optional<profile::EventId>> event_of_shares(const profile::ProfileReader& profile);

/// All consumers of the sample stream; each sample passes them once.
struct SampleReaders {
  SampleReaders(const profile::ProfileReader& profile, const ProgramView& view, const AddressSpaces& spaces,
                std::span<const OwnershipTimeline> timelines, const LineSet& lines, Strata& strata,
                std::span<const profile::WatchRow> trapless);

  /// Passes a sample to all. `by_instruction`: also to `instructions`.
  void add(const profile::SampleRow& sample, bool by_instruction, StackTable& stacks);

  std::optional<LoopProgress> progress;  // a step a sample: gone when the loops have their rates
  std::optional<CalledLoops> called;
  std::optional<StreamSamples> positions;
  ConsumerSamples consumers;
  LineStores stores;
  SampleDigest digest;
  ProcessorTimes processors;
  InstructionFigures instructions;
  CodeAtSamples code;
  ProbedLines probed;
  TellingWatches telling;
  std::optional<LineUses> uses;  // only if watches cannot tell
  MemorySamples memory;
  Callers callers;
};

}  // namespace crosstalk::attribution
