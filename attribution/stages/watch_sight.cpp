// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/watch_sight.h"

#include <algorithm>

#include "attribution/model/sentences.h"

namespace crosstalk::attribution {
namespace {

using profile::TrialVerdict;

WatchSight blind(std::string because, std::string remedy) {
  return {WatchSight::Sees::nothing, std::move(because), {}, std::move(remedy), false};
}

/// Judges by the recorder's self-test.
WatchSight sight_of(const profile::Session& session) {
  const profile::WatchTrial& trial = session.watch_trial;
  if (profile::are_lines_probed(session)) {
    return {WatchSight::Sees::part,
            "it probed lines (read them twice while a thread stood still) instead of watching them, as " +
                session.method_choice,
            "stores of an unchanged value, and communication of threads that ran at different times", trial.remedy,
            false};
  }
  if (session.config.method == profile::Method::none && !session.method_choice.empty()) {
    return blind(session.method_choice, trial.remedy);
  }
  if (!profile::is_worth_arming(trial)) {
    return blind(trial.why, trial.remedy);
  }
  if (session.config.watchpoints_allowed == 0) {  // signals had to tell, and did not
    return blind(trial.why, "record with --observer");
  }
  const std::uint32_t silent = trial.verdict == TrialVerdict::partly ? trial.silent & ~profile::trial_sigtrap : 0;
  return silent == 0
             ? WatchSight{}
             : WatchSight{WatchSight::Sees::part, trial.why, profile::accesses_in_words(silent), trial.remedy, false};
}

/// Judges by the warnings of a recorder without a self-test.
WatchSight sight_of(std::span<const profile::MessageRow> messages) {
  const auto found = std::find_if(messages.begin(), messages.end(), [](const profile::MessageRow& message) {
    return message.code == "watchpoints_unavailable" || message.code == "perf_forbidden";
  });
  return found == messages.end() ? WatchSight{} : blind(found->text, "");
}

}  // namespace

void TellingWatches::Stay::add(std::uint64_t time_ns) {
  begin_ns = std::min(begin_ns, time_ns);
  end_ns = std::max(end_ns, time_ns);
}

TellingWatches::TellingWatches(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
                               SampledCode& code)
    : watches_(watches), threads_(threads), code_(code) {
  for (const profile::WatchRow& watch : watches_) {
    lines_.try_emplace(key(watch.thread, watch.line));
  }
}

std::uint64_t TellingWatches::key(ThreadId thread, std::uint64_t address) const {
  constexpr unsigned line_bits = 6;
  constexpr unsigned process_at = 44;  // a user's line numbers have 41 bits
  const std::uint64_t process = thread.value < threads_.size() ? threads_[thread.value].process.value : 0;
  return (address >> line_bits) ^ (process << process_at);
}

void TellingWatches::add(const profile::SampleRow& sample) {
  if (lines_.empty() || sample.address == 0) {
    return;
  }
  const auto found = lines_.find(key(sample.thread, sample.address));
  if (found == lines_.end()) {
    return;
  }
  Line& line = found->second;
  if (!line.used) {
    line.used = true;
    line.first = sample.thread;
  }
  (sample.thread == line.first ? line.of_first : line.of_others).add(sample.time_ns);
  line.stored = line.stored || code_.stores(sample);
}

std::uint64_t TellingWatches::count() const {
  std::uint64_t telling = 0;
  for (const profile::WatchRow& watch : watches_) {
    const Line& line = lines_.at(key(watch.thread, watch.line));
    const std::uint64_t begin_ns = std::max(line.of_first.begin_ns, line.of_others.begin_ns);
    const std::uint64_t end_ns = std::min(line.of_first.end_ns, line.of_others.end_ns);
    const bool shared_then = line.stored && begin_ns <= watch.time_ns && watch.time_ns <= end_ns;
    telling += shared_then && watch.armed > 0 ? 1 : 0;
  }
  return telling;
}

WatchSight watch_sight(const profile::Session& session, std::span<const profile::MessageRow> messages,
                       std::uint64_t fruitless) {
  if (profile::is_imported(session)) {
    return {};
  }
  WatchSight sight = session.watch_trial.verdict == TrialVerdict::unknown ? sight_of(messages) : sight_of(session);
  const bool watched = !profile::are_lines_probed(session);
  if (watched && sight.sees != WatchSight::Sees::nothing && fruitless >= enough_telling_watches) {
    sight = blind("several threads used " + count_of(fruitless, "line", "lines") +
                      " while watchpoints were on them, and at least one stored, but no access was reported: "
                      "watchpoints do not fire here, or stopped firing",
                  "record again; crosstalk doctor tries whether they fire");
    sight.found_late = true;
  }
  return sight;
}

std::string blindness_in_words(const WatchSight& sight) {
  const std::string remedy = sight.remedy.empty() ? "" : " To see it: " + sight.remedy + ".";
  switch (sight.sees) {
    case WatchSight::Sees::nothing:
      return "Crosstalk could not watch memory here, so nothing can be said about communication between threads: " +
             sight.because + "." + remedy;
    case WatchSight::Sees::part:
      return "Crosstalk may miss " + sight.unseen + ": " + sight.because + "." + remedy;
    case WatchSight::Sees::everything:
      break;
  }
  return {};
}

}  // namespace crosstalk::attribution
