// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/interpose/child_environment.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constexpr char preload_prefix[] = "LD_PRELOAD=";
constexpr std::size_t preload_prefix_bytes = sizeof(preload_prefix) - 1;

/// Copied at the start; constant afterwards.
struct Remembered {
  char preload[preload_prefix_bytes + modules::path_limit + 1] = {};  // "LD_PRELOAD=/path/libcrosstalk.so"
  char arena[256] = {};                                               // "CROSSTALK_ARENA=..."
  std::size_t arena_prefix_bytes = 0;
  char cleaned_preload[preload_limit] = {};  // for `environ` without us
  bool known = false;
};
constinit Remembered remembered;

const char* own_path() { return remembered.preload + preload_prefix_bytes; }

bool is_preload(const char* entry) { return strncmp(entry, preload_prefix, preload_prefix_bytes) == 0; }
bool is_arena(const char* entry) { return strncmp(entry, remembered.arena, remembered.arena_prefix_bytes) == 0; }

/// Bytes up to the next separator of a preload list, or its end.
std::size_t item_bytes(const char* item) { return strcspn(item, ": "); }

bool is_own_item(const char* item, std::size_t bytes) {
  return bytes == strlen(own_path()) && memcmp(item, own_path(), bytes) == 0;
}

bool lists_us(const char* preload_entry) {
  for (const char* item = preload_entry + preload_prefix_bytes;;) {
    const std::size_t bytes = item_bytes(item);
    if (is_own_item(item, bytes)) {
      return true;
    }
    if (item[bytes] == 0) {
      return false;
    }
    item += bytes + 1;
  }
}

/// "LD_PRELOAD=us:theirs". `out` holds preload_limit bytes.
char* with_us(const char* preload_entry, char* out) {
  const std::size_t own_bytes = strlen(remembered.preload);
  memcpy(out, remembered.preload, own_bytes);
  out[own_bytes] = ':';
  memcpy(out + own_bytes + 1, preload_entry + preload_prefix_bytes, strlen(preload_entry) - preload_prefix_bytes + 1);
  return out;
}

/// Returns the entry without our item; null if it contains nothing else.
char* without_us(const char* preload_entry, char* out) {
  std::size_t length = preload_prefix_bytes;
  memcpy(out, preload_prefix, preload_prefix_bytes);
  for (const char* item = preload_entry + preload_prefix_bytes;;) {
    const std::size_t bytes = item_bytes(item);
    if (bytes != 0 && !is_own_item(item, bytes)) {
      if (length != preload_prefix_bytes) {
        out[length++] = ':';
      }
      memcpy(out + length, item, bytes);
      length += bytes;
    }
    if (item[bytes] == 0) {
      break;
    }
    item += bytes + 1;
  }
  out[length] = 0;
  return length == preload_prefix_bytes ? nullptr : out;
}

/// true if hide_environment() has removed us from `environ`; false in a process that is left alone from its start
constinit bool hidden = false;

}  // namespace

bool knows_environment() { return remembered.known; }

bool environment_hidden() { return hidden; }

bool is_own_entry(const char* entry) {
  return entry == static_cast<const char*>(remembered.preload) || entry == static_cast<const char*>(remembered.arena);
}

bool arena_in_reach() {
  const char* name = static_cast<const char*>(remembered.arena) + remembered.arena_prefix_bytes;
  return system_call(SYS_faccessat, AT_FDCWD, name, R_OK | W_OK) >= 0;
}

Change wanted_change(bool for_child) {
  const profile::SessionConfig* config = session_config();
  if (config == nullptr || !remembered.known) {
    return Change::none;
  }
  // A program that a confined process executes is confined, too, and its filter may forbid our calls.
  if ((for_child && config->follow_children == 0) || confined()) {
    return Change::strip;
  }
  return observing() || hidden ? Change::add : Change::none;
}

