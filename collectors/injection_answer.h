// SPDX-License-Identifier: Apache-2.0
// The state that the library lets the recorder read after it was brought into a running process (collectors/injector/).
// One definition for both sides; each may be of another build, so the recorder checks `magic`.
#pragma once

#include <cstdint>

namespace crosstalk::collectors {

inline constexpr std::uint64_t injection_magic = 0x3230'6a6e'6920'7478;

enum class InjectionState : std::uint32_t {
  dormant = 0,    // nothing of the process is observed, nothing of it is changed
  observing = 1,  // a session that was brought in goes on
  leaving = 3,    // it is over, but a thread may still be in code of ours: the function is to be called again
  preloaded = 2,  // the process has had the library from its start: it is, or was, observed by its launcher
};

/// The library writes, the recorder reads it in the process's memory. `done` is written last.
struct InjectionAnswer {
  std::uint64_t magic = injection_magic;
  std::uint32_t state = 0;    // InjectionState
  std::uint32_t done = 0;     // calls of the functions below that have come to their end
  std::uint32_t loaded = 0;   // 1: the library's constructor has run
  std::uint32_t more = 0;     // 1: the last call has done a part of its work, so that it ended soon: call again
  std::uint64_t done_ns = 0;  // time of that, or of the last call's end: CLOCK_MONOTONIC
  char reason[224] = {};      // why the last call has failed; empty: it has not
};
static_assert(sizeof(InjectionAnswer) == 256);

/// Exported by the library: the answer; `void(const char* arena)`; `void(const char*)`, whose argument is empty: the
/// rest of a start (`more`), and the end.
inline constexpr const char* injection_answer_symbol = "crosstalk_injection_answer";
inline constexpr const char* injection_start_symbol = "crosstalk_start";
inline constexpr const char* injection_go_on_symbol = "crosstalk_go_on";
inline constexpr const char* injection_stop_symbol = "crosstalk_stop";

}  // namespace crosstalk::collectors
