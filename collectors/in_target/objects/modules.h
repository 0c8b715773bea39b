// SPDX-License-Identifier: Apache-2.0
// Finds the mapped files of code. dlopen() is not interposed (modules.cpp says why): new modules are found by looking.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile/records.h"

namespace crosstalk::in_target::modules {

inline constexpr std::size_t known_limit = 2048;  // more modules are not reported
inline constexpr std::size_t path_limit = 4096;

/// [begin, end) of a module's PT_LOAD segments, at run time. 0, 0: it has none.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
[[nodiscard]] Extent extent_of(const dl_phdr_info& module);

/// Copies the GNU build id out of the module's notes in memory (ELF gABI, "Note Section"); returns its bytes,
/// 0 when there is none or it is longer than `limit`.
[[nodiscard]] std::size_t build_id_of(const dl_phdr_info& module, std::uint8_t* out, std::size_t limit);

/// A line of /proc/self/maps.
struct MappedFile {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t offset = 0;             // of `begin` in the file, bytes
  std::uint64_t device = 0, inode = 0;  // major << 32 | minor; shared memory without a file has both, too
  bool shared = false;                  // MAP_SHARED
  bool of_vdso = false;                 // [vdso], or the kernel's time pages that belong to it: [vvar...]
  std::size_t path_length = 0;
};

/// Finds the mapping at `address`, its path in the first bytes of `path`. False: there is none, or it is not among the
/// first some thousand lines. Reads by system calls: no allocation, errno untouched. Signal-safe; some 5 us for ten
/// lines.
[[nodiscard]] bool find_mapped_file(std::uint64_t address, MappedFile& out, char* path, std::size_t limit);

/// Does the same for the first mapping of a file called `name` (the last part of its path).
[[nodiscard]] bool find_mapping_called(std::string_view name, MappedFile& out, char* path, std::size_t limit);

/// Writes the path of the file that is mapped at `address`, as the kernel has it, into `out`; returns its
/// length, 0 when it is not found. Reads /proc/self/maps by system calls: no allocation, errno untouched.
[[nodiscard]] std::size_t mapped_path(std::uint64_t address, char* out, std::size_t limit);

/// Does the same for the program itself. /proc/self/exe does not tell it if the dynamic loader was executed to run the
/// program.
[[nodiscard]] std::size_t program_path(char* out, std::size_t limit);

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
