// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/interpose/revealed_environment.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/interpose/child_environment.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

// Static, since other threads may be reading `environ`, or have it copied, when it is put back.
struct Revealed {
  std::atomic<bool> taken{false};
  std::uint32_t users = 0;
  bool in_place = false;
  char** before = nullptr;  // the earlier `environ`
  const char* preload_before = nullptr;
  char* entries[entry_limit + 3] = {};
  char preload[preload_limit + 1] = {};
};
constinit Revealed revealed;

void take_revealed() {
  while (revealed.taken.exchange(true, std::memory_order_acquire)) {
    system_call(SYS_sched_yield);
  }
}

void give_revealed() { revealed.taken.store(false, std::memory_order_release); }

void reveal() {
  if (!environment_hidden() || wanted_change(true) != Change::add) {
    return;
  }
  const EnvironmentSurvey survey = survey_environment(environ);
  if (!needs_change(Change::add, survey)) {
    return;
  }
  revealed.before = environ;
  revealed.preload_before = survey.preload;
  rewrite_environment(environ, survey, Change::add, static_cast<char**>(revealed.entries),
                      static_cast<char*>(revealed.preload));
  environ = static_cast<char**>(revealed.entries);
  revealed.in_place = true;
}

// Keeps removals and replacements that the program made in `environ` meanwhile. An addition by the program has made
// libc copy all of `environ` to another place.
void hide_again() {
  if (!revealed.in_place) {
    return;
  }
  revealed.in_place = false;
  if (environ != static_cast<char**>(revealed.entries)) {
    clean_environ();
    return;
  }
  char** out = revealed.before;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (*entry == static_cast<char*>(revealed.preload)) {
      *out++ = const_cast<char*>(revealed.preload_before);  // NOLINT: it was an entry of `environ`
    } else if (!is_own_entry(*entry)) {
      *out++ = *entry;
    }
  }
  if (out != nullptr) {
    *out = nullptr;
  }
  environ = revealed.before;
}

}  // namespace

RevealedEnvironment::RevealedEnvironment() {
  take_revealed();
  if (revealed.users++ == 0) {
    reveal();
  }
  give_revealed();
}

RevealedEnvironment::~RevealedEnvironment() {
  take_revealed();
  if (--revealed.users == 0) {
    hide_again();
  }
  give_revealed();
}

void environment_after_fork() {
  revealed.users = 0;
  hide_again();
  give_revealed();
}

}  // namespace crosstalk::in_target
