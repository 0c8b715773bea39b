// SPDX-License-Identifier: Apache-2.0
// The tool to which LLVM's OpenMP runtime library (and others that keep to OpenMP 5.0) reports its threads' waits. The
// library asks for one tool when it starts, by calling the first ompt_start_tool() that is found: of the program, else
// of a preloaded library, as we are, else of libraries named by the user. A tool that is not ours always goes first,
// since there can be only one. Locks are measured by openmp_waits.cpp, whose functions the library has, too.
#include <cstdlib>
#include <cstring>

#include "collectors/in_target/interpose/ompt_abi.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sync/critical_sections.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sync/told_waits.h"

namespace crosstalk::in_target {
namespace {

using profile::WaitKind;

CROSSTALK_REAL constinit RealFunction<ompt::Tool*(unsigned, const char*)> real_start_tool("ompt_start_tool");

// Sets the region's word, which the library copies for all threads of the team.
void parallel_begins(ompt::Data* /*task*/, const void* /*frame*/, ompt::Data* region, unsigned /*threads*/,
                     int /*flags*/, const void* site) {
  region->value = told_region_of(site);
}

/// Tells a barrier at the end of a region from one at the end of a loop, which have the same name until version 5.1.
/// Threads that did not begin the region have no address for its end; the beginner has that of the region's begin.
bool is_region_end(ompt::SyncRegion kind, const ompt::Data* region, const void* site) {
  return region != nullptr &&
         (kind == ompt::SyncRegion::barrier_implicit_parallel || kind == ompt::SyncRegion::barrier_teams ||
          (kind == ompt::SyncRegion::barrier_implicit && (site == nullptr || is_begun_from(region->value, site))));
}

void sync_region_waits(ompt::SyncRegion kind, ompt::Endpoint endpoint, ompt::Data* region, ompt::Data* /*task*/,
                       const void* site) {
  if (endpoint == ompt::Endpoint::end) {
    end_told_wait();
  } else if (is_region_end(kind, region, site)) {
    begin_told_region_end(region->value, site != nullptr);
  } else {
    begin_told_wait(WaitKind::team, site);
  }
}

void task_scheduled(ompt::Data* /*prior*/, ompt::TaskStatus status, ompt::Data* /*next*/) {
  switch (status) {
    case ompt::TaskStatus::yield:
    case ompt::TaskStatus::switched:
      begin_told_task();
      break;
    case ompt::TaskStatus::complete:
    case ompt::TaskStatus::cancel:
    case ompt::TaskStatus::detach:
      end_told_task();
      break;
    default:  // nothing that a thread begins or ends
      break;
  }
}

bool is_section(ompt::Mutex kind) { return kind == ompt::Mutex::critical || kind == ompt::Mutex::atomic; }

void mutex_is_wanted(ompt::Mutex kind, unsigned /*hint*/, unsigned /*implementation*/, std::uint64_t id,
                     const void* site) {
  // A thread that waits for a section counts as inside: the section is handed to it before it reports that it has it.
  if (kind == ompt::Mutex::ordered || (is_section(kind) && critical_section(id).enter())) {
    begin_told_wait(WaitKind::critical, site);
  }
}

void mutex_is_had(ompt::Mutex kind, std::uint64_t /*id*/, const void* /*site*/) {
  if (is_section(kind) || kind == ompt::Mutex::ordered) {
    end_told_wait();
  }
}

void mutex_is_left(ompt::Mutex kind, std::uint64_t id, const void* /*site*/) {
  if (is_section(kind)) {
    critical_section(id).leave();
  }
}

/// To the program there is no tool, as there would be none without us.
int control_tool(std::uint64_t /*command*/, std::uint64_t /*modifier*/, void* /*argument*/, const void* /*site*/) {
  constexpr int no_tool = -2;
  return no_tool;
}

template <class Function>
ompt::AnyFunction any(Function* function) {
  return reinterpret_cast<ompt::AnyFunction>(function);  // NOLINT: as the interface has it
}

int initialize(ompt::LookUp look_up, int /*initial_device*/, ompt::Data* /*tool*/) {
  // NOLINTNEXTLINE: as the interface has it
  const auto set_callback = reinterpret_cast<ompt::SetCallback>(look_up("ompt_set_callback"));
  if (set_callback == nullptr) {
    return 0;
  }
  set_callback(ompt::Callback::parallel_begin, any(parallel_begins));
  set_callback(ompt::Callback::sync_region_wait, any(sync_region_waits));
  set_callback(ompt::Callback::task_schedule, any(task_scheduled));
  set_callback(ompt::Callback::mutex_acquire, any(mutex_is_wanted));
  set_callback(ompt::Callback::mutex_acquired, any(mutex_is_had));
  set_callback(ompt::Callback::mutex_released, any(mutex_is_left));
  set_callback(ompt::Callback::control_tool, any(control_tool));
  return 1;
}

void finalize(ompt::Data* /*tool*/) {}

constinit ompt::Tool own_tool = {initialize, finalize, {0}};

bool is_set(const char* variable, const char* unless) {
  const char* const value = ::getenv(variable);
  return value != nullptr && value[0] != 0 && std::strcmp(value, unless) != 0;
}

/// True if the library, given no tool, looks for further ones (those that the user names, and a thread sanitizer's), or
/// is asked to print which tool it has found.
bool another_tool_may_come() {
  return is_set("OMP_TOOL_LIBRARIES", "") || is_set("OMP_TOOL_VERBOSE_INIT", "disabled") ||
         next_definition("__tsan_init") != nullptr;
}

}  // namespace

CROSSTALK_INTERPOSE_WAIT(ompt::Tool*, wrap_start_tool, "ompt_start_tool", (unsigned version, const char* library));
ompt::Tool* wrap_start_tool(unsigned version, const char* library) {
  // Often that is the library's own function, which looks for the next.
  ompt::Tool* const other = real_start_tool.get() != nullptr ? real_start_tool(version, library) : nullptr;
  return other != nullptr || !measures_waits() || another_tool_may_come() ? other : &own_tool;
}

}  // namespace crosstalk::in_target
