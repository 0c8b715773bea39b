// SPDX-License-Identifier: Apache-2.0
// Changes the environment that makes a program observed: our library in LD_PRELOAD, and the arena's name. The program
// does not see them. Once it is observed both are out of `environ`, and they enter the environment of a program that it
// executes, only for that call.
//
// The changed environment of an exec lives on the stack: it may come from a vfork child, which runs on its parent's
// memory.
#pragma once

#include <alloca.h>

#include <cstddef>

namespace crosstalk::in_target {

using Strings = char* const*;

enum class Change { none, add, strip };

/// Returns how the next program's environment must change. `for_child`: it is executed by another process than the
/// observed one.
Change wanted_change(bool for_child);
/// True if remember_environment() found its entries.
bool knows_environment();

/// True if hide_environment() has removed us from `environ`. False for a process that is left alone from its start.
bool environment_hidden();
/// True if it is one of the entries that rewrite_environment() adds.
bool is_own_entry(const char* entry);
/// Removes us from `environ`.
void clean_environ();

/// True if a program that is executed now could open the arena. False in another user namespace, or without /proc.
bool arena_in_reach();

inline constexpr std::size_t entry_limit = 4096;    // an environment with more entries is passed on as it is
inline constexpr std::size_t preload_limit = 8192;  // bytes of LD_PRELOAD, the same

struct EnvironmentSurvey {
  std::size_t entries = 0;
  const char* preload = nullptr;  // the first, which counts
  const char* arena = nullptr;
  std::size_t text_bytes = 0;  // that rewrite_environment() needs
};
EnvironmentSurvey survey_environment(Strings environment);
bool needs_change(Change change, const EnvironmentSurvey& survey);
/// `out` has room for two more entries than `environment`, and the null.
void rewrite_environment(Strings environment, const EnvironmentSurvey& survey, Change change, char** out, char* text);

/// Calls `call` with the environment that the next program is to get.
template <class Call>
int with_environment(Strings environment, Change change, Call call) {
  if (change == Change::none) {
    return call(environment);
  }
  const EnvironmentSurvey s = survey_environment(environment);
  if (!needs_change(change, s)) {
    return call(environment);
  }
  auto** out = static_cast<char**>(alloca((s.entries + 3) * sizeof(char*)));
  auto* text = static_cast<char*>(alloca(s.text_bytes + 1));
  rewrite_environment(environment, s, change, out, text);
  return call(out);
}

}  // namespace crosstalk::in_target
