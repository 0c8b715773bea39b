// SPDX-License-Identifier: Apache-2.0
// Explains a recording with few or no samples, with a remedy, for the recorder's last line and for the report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

struct FewSamplesFacts {
  double elapsed_s = 0;
  std::optional<double> cpu_s;  // of all that was recorded; none: not known
  std::uint64_t period_ns = 0;  // between samples
  std::size_t threads = 1;
  bool launched = true;  // a command, not a process that was attached to
  std::span<const profile::ProcessRow> processes;
  std::string left_alone;  // left_alone_because()
};

/// The reason why the collector left the program, in the words of its message; empty if it did not. With few samples in
/// the recording (`few`) an unobserved program counts, too: it is probably the intended one.
[[nodiscard]] std::string left_alone_because(std::span<const profile::MessageRow> messages, bool few);
/// Adds the remedy to a warning about an unobserved program.
void add_remedy(Warning& warning, std::span<const profile::ProcessRow> processes);
/// "record it from outside: crosstalk record --observer", in words that follow "; ".
[[nodiscard]] std::string from_outside_instead(std::span<const profile::ProcessRow> processes);

[[nodiscard]] FewSamplesFacts few_samples_facts(const Analysis& analysis);
/// A clause with its remedy, without a full stop.
[[nodiscard]] std::string why_few_samples(const FewSamplesFacts& facts);

}  // namespace crosstalk::attribution
