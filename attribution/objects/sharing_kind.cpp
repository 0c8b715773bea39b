// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/sharing_kind.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "attribution/program/own_code.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {
namespace {

using std::string_view;

constexpr std::size_t frames_to_read = 6;  // from the innermost: what a library does for a user is near

struct Named {
  Purpose purpose;
  string_view part;
};
// The first one that is a part of a function's name gives its purpose.
constexpr std::array known_functions = {
    Named{Purpose::barrier, "barrier"},
    Named{Purpose::condition, "pthread_cond_"},
    Named{Purpose::condition, "condition_variable"},
    Named{Purpose::condition, "__condvar"},
    Named{Purpose::condition, "sem_wait"},
    Named{Purpose::condition, "sem_post"},
    Named{Purpose::condition, "sem_trywait"},
    Named{Purpose::condition, "sem_timedwait"},
    Named{Purpose::condition, "sem_clockwait"},
    Named{Purpose::condition, "sem_getvalue"},
    Named{Purpose::condition, "counting_semaphore"},
    Named{Purpose::condition, "__new_sem_"},
    Named{Purpose::lock, "pthread_mutex_"},
    Named{Purpose::lock, "pthread_spin_"},
    Named{Purpose::lock, "pthread_rwlock_"},
    Named{Purpose::lock, "__lll_"},
    Named{Purpose::lock, "lll_mutex"},
    Named{Purpose::lock, "std::mutex::"},
    Named{Purpose::lock, "std::shared_mutex::"},
    Named{Purpose::lock, "std::atomic_flag::test_and_set"},
    Named{Purpose::lock, "gomp_mutex"},
    Named{Purpose::lock, "omp_set_lock"},
    Named{Purpose::lock, "GOMP_critical"},
    Named{Purpose::lock, "GOMP_atomic"},
    Named{Purpose::lock, "__kmpc_critical"},
    Named{Purpose::reference_count, "_Sp_counted_base"},
    Named{Purpose::reference_count, "__shared_count"},
    Named{Purpose::reference_count, "_M_add_ref"},
    Named{Purpose::reference_count, "_M_release"},
    Named{Purpose::reference_count, "alloc::sync::Arc"},
    Named{Purpose::reference_count, "__exchange_and_add_dispatch"},
    Named{Purpose::allocator, "_int_malloc"},
    Named{Purpose::allocator, "_int_free"},
    Named{Purpose::allocator, "malloc_consolidate"},
    Named{Purpose::allocator, "sysmalloc"},
    Named{Purpose::allocator, "arena_get"},
    Named{Purpose::allocator, "tcache_"},
    Named{Purpose::allocator, "__libc_malloc"},
    Named{Purpose::allocator, "__libc_free"},
    Named{Purpose::allocator, "__libc_calloc"},
    Named{Purpose::allocator, "__libc_realloc"},
};

/// The purpose by the instruction itself and its loop.
Purpose purpose_of_code(const ProgramView& view, ModulePlace place) {
  const auto loop = innermost_loop(view.code(), place);
  if (loop && loop->anatomy->waits_at(loop->index, place.address) != symbolizer::Waiting::no) {
    return Purpose::waiting;
  }
  switch (update_at(view.code(), place)) {
    case symbolizer::Update::plain:
    case symbolizer::Update::add:
      return Purpose::counter;
    case symbolizer::Update::fetch_add:
      return Purpose::fetch_add;
    case symbolizer::Update::exchange:
    case symbolizer::Update::compare_exchange:
    case symbolizer::Update::bits:
      return Purpose::exchange;
    case symbolizer::Update::none:
      break;
  }
  return Purpose::data;
}

std::optional<SharingKind> kind_of_purpose(Purpose purpose) {
  switch (purpose) {
    case Purpose::lock:
    case Purpose::exchange:
      return SharingKind::lock;
    case Purpose::barrier:
      return SharingKind::barrier;
    case Purpose::condition:
      return SharingKind::condition;
    case Purpose::reference_count:
      return SharingKind::reference_count;
    case Purpose::allocator:
    case Purpose::runtime:
      return SharingKind::runtime;
    case Purpose::waiting:
      return SharingKind::spin;
    case Purpose::counter:
      return SharingKind::shared_counter;
    case Purpose::fetch_add:
      return SharingKind::fetch_add;
    case Purpose::data:
      break;
  }
  return std::nullopt;
}

/// True if padding does not help even against false sharing: a user cannot lay out a run-time library's data, and a
/// waiting thread waits whatever else is on the line. Two locks on one line are falsely shared.
bool has_own_kind_when_false(Purpose purpose) {
  return purpose == Purpose::allocator || purpose == Purpose::runtime || purpose == Purpose::waiting;
}

}  // namespace

