// SPDX-License-Identifier: Apache-2.0
#include "profile/watch_trial.h"

#include <array>

namespace crosstalk::profile {
namespace {

struct NamedAccess {
  TrialAccess access;
  const char* name;
  const char* words;
};
constexpr std::array<NamedAccess, 5> named_accesses = {
    {{trial_store, "store", "stores"},
     {trial_load, "load", "loads"},
     {trial_locked, "locked_update", "locked updates"},
     {trial_other_thread, "other_thread", "accesses of other threads"},
     {trial_sigtrap, "sigtrap", "accesses told by a signal"}}};

}  // namespace

std::vector<std::string> names_of_accesses(std::uint32_t accesses) {
  std::vector<std::string> names;
  for (const NamedAccess& each : named_accesses) {
    if ((accesses & each.access) != 0) {
      names.emplace_back(each.name);
    }
  }
  return names;
}

std::string accesses_in_words(std::uint32_t accesses) {
  std::vector<std::string> words;
  for (const NamedAccess& each : named_accesses) {
    if ((accesses & each.access) != 0) {
      words.emplace_back(each.words);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

std::string verdict_name(TrialVerdict verdict) {
  switch (verdict) {
    case TrialVerdict::fires:
      return "fires";
    case TrialVerdict::partly:
      return "partly";
    case TrialVerdict::never:
      return "never";
    case TrialVerdict::not_opened:
      return "not_opened";
    case TrialVerdict::untestable:
      return "untestable";
    case TrialVerdict::unknown:
      break;
  }
  return {};
}

}  // namespace crosstalk::profile
