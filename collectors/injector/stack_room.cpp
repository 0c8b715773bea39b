// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/stack_room.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/number.h"
#include "base/proc_fields.h"
#include "collectors/injector/tracee.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::injector {
namespace {

using Mappings = std::vector<observer::Mapping>;

std::string why_no_room(const Mappings& maps, std::uint64_t stack_pointer) {
  const observer::Mapping* const stack = observer::mapping_at(maps, stack_pointer);
  if (stack == nullptr || !stack->writable) {
    return "the stack pointer of one of its threads points to no stack";
  }
  const std::uint64_t room = stack_pointer - stack->begin;
  return stack->path == "[stack]" || room >= signal_bytes()  // this stack grows
             ? std::string()
             : "one of its threads has " + std::to_string(room) + " bytes of stack left, a signal takes " +
                   std::to_string(signal_bytes());
}

/// Returns /proc's line on a thread's system call. While a thread executes another program, the new program's memory
/// may be there already with the old program's registers: waits a while for the end of that.
std::string system_call_of(pid_t pid, pid_t tid) {
  constexpr std::uint64_t patience_ns = 500'000'000;
  constexpr timespec between_looks{0, 1'000'000};
  const std::string file = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/syscall";
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  std::string text = file_text(file);
  for (; executes_program(text) && monotonic_ns() < until_ns; text = file_text(file)) {
    ::nanosleep(&between_looks, nullptr);
  }
  return text;
}

/// Looks once at all threads; stops running ones for that.
Result<std::string> look(pid_t pid) {
  const Mappings maps = observer::maps_of(pid);
  for (const pid_t tid : observer::threads_of_program(pid)) {
    auto pointer = stack_pointer_in(system_call_of(pid, tid));
    if (!pointer && doing(pid, tid) == Doing::runs) {
      const auto stopped = Tracee::stop(pid, tid);
      if (!stopped) {
        return tl::unexpected<Error>(stopped.error());
      }
      if (*stopped) {
        pointer = (*stopped)->thread().registers.rsp;
      }
    }
    std::string why = pointer ? why_no_room(maps, *pointer) : std::string();
    // It may be a new thread's, which was not mapped yet.
    if (!why.empty() && !why_no_room(observer::maps_of(pid), *pointer).empty()) {
      return why;
    }
  }
  return std::string();
}

}  // namespace

std::optional<std::uint64_t> stack_pointer_in(const std::string& text) {
  const std::size_t last = text.rfind(' ');
  const std::size_t before = last == std::string::npos || last == 0 ? std::string::npos : text.rfind(' ', last - 1);
  if (before == std::string::npos || !text.substr(before + 1).starts_with("0x")) {
    return std::nullopt;
  }
  constexpr int hexadecimal = 16;
  return leading_number<std::uint64_t>(text.substr(before + 3, last - before - 3), hexadecimal).value_or(0);
}

bool executes_program(const std::string& text) {
  const std::string number = text.substr(0, text.find(' '));
  return number == std::to_string(SYS_execve) || number == std::to_string(SYS_execveat);
}

std::uint64_t signal_bytes() {
  constexpr unsigned long frame_key = 51;           // AT_MINSIGSTKSZ, Linux 5.14
  constexpr std::uint64_t frame_without_it = 4096;  // AVX-512
  constexpr std::uint64_t red_zone = 128;
  constexpr std::uint64_t entry = 512;
  const std::uint64_t frame = ::getauxval(frame_key);
  return (frame != 0 ? frame : frame_without_it) + red_zone + entry;
}

Result<std::string> why_no_room_for_signals(pid_t pid) {
  constexpr int looks = 5;
  constexpr timespec between{0, 2'000'000};
  for (int i = 0; i < looks; ++i) {
    auto why = look(pid);
    if (!why || !why->empty()) {
      return why;
    }
    ::nanosleep(&between, nullptr);
  }
  return std::string();
}

}  // namespace crosstalk::injector