std::optional<Purpose> purpose_of_function(string_view function) {
  const auto found = std::find_if(known_functions.begin(), known_functions.end(),
                                  [&](const Named& named) { return function.find(named.part) != string_view::npos; });
  return found == known_functions.end() ? std::nullopt : std::optional(found->purpose);
}

Purpose purpose_of(const ProgramView& view, Moment moment, std::uint64_t instruction,
                   std::span<const std::uint64_t> stack) {
  std::size_t read = 0;
  bool own = false;  // reached
  for (std::size_t depth = 0; !own && (depth == 0 || depth < stack.size()); ++depth) {
    const std::uint64_t address = depth == 0 ? instruction : stack[depth] - 1;
    const bool library = in_runtime_library(view, moment, address);
    for (const symbolizer::Frame& frame : view.frames(moment, address)) {
      own = (!library && !is_library_code(frame)) || read++ >= frames_to_read;
      if (own) {
        break;
      }
      if (const auto purpose = purpose_of_function(frame.function)) {
        return *purpose;
      }
    }
  }
  const auto place = view.spaces().find(moment, instruction);
  return in_runtime_library(view, moment, instruction) ? Purpose::runtime
         : place                                       ? purpose_of_code(view, *place)
                                                       : Purpose::data;
}

const char* sharing_kind_name(SharingKind kind) {
  static constexpr std::array<const char*, sharing_kinds> names = {
      "false_sharing", "true_sharing", "shared_counter",  "lock",    "barrier",  "condition",
      "spin",          "queue",        "reference_count", "runtime", "fetch_add"};
  return names[static_cast<std::size_t>(kind)];
}

void PurposeSums::add(const PurposeSums& other) {
  std::transform(true_sharing.begin(), true_sharing.end(), other.true_sharing.begin(), true_sharing.begin(),
                 std::plus<>());
  std::transform(false_sharing.begin(), false_sharing.end(), other.false_sharing.begin(), false_sharing.begin(),
                 std::plus<>());
}

double PurposeSums::sum() const {
  return std::accumulate(true_sharing.begin(), true_sharing.end(), 0.0) +
         std::accumulate(false_sharing.begin(), false_sharing.end(), 0.0);
}

KindOf kind_of(const PurposeSums& sums, bool indices) {
  std::array<double, sharing_kinds> kinds{};
  const auto add = [&](SharingKind kind, double amount) { kinds.at(static_cast<std::size_t>(kind)) += amount; };
  for (std::size_t i = 0; i < purposes; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    const auto own = kind_of_purpose(purpose);
    const SharingKind other = indices ? SharingKind::queue : SharingKind::true_sharing;
    add(own.value_or(other), sums.true_sharing.at(i));
    add(own && has_own_kind_when_false(purpose) ? *own : SharingKind::false_sharing, sums.false_sharing.at(i));
  }
  const double all = std::accumulate(kinds.begin(), kinds.end(), 0.0);
  const auto best = std::max_element(kinds.begin(), kinds.end());
  KindOf result{static_cast<SharingKind>(best - kinds.begin()), std::nullopt};
  *best = 0;
  const auto second = std::max_element(kinds.begin(), kinds.end());
  constexpr double worth_saying = 0.25;
  if (*second > worth_saying * all) {
    result.perhaps = static_cast<SharingKind>(second - kinds.begin());
  }
  return result;
}

}  // namespace crosstalk::attribution
