// SPDX-License-Identifier: Apache-2.0
// Waits for other threads, measured (profile/wait_table.h) or sampled from outside (SampledWait in profile/records.h),
// by thread, place and loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"
#include "profile/model.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::attribution {

struct WaitRows {
  std::span<const profile::ThreadWaitRow> measured;
  std::span<const profile::SampledWaitRow> sampled;
};

/// A futex that threads were asleep on.
struct AwaitedFutex {
  ThreadId thread;  // one of them
  std::uint64_t time_ns = 0, address = 0;
  double waited_s = 0;
};

/// Waits by kind and place in the source, the longest first; the sums of threads (in `threads`, by index) with measured
/// or sampled waits; and, in `loops`, the waits in calls from them and from their inner loops. `end_ns`: of the
/// session. Leaves out rows of unknown threads.
struct MeasuredWaits {
  std::vector<WaitPlace> places;
  std::vector<std::optional<Waited>> threads;
  std::vector<std::vector<AwaitedFutex>> futexes;  // by place
};
[[nodiscard]] MeasuredWaits measured_waits(const WaitRows& rows, const ProgramView& view, const StackTable& stacks,
                                           std::uint64_t end_ns, std::vector<LoopRow>& loops);

/// Says how many threads that were watched from outside no look stands for. Nothing if that matters little.
[[nodiscard]] std::optional<std::string> not_looked_at_in_words(const MeasuredWaits& waits, const ProgramView& view,
                                                                std::span<const profile::ProcessRow> processes,
                                                                const profile::Session& session);

/// Fills in the objects of places from the addresses of futexes.
void name_awaited(MeasuredWaits& waits, DataObjects& objects);

/// The names in JSON: "mutex", "rwlock", ...
[[nodiscard]] const char* wait_kind_name(profile::WaitKind kind);

}  // namespace crosstalk::attribution
