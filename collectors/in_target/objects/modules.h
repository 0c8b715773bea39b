// SPDX-License-Identifier: Apache-2.0
// Finds the mapped files of code. dlopen() is not interposed (modules.cpp says why): new modules are found by looking.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/in_target/objects/module_facts.h"
#include "profile/records.h"

namespace crosstalk::in_target::modules {

inline constexpr std::size_t known_limit = 2048;  // more modules are not reported

/// Returns the offset from the thread pointer to the lowest block of static thread-local storage: negative, or 0 before
/// the first look. Signal-safe.
[[nodiscard]] std::int64_t lowest_static_tls();

}  // namespace crosstalk::in_target::modules

namespace crosstalk::in_target {

/// Emits ModuleLoad and ModuleUnload for changes since the last call; cheap if there are none. Normal context only;
/// does nothing while another thread is in it. Core calls: at attach (the first call reports every module), and at
/// exit.
void on_module_change();
/// The next samples see to it that some more looks are taken, though nothing has changed. Any context.
void look_for_modules_again();
/// A thread starts with `routine`: the same, unless that is in a known module and a look is not long ago.
void on_thread_in_module(std::uint64_t routine);
/// Core calls for each sampled or trapped instruction pointer: one that lies in no known module makes the
/// next interposed call (malloc, say) look for new modules. Any context; some ten nanoseconds.
void note_code_address(std::uint64_t ip);

/// For pthread_atfork(): no thread is about to look at the modules, which takes the loader's lock, while another forks.
void hold_modules_for_fork();
void release_modules_after_fork();
/// Resets the state in a forked child, in which no other thread looks at the modules.
void modules_after_fork();

/// All modules are reported again, to another recorder. Only while nothing is observed.
void forget_modules();

/// Called at the end of a process: reports the jitdump that an agent for perf has mapped, as a module, so that a report
/// finds the file. Only if code was seen outside all modules; reads /proc/self/maps once.
void report_jit_dump();

}  // namespace crosstalk::in_target
