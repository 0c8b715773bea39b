// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/waiting_call.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/objects/sharing_kind.h"
#include "attribution/program/own_code.h"

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
        return so_far;
      } else if (!nameless) {
        nameless = so_far;
      }
    }
  }
  return nameless ? *nameless : innermost.value_or(WaitingCall{});
}

}  // namespace crosstalk::attribution
