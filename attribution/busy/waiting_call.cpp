// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/waiting_call.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/objects/sharing_kind.h"
#include "attribution/program/own_code.h"
#include "symbolizer/cfg/instructions.h"

namespace crosstalk::attribution {
namespace {

using profile::WaitKind;
using std::string_view;

template <std::size_t N>
bool holds_any(string_view text, const std::array<string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](string_view part) { return text.find(part) != string_view::npos; });
}

/// The kind of wait in a library's function. Threads of an OpenMP team also wait for their next work, in functions that
/// have no names of their own, so only calls that a program makes count as waits of a team.
std::optional<WaitKind> kind_of(string_view function) {
  static constexpr std::array<string_view, 4> team_ends = {"GOMP_parallel", "GOMP_loop_end", "GOMP_sections_end",
                                                           "__kmpc_fork_call"};
  if (holds_any(function, team_ends)) {
    return WaitKind::team;  // a thread that still works in the region is in the program's own functions
  }
  static constexpr std::array<string_view, 4> openmp = {"GOMP_", "omp_set_", "__kmpc_", "gomp_mutex"};
  static constexpr std::array<string_view, 2> shared = {"rwlock", "shared_mutex"};
  static constexpr std::array<string_view, 2> semaphore = {"sem_", "semaphore"};
  const bool is_openmp = holds_any(function, openmp);
  switch (purpose_of_function(function).value_or(Purpose::data)) {
    case Purpose::lock:
      return is_openmp ? WaitKind::critical : holds_any(function, shared) ? WaitKind::rwlock : WaitKind::mutex;
    case Purpose::barrier:
      return is_openmp                                               ? WaitKind::team
             : function.find("pthread_barrier") != string_view::npos ? WaitKind::barrier
                                                                     : WaitKind::futex;
    case Purpose::condition:
      return holds_any(function, semaphore) ? WaitKind::semaphore : WaitKind::condition;
    default:
      return std::nullopt;
  }
}

/// True for a function of a C library that is linked into the program, whose source is not known, by its name.
bool is_c_library_code(const symbolizer::Frame& frame) {
  static constexpr std::array<string_view, 5> beginnings = {"pthread_", "lll_", "futex_", "sem_", "new_sem_"};
  string_view name = frame.function;
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return frame.source.file.empty() &&
         std::any_of(beginnings.begin(), beginnings.end(), [&](string_view part) { return name.starts_with(part); });
}

/// The function that the direct call before `after` enters, "GOMP_parallel"; empty: not known. A library's function
/// that jumps to another one at its end is not on the stack.
std::string called_before(const ProgramView& view, Moment moment, std::uint64_t after) {
  constexpr std::uint64_t call_bytes = 5;
  const auto place = view.spaces().find(moment, after - call_bytes);
  const auto call = place ? symbolizer::decode(view.code().bytes_at(*place), place->address) : std::nullopt;
  if (!call || call->flow != symbolizer::Flow::call || call->bytes != call_bytes || call->target == 0) {
    return "";
  }
  const symbolizer::CodeLocation& callee = view.code().locate({place->file, call->target});
  const std::string name = callee.frames.empty() ? "" : callee.frames.back().function;
  return name.substr(0, name.rfind("@plt"));
}

/// Completes the library's part by the function that the program calls, where no function on the stack tells the kind.
void add_called(const std::string& called, WaitingCall& call) {
  if (const auto kind = called.empty() || call.kind != WaitKind::futex ? std::nullopt : kind_of(called)) {
    call.kind = *kind;
    call.through = called;
  }
}

}  // namespace

WaitingCall waiting_call(const ProgramView& view, Moment moment, std::span<const std::uint64_t> stack) {
  WaitingCall so_far;  // the library's part of it
  std::optional<WaitingCall> nameless, innermost;
  for (const std::uint64_t after : stack) {
    // Each address is behind its call, the innermost one behind the system call.
    const std::uint64_t address = after - 1;
    const bool library = in_runtime_library(view, moment, address);
    so_far.place = view.spaces().find(moment, address);
    for (symbolizer::Frame& frame : view.frames(moment, address)) {
      so_far.frame = frame;
      innermost = innermost ? innermost : std::optional(so_far);
      if (library || is_library_code(frame) || is_c_library_code(frame)) {
        so_far.kind = kind_of(frame.function).value_or(so_far.kind);
        so_far.through = std::move(frame.function);
      } else if (!is_unknown(frame)) {
        add_called(called_before(view, moment, after), so_far);
        return so_far;
      } else if (!nameless) {
        nameless = so_far;
      }
    }
  }
  if (innermost) {
    innermost->kind = so_far.kind;
  }
  return nameless ? *nameless : innermost.value_or(WaitingCall{});
}

}  // namespace crosstalk::attribution
