// SPDX-License-Identifier: Apache-2.0
// Threads that live for some milliseconds, or a few sampling periods. Whether one of them is sampled is a matter of
// chance, and then its samples may stand for more time than it had itself: for that of the others of its kind. So what
// is said of one is compared with the time of all.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "attribution/timeline/sample_digest.h"
#include "profile/thread_time.h"

namespace crosstalk::attribution {

using profile::is_brief;

/// Seconds of CPU time that no sample stands for, our own handlers' aside.
[[nodiscard]] double uncovered_s(std::span<const profile::ThreadRow> threads, std::span<const ThreadTotal> totals);

/// How many threads had no sample, what they began in, where threads are made, and whether samples of others stand for
/// their time; nothing where they had hardly any.
[[nodiscard]] std::optional<std::string> unsampled_in_words(std::span<const profile::ThreadRow> threads,
                                                            std::span<const ThreadTotal> totals,
                                                            std::span<const std::string> made_at = {},
                                                            std::span<const std::string> began_in = {});

}  // namespace crosstalk::attribution
