// SPDX-License-Identifier: Apache-2.0
// Puts the kernel's terms of events ("event=0xcd,umask=0x1,ldlat=3") into the words of a perf_event_attr, at the places
// that the unit's format gives. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crosstalk::collectors {

/// perf_event_attr's config, config1, config2 and config3.
using EventConfig = std::array<std::uint64_t, 4>;

/// A unit's names of the bits of its events: "ldlat" -> "config1:0-15", "event" -> "config:0-7,32-35".
using EventFormat = std::map<std::string, std::string, std::less<>>;

/// Puts `value` into the bits that `place` names. invalid_argument: no such place, or the value does not fit into it.
[[nodiscard]] Result<void> put_term(std::string_view place, std::uint64_t value, EventConfig& config);

/// Returns the value of those bits; 0 if `place` is no place.
[[nodiscard]] std::uint64_t term_value(std::string_view place, const EventConfig& config);

/// A term without a value is 1. Terms named later replace earlier ones. invalid_argument: a term that the format does
/// not know, or no number.
[[nodiscard]] Result<EventConfig> encode_terms(const EventFormat& format, std::string_view terms);

}  // namespace crosstalk::collectors
