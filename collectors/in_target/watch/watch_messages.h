// SPDX-License-Identifier: Apache-2.0
// Reports why some threads, or all, are not watched, each reason once. Signal-safe.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Opening watch events has failed with `error` (-errno) after `opened` of them.
void watch_events_missing(long error, std::uint32_t opened);
/// The target has so few descriptors left that no watch is begun.
void descriptors_scarce();
/// The target has closed descriptors of ours.
void descriptors_closed();
/// Reports that a thread's watchpoints fire again and again although none is set.
void too_many_strays();

}  // namespace crosstalk::in_target
