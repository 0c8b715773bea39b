// SPDX-License-Identifier: Apache-2.0
#include "attribution/few_samples.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "attribution/model/sentences.h"

namespace crosstalk::attribution {
namespace {

/// Messages of a collector that left a program, and of one that never began.
constexpr std::array<std::string_view, 4> left_codes = {"seccomp", "traced", "user_dispatch", "sigtrap_used"};
constexpr std::array<std::string_view, 3> unobserved_codes = {"not_observed", "program_not_observed",
                                                              "processes_without_memory"};

const profile::MessageRow* first_message(std::span<const profile::MessageRow> messages,
                                         std::span<const std::string_view> codes) {
  const auto found = std::find_if(messages.begin(), messages.end(), [codes](const profile::MessageRow& message) {
    return std::find(codes.begin(), codes.end(), message.code) != codes.end();
  });
  return found == messages.end() ? nullptr : &*found;
}

bool all_observed(std::span<const profile::ProcessRow> processes, profile::Observation how) {
  return !processes.empty() && std::all_of(processes.begin(), processes.end(),
                                           [how](const auto& process) { return process.observation == how; });
}

}  // namespace

std::string left_alone_because(std::span<const profile::MessageRow> messages, bool few) {
  const profile::MessageRow* found = first_message(messages, left_codes);
  found = found == nullptr && few ? first_message(messages, unobserved_codes) : found;
  return found == nullptr ? std::string() : found->text;
}

void add_remedy(Warning& warning, std::span<const profile::ProcessRow> processes) {
  const bool left = std::find(left_codes.begin(), left_codes.end(), warning.code) != left_codes.end();
  if (left || (warning.code == "not_observed" && warning.message.find(';') == std::string::npos)) {
    warning.message += "; " + from_outside_instead(processes);
  }
}

std::string from_outside_instead(std::span<const profile::ProcessRow> processes) {
  return all_observed(processes, profile::Observation::injected)
             ? "to see it, attach from outside: crosstalk record -p PID, without --inject"
             : "to see it, record it from outside: crosstalk record --observer";
}

FewSamplesFacts few_samples_facts(const Analysis& analysis) {
  FewSamplesFacts facts;
  facts.elapsed_s = analysis.duration_s;
  facts.cpu_s = cpu_time_known(analysis) ? std::optional(analysis.cpu_s) : std::nullopt;
  facts.period_ns = analysis.session.config.period_ns;
  for (const SamplingSummary::Event& event : analysis.sampling.events) {
    facts.period_ns = event.source == "clock" && event.period != 0 ? event.period : facts.period_ns;
  }
  facts.threads = std::max<std::size_t>(analysis.threads.size(), 1);
  facts.launched = analysis.session.exit_status.has_value();
  facts.processes = analysis.processes;
  facts.left_alone = analysis.left_alone;
  return facts;
}

std::string why_few_samples(const FewSamplesFacts& facts) {
  constexpr double ns_per_s = 1e9;
  constexpr double enough = 20;
  if (!facts.left_alone.empty()) {
    const bool remedied = facts.left_alone.find(';') != std::string::npos;
    return facts.left_alone + (remedied ? "" : "; " + from_outside_instead(facts.processes));
  }
  const double period_s = static_cast<double>(facts.period_ns) / ns_per_s;
  const std::string used =
      facts.cpu_s ? "it used " + seconds_in_words(*facts.cpu_s) + " of CPU time" : "hardly any CPU time was used";
  if (!facts.launched) {
    return used + " in " + seconds_in_words(facts.elapsed_s) +
           "; record while it works, or for longer, or with a shorter --period";
  }
  if (!facts.cpu_s || *facts.cpu_s < enough * period_s * static_cast<double>(facts.threads)) {
    return used + (facts.cpu_s && facts.threads > 1 ? " in " + count_of(facts.threads, "thread", "threads") : "") +
           ", and crosstalk samples every " + seconds_in_words(period_s) +
           " of it. Give the program more work, or sample more often: --period 100us";
  }
  return used + ", and could hardly be sampled; the warnings of crosstalk report say more";
}

}  // namespace crosstalk::attribution
