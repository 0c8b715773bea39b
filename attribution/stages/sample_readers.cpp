// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/sample_readers.h"

#include <algorithm>
#include <vector>

namespace crosstalk::attribution {
namespace {

/// True if watchpoints could show everything, by the recorder's self-test.
bool could_watch(const profile::Session& session) {
  return watch_sight(session, {}, 0).sees == WatchSight::Sees::everything;
}

}  // namespace

Result<std::optional<profile::EventId>> event_of_shares(const profile::ProfileReader& profile) {
  const std::vector<profile::EventRow>& events = profile.events();
  const bool timed = std::any_of(events.begin(), events.end(), [](const profile::EventRow& event) {
    return event.unit == profile::WeightUnit::ns || event.unit == profile::WeightUnit::cycles;
  });
  std::optional<profile::EventId> first;
  if (timed || events.empty() || !profile::is_imported(profile.session())) {
    return first;
  }
  const auto look = [&](const profile::SampleRow& sample) {
    if (sample.event.value != 0 && (!first || sample.event.value < first->value)) {
      first = sample.event;
    }
  };
  if (auto read = profile.for_each_sample(look, profile::SampleParts::accesses); !read) {
    return tl::unexpected<Error>(read.error());
  }
  return first;
}

SampleReaders::SampleReaders(const profile::ProfileReader& profile, const ProgramView& view,
                             const AddressSpaces& spaces, const SharedIndex& shared,
                             std::span<const OwnershipTimeline> timelines, const LineSet& lines, Strata& strata,
                             std::span<const profile::WatchRow> trapless)
    : progress(view),
      called(view),
      positions(view),
      consumers(timelines),
      stores(timelines, profile.threads()),
      digest(profile.threads(), spaces, lines, strata),
      reachable(profile.threads(), !profile.shared_mappings().empty()),
      instructions(view),
      code(view),
      probed(profile.watches(), profile.threads(), shared, code),
      telling(trapless, profile.threads(), code),
      callers(view) {
  if (!could_watch(profile.session())) {
    uses.emplace(profile.threads(), code);
  }
}

void SampleReaders::add(const profile::SampleRow& sample, bool by_instruction, StackTable& stacks) {
  if (by_instruction) {
    instructions.add(sample);
  }
  digest.add(sample);
  processors.add(sample);
  reachable.add(sample);
  progress->add(sample);
  called->add(sample, stacks);
  positions->add(sample);
  consumers.add(sample);
  stores.add(sample);
  memory.add(sample);
  probed.add(sample);
  telling.add(sample);
  if (uses) {
    uses->add(sample);
  }
  callers.add(sample);
  if (this->stacks) {
    this->stacks->add(sample, digest.weight_of(sample));
  }
}

}  // namespace crosstalk::attribution
