// SPDX-License-Identifier: Apache-2.0
// Limits the stacks that are recorded with samples and traps: so many a second, and a second's worth at once.
#pragma once

#include <cstdint>
#include <optional>

namespace crosstalk::watch_policy {

/// Returns nothing if no stack may be taken at `now_ns`, when earlier ones are paid for until `paid_until_ns`; else the
/// time until which they are paid for with this one. `rate`: stacks a second; 0: none.
constexpr std::optional<std::uint64_t> pay_for_stack(std::uint64_t paid_until_ns, std::uint64_t now_ns,
                                                     std::uint32_t rate) {
  constexpr std::uint64_t burst_ns = 1'000'000'000;
  if (rate == 0) {
    return std::nullopt;
  }
  const std::uint64_t from = now_ns > paid_until_ns + burst_ns ? now_ns - burst_ns : paid_until_ns;
  const std::uint64_t paid = from + burst_ns / rate;
  return paid <= now_ns ? std::optional(paid) : std::nullopt;
}

}  // namespace crosstalk::watch_policy