EnvironmentSurvey survey_environment(Strings environment) {
  EnvironmentSurvey s;
  for (; environment != nullptr && environment[s.entries] != nullptr; ++s.entries) {
    const char* entry = environment[s.entries];
    if (s.preload == nullptr && is_preload(entry)) {
      s.preload = entry;
    } else if (s.arena == nullptr && is_arena(entry)) {
      s.arena = entry;
    }
  }
  s.text_bytes = s.preload == nullptr ? 0 : strlen(s.preload) + strlen(remembered.preload) + 2;
  return s;
}

bool needs_change(Change change, const EnvironmentSurvey& s) {
  if (s.entries > entry_limit || s.text_bytes > preload_limit) {
    return false;
  }
  const bool listed = s.preload != nullptr && lists_us(s.preload);
  switch (change) {
    case Change::add:
      return !listed || s.arena == nullptr || strcmp(s.arena, remembered.arena) != 0;
    case Change::strip:
      return listed || s.arena != nullptr;
    case Change::none:
      break;
  }
  return false;
}

void rewrite_environment(Strings environment, const EnvironmentSurvey& s, Change change, char** out, char* text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < s.entries; ++i) {
    char* entry = environment[i];
    if (is_arena(entry)) {
      continue;
    }
    if (entry == s.preload && change == Change::strip) {
      entry = without_us(entry, text);
    } else if (entry == s.preload && !lists_us(entry)) {
      entry = with_us(entry, text);
    }
    if (entry != nullptr) {
      out[count++] = entry;
    }
  }
  if (change == Change::add) {
    if (s.preload == nullptr) {
      out[count++] = remembered.preload;
    }
    out[count++] = remembered.arena;
  }
  out[count] = nullptr;
}

void clean_environ() {
  if (environ == nullptr) {
    return;
  }
  char** out = environ;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    char* kept = *entry;
    if (is_arena(kept)) {
      continue;
    }
    if (is_preload(kept) && strlen(kept) < preload_limit && lists_us(kept)) {
      kept = without_us(kept, remembered.cleaned_preload);
    }
    if (kept != nullptr) {
      *out++ = kept;
    }
  }
  *out = nullptr;
}

namespace {

struct OwnPath {
  char* out;
  std::size_t bytes = 0;
};

int find_own_path(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  if (module->dlpi_addr != own_bias()) {
    return 0;
  }
  auto& path = *static_cast<OwnPath*>(data);
  const std::size_t length = module->dlpi_name == nullptr ? 0 : strlen(module->dlpi_name);
  if (length != 0 && module->dlpi_name[0] == '/' && length < modules::path_limit) {
    memcpy(path.out, module->dlpi_name, length);
    path.bytes = length;
  } else {
    path.bytes = modules::mapped_path(own_bias(), path.out, modules::path_limit - 1);
  }
  return 1;
}

}  // namespace

void remember_environment() {
  const char* value = ::getenv(profile::arena_variable);
  const std::size_t name_bytes = strlen(profile::arena_variable);
  if (value == nullptr || name_bytes + strlen(value) + 2 > sizeof(remembered.arena)) {
    return;
  }
  memcpy(remembered.arena, profile::arena_variable, name_bytes);
  remembered.arena[name_bytes] = '=';
  remembered.arena_prefix_bytes = name_bytes + 1;
  memcpy(remembered.arena + name_bytes + 1, value, strlen(value) + 1);

  memcpy(remembered.preload, preload_prefix, preload_prefix_bytes);
  OwnPath path{remembered.preload + preload_prefix_bytes};
  ::dl_iterate_phdr(find_own_path, &path);
  remembered.preload[preload_prefix_bytes + path.bytes] = 0;
  remembered.known = path.bytes != 0;
  const profile::SessionConfig* config = session_config();
  if (remembered.known && config != nullptr && config->follow_children == 0) {
    clean_environ();
  }
}

void hide_environment() {
  if (remembered.known) {
    clean_environ();
    hidden = true;
  }
}

}  // namespace crosstalk::in_target
