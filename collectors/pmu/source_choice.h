// SPDX-License-Identifier: Apache-2.0
// Chooses the source that samples a session: the best that the machine has and the kernel lets this user open. Says why
// the better ones are not chosen.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::collectors {

/// The verdict on one source: "pebs: not an Intel processor", "clock: chosen", or, if the machine has the better one,
/// "clock: chosen in place of pebs".
struct SourceVerdict {
  profile::SourceKind source = profile::SourceKind::clock;
  std::string reason;         ///< why not; empty: it is chosen
  bool remediable = false;    ///< the machine has it; it is the kernel that refuses it
  bool is_there = false;      ///< the machine has it, even if it is refused
  bool from_outside = false;  ///< it would sample only from outside of the recorded processes
};

struct ChosenSource {
  profile::SourceKind source = profile::SourceKind::clock;
  std::vector<MemoryEvent> events;      ///< beside the clock; none: the clock alone
  std::vector<SourceVerdict> verdicts;  ///< of all that were looked at, the best first
};

/// Opens the event, or says why the kernel refuses it. Returns the event as it was opened: perhaps less precise than it
/// was asked for.
using EventTrial = std::function<Result<MemoryEvent>(MemoryEvent)>;

/// The first of `steps` whose events can all be opened.
[[nodiscard]] ChosenSource choose_source(std::span<const SourceStep> steps, const EventTrial& trial);

/// Does the same for one source alone, or for named events. unsupported or permission, in one line.
[[nodiscard]] Result<ChosenSource> insist_on(const SourceStep& step, const EventTrial& trial);

/// Before the name of a source that the machine has and that was not taken.
inline constexpr const char* chosen_in_place_of = "chosen in place of ";
/// "pebs: not an Intel processor; clock: chosen", for the profile.
[[nodiscard]] std::string in_words(std::span<const SourceVerdict> verdicts);
/// For the user, which source it is and why not a better one: "samples by a clock: this machine has no precise memory
/// events (no ibs_op: virtual machines have none)". A remediable refusal is told apart from this, so it is only named.
[[nodiscard]] std::string in_a_line(const ChosenSource& chosen);

}  // namespace crosstalk::collectors
