// SPDX-License-Identifier: Apache-2.0
// Threads that live for some milliseconds, or a few sampling periods. Chance decides whether one of them is sampled,
// and its samples may then represent more time than it had: that of the others of its kind. So statements about one of
// them are compared with the time of all.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "attribution/samples/sample_digest.h"
#include "profile/thread_time.h"

namespace crosstalk::attribution {

using profile::is_brief;

/// Seconds of CPU time that no sample represents, without our own handlers.
[[nodiscard]] double uncovered_s(std::span<const profile::ThreadRow> threads, std::span<const ThreadTotal> totals);

/// True if one of the threads without samples was made by its program: it is not the one that a process begins with.
[[nodiscard]] bool has_unsampled_made_thread(std::span<const profile::ProcessRow> processes,
                                             std::span<const profile::ThreadRow> threads);

/// Describes the threads without samples: their number, start routines and creation places, and if samples of others
/// represent their time. Nothing if they had hardly any time.
[[nodiscard]] std::optional<std::string> unsampled_in_words(std::span<const profile::ThreadRow> threads,
                                                            std::span<const ThreadTotal> totals,
                                                            std::span<const std::string> made_at = {},
                                                            std::span<const std::string> began_in = {});

}  // namespace crosstalk::attribution
