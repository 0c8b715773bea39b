// SPDX-License-Identifier: Apache-2.0
// Judges the self-test of watchpoints (watchpoint_trial.h). Pure.
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "collectors/facilities/watchpoint_trial.h"

namespace crosstalk::collectors {

namespace {

using Stage = TrialFindings::Stage;
using profile::TrialVerdict;

constexpr std::uint32_t kinds_of_access = 3;  // stores, loads, locked updates

bool is_tested(const TrialFindings& findings) { return findings.stage == Stage::tested; }

std::string stage_in_words(Stage stage) {
  switch (stage) {
    case Stage::begun:
    case Stage::own_accesses:
      return "while a thread accessed a word that it watched";
    case Stage::other_thread:
      return "while a thread accessed a word that another one watched";
    case Stage::signals:
      return "while accesses were told by a signal";
    case Stage::tested:
      break;
  }
  return "at its end";
}

/// Why the test has no answer; empty: it has one.
std::string why_untestable(const TrialFindings& findings, const TrialEnd& end) {
  if (end.fork_error != 0) {
    return std::string("no process could be made for the test: ") + std::strerror(end.fork_error);
  }
  if (!is_tested(findings)) {
    return end.too_late ? "the test did not end " + stage_in_words(findings.stage)
           : end.signal != 0
               ? "the test was killed by signal " + std::to_string(end.signal) + " " + stage_in_words(findings.stage)
               : "the test ended too early, " + stage_in_words(findings.stage);
  }
  if (findings.open_error == 0 && findings.thread_error != 0) {
    return std::string("no thread could be made for the test: ") + std::strerror(findings.thread_error);
  }
  return findings.false_reports == 0
             ? ""
             : std::to_string(findings.false_reports) + " accesses were reported that a watchpoint was not set for";
}

bool is_silent(const TriedAccesses& tried) { return tried.made == 0 || tried.reported < tried.made; }

/// True if accesses are missing that should have been reported: at least one, and all but the kinds that are silent
/// anyway.
bool misses_more(const TriedAccesses& tried, std::uint32_t silent_kinds) {
  const std::uint32_t expected = tried.made / kinds_of_access * (kinds_of_access - silent_kinds);
  return tried.reported == 0 || tried.reported < expected;
}

std::uint32_t silent_of(const TrialFindings& f) {
  std::uint32_t silent = 0;
  std::uint32_t silent_kinds = 0;
  for (const auto& [tried, access] : {std::pair(f.store, profile::trial_store), std::pair(f.load, profile::trial_load),
                                      std::pair(f.locked, profile::trial_locked)}) {
    silent |= is_silent(tried) ? std::uint32_t{access} : 0;
    silent_kinds += is_silent(tried) ? 1 : 0;
  }
  silent |= misses_more(f.other_thread, silent_kinds) ? std::uint32_t{profile::trial_other_thread} : 0;
  silent |= misses_more(f.signal, silent_kinds) ? std::uint32_t{profile::trial_sigtrap} : 0;
  return silent;
}

}  // namespace

profile::WatchTrial judge_trial(const TrialFindings& findings, const TrialEnd& end) {
  profile::WatchTrial trial;
  trial.why = why_untestable(findings, end);
  if (!trial.why.empty()) {
    trial.verdict = TrialVerdict::untestable;
    return trial;
  }
  if (findings.open_error != 0) {
    trial.verdict = TrialVerdict::not_opened;
    trial.why = std::string("perf_event_open: ") + std::strerror(findings.open_error);
    return trial;
  }
  trial.silent = silent_of(findings);
  const std::uint32_t reported = findings.store.reported + findings.load.reported + findings.locked.reported +
                                 findings.other_thread.reported + findings.signal.reported;
  if (reported == 0) {
    trial.verdict = TrialVerdict::never;
    trial.why = "watchpoints can be set, but accesses to a watched word are not reported";
  } else if (trial.silent != 0) {
    trial.verdict = TrialVerdict::partly;
    trial.why = "watchpoints do not report all " + profile::accesses_in_words(trial.silent);
    if (findings.signal_error != 0) {
      trial.why += std::string(" (perf_event_open with sigtrap: ") + std::strerror(findings.signal_error) + ")";
    }
  } else {
    trial.verdict = TrialVerdict::fires;
  }
  return trial;
}

BlockedTrap judge_blocked_trap(const TrialFindings& findings, const TrialEnd& end) {
  if (findings.blocked_signal_waits) {
    return BlockedTrap::waits;
  }
  return end.signal == SIGTRAP ? BlockedTrap::kills : BlockedTrap::unknown;
}

}  // namespace crosstalk::collectors
