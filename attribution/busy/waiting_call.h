// SPDX-License-Identifier: Apache-2.0
// The call by which a thread waits for others, as its stack tells it while it is asleep.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attribution/program/program_view.h"
#include "profile/wait_table.h"

namespace crosstalk::attribution {

struct WaitingCall {
  profile::WaitKind kind = profile::WaitKind::futex;  // if no library's function tells another one
  symbolizer::Frame frame;           // the program's own code that waits; if there is none, the innermost function
  std::string through;               // the library's function that it calls; empty: it enters the kernel itself
  std::optional<ModulePlace> place;  // of `frame`; none: in no known module

  /// True if the thread waits for the end of another one (pthread_join, std::thread::join).
  [[nodiscard]] bool for_end() const {
    return kind == profile::WaitKind::futex && through.find("join") != std::string::npos;
  }
};

/// `stack`: addresses, innermost first.
[[nodiscard]] WaitingCall waiting_call(const ProgramView& view, Moment moment, std::span<const std::uint64_t> stack);

}  // namespace crosstalk::attribution
