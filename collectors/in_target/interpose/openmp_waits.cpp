// SPDX-License-Identifier: Apache-2.0
// Functions of GNU's OpenMP runtime library in which threads wait for each other. A program's calls of them come from
// code that the compiler made; their names and parameters are those of GCC 4.9 and later. Tasks that a thread runs
// while it waits in a barrier count as waiting.
#include <cstdint>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sync/critical_sections.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sync/team_waits.h"

namespace crosstalk::in_target {
namespace {

using profile::WaitKind;
using Routine = TeamRegion::Routine;

CROSSTALK_REAL constinit RealFunction<int()> count_team("omp_get_num_threads");

/// A program that has the library loaded while it runs has it after prepare_real_functions().
void prepare_team() {
  if (count_team.get() != nullptr) {
    TeamRegion::ask_for_threads([] { return static_cast<std::uint32_t>(count_team()); });
  }
}

}  // namespace

#define CROSSTALK_SITE __builtin_return_address(0)
#define CROSSTALK_FRAME __builtin_frame_address(0)

// -------------------------------------------------------------------------------------- Barriers, also those of loops

#define CROSSTALK_TEAM_BARRIER(RESULT, NAME)                                  \
  namespace {                                                                 \
  CROSSTALK_REAL constinit RealFunction<RESULT()> real_##NAME(#NAME);         \
  }                                                                           \
  CROSSTALK_INTERPOSE_WAIT(RESULT, wrap_##NAME, #NAME, ());                   \
  RESULT wrap_##NAME() {                                                      \
    const MeasuredWait wait(WaitKind::team, CROSSTALK_SITE, CROSSTALK_FRAME); \
    return real_##NAME();                                                     \
  }
CROSSTALK_TEAM_BARRIER(void, GOMP_barrier)
CROSSTALK_TEAM_BARRIER(bool, GOMP_barrier_cancel)
CROSSTALK_TEAM_BARRIER(void, GOMP_loop_end)
CROSSTALK_TEAM_BARRIER(bool, GOMP_loop_end_cancel)
CROSSTALK_TEAM_BARRIER(void, GOMP_sections_end)
CROSSTALK_TEAM_BARRIER(bool, GOMP_sections_end_cancel)
#undef CROSSTALK_TEAM_BARRIER

// ------------------------------------------------------------------------- Critical sections, ordered sections, locks

namespace {
CROSSTALK_REAL constinit RealFunction<void()> real_critical_start("GOMP_critical_start");
CROSSTALK_REAL constinit RealFunction<void()> real_critical_end("GOMP_critical_end");
CROSSTALK_REAL constinit RealFunction<void()> real_atomic_start("GOMP_atomic_start");
CROSSTALK_REAL constinit RealFunction<void()> real_atomic_end("GOMP_atomic_end");
CROSSTALK_REAL constinit RealFunction<void(void**)> real_named_start("GOMP_critical_name_start");
CROSSTALK_REAL constinit RealFunction<void(void**)> real_named_end("GOMP_critical_name_end");
CROSSTALK_REAL constinit RealFunction<void(void*)> real_set_lock("omp_set_lock");
CROSSTALK_REAL constinit RealFunction<int(void*)> real_test_lock("omp_test_lock");
CROSSTALK_REAL constinit RealFunction<void(void*)> real_set_nest_lock("omp_set_nest_lock");
CROSSTALK_REAL constinit RealFunction<int(void*)> real_test_nest_lock("omp_test_nest_lock");

constinit CriticalSection unnamed_section, atomic_section;
CriticalSection& section_of(void** name) { return critical_section(reinterpret_cast<std::uint64_t>(name)); }

/// `Real` is called with the section's name, if it has one. A thread counts as inside before it asks: the section may
/// be handed to another one that is then interrupted before it could say so.
template <class Real, class... Name>
void enter(CriticalSection& section, Real& real, const void* site, const void* frame, Name... name) {
  if (!measures_waits()) {
    real(name...);
    return;
  }
  if (section.enter()) {
    const MeasuredWait wait(WaitKind::critical, site, frame);
    real(name...);
  } else {
    real(name...);
  }
}
template <class Real, class... Name>
void leave(CriticalSection& section, Real& real, Name... name) {
  real(name...);
  if (measures_waits()) {
    section.leave();
  }
}
}  // namespace

CROSSTALK_INTERPOSE_WAIT(void, wrap_critical_start, "GOMP_critical_start", ());
void wrap_critical_start() { enter(unnamed_section, real_critical_start, CROSSTALK_SITE, CROSSTALK_FRAME); }
CROSSTALK_INTERPOSE_WAIT(void, wrap_critical_end, "GOMP_critical_end", ());
void wrap_critical_end() { leave(unnamed_section, real_critical_end); }

CROSSTALK_INTERPOSE_WAIT(void, wrap_atomic_start, "GOMP_atomic_start", ());
void wrap_atomic_start() { enter(atomic_section, real_atomic_start, CROSSTALK_SITE, CROSSTALK_FRAME); }
CROSSTALK_INTERPOSE_WAIT(void, wrap_atomic_end, "GOMP_atomic_end", ());
void wrap_atomic_end() { leave(atomic_section, real_atomic_end); }

CROSSTALK_INTERPOSE_WAIT(void, wrap_named_start, "GOMP_critical_name_start", (void** name));
void wrap_named_start(void** name) { enter(section_of(name), real_named_start, CROSSTALK_SITE, CROSSTALK_FRAME, name); }
CROSSTALK_INTERPOSE_WAIT(void, wrap_named_end, "GOMP_critical_name_end", (void** name));
void wrap_named_end(void** name) { leave(section_of(name), real_named_end, name); }

namespace {
CROSSTALK_REAL constinit RealFunction<void()> real_ordered_start("GOMP_ordered_start");
}  // namespace
CROSSTALK_INTERPOSE_WAIT(void, wrap_ordered_start, "GOMP_ordered_start", ());
void wrap_ordered_start() {
  const MeasuredWait wait(WaitKind::critical, CROSSTALK_SITE, CROSSTALK_FRAME);
  real_ordered_start();
}

CROSSTALK_INTERPOSE_WAIT(void, wrap_set_lock, "omp_set_lock", (void* lock));
void wrap_set_lock(void* lock) {
  if (!measures_waits() || real_test_lock.get() == nullptr || real_test_lock(lock) == 0) {
    const MeasuredWait wait(WaitKind::critical, CROSSTALK_SITE, CROSSTALK_FRAME);
    real_set_lock(lock);
  }
}

CROSSTALK_INTERPOSE_WAIT(void, wrap_set_nest_lock, "omp_set_nest_lock", (void* lock));
void wrap_set_nest_lock(void* lock) {
  if (!measures_waits() || real_test_nest_lock.get() == nullptr || real_test_nest_lock(lock) == 0) {
    const MeasuredWait wait(WaitKind::critical, CROSSTALK_SITE, CROSSTALK_FRAME);
    real_set_nest_lock(lock);
  }
}

// --------------------------------------------------------------------------------------------------- Parallel regions

namespace {
CROSSTALK_REAL constinit RealFunction<void(Routine, void*, unsigned, unsigned)> real_parallel("GOMP_parallel");
CROSSTALK_REAL constinit RealFunction<void(Routine, void*, unsigned, unsigned, unsigned)> real_parallel_sections(
    "GOMP_parallel_sections");
using ParallelLoop = void(Routine, void*, unsigned, long, long, long, long, unsigned);
using ParallelRuntimeLoop = void(Routine, void*, unsigned, long, long, long, unsigned);
}  // namespace

CROSSTALK_INTERPOSE_WAIT(void, wrap_parallel, "GOMP_parallel",
                         (Routine routine, void* data, unsigned threads, unsigned flags));
void wrap_parallel(Routine routine, void* data, unsigned threads, unsigned flags) {
  if (!measures_waits()) {
    real_parallel(routine, data, threads, flags);
    return;
  }
  prepare_team();
  TeamRegion region(routine, data, CROSSTALK_SITE);
  real_parallel(TeamRegion::run_part, &region, threads, flags);
}

CROSSTALK_INTERPOSE_WAIT(void, wrap_parallel_sections, "GOMP_parallel_sections",
                         (Routine routine, void* data, unsigned threads, unsigned sections, unsigned flags));
void wrap_parallel_sections(Routine routine, void* data, unsigned threads, unsigned sections, unsigned flags) {
  if (!measures_waits()) {
    real_parallel_sections(routine, data, threads, sections, flags);
    return;
  }
  prepare_team();
  TeamRegion region(routine, data, CROSSTALK_SITE);
  real_parallel_sections(TeamRegion::run_part, &region, threads, sections, flags);
}

#define CROSSTALK_PARALLEL_LOOP(NAME)                                                                                \
  namespace {                                                                                                        \
  CROSSTALK_REAL constinit RealFunction<ParallelLoop> real_##NAME(#NAME);                                            \
  }                                                                                                                  \
  CROSSTALK_INTERPOSE_WAIT(                                                                                          \
      void, wrap_##NAME, #NAME,                                                                                      \
      (Routine routine, void* data, unsigned threads, long begin, long end, long step, long chunk, unsigned flags)); \
  void wrap_##NAME(Routine routine, void* data, unsigned threads, long begin, long end, long step, long chunk,       \
                   unsigned flags) {                                                                                 \
    if (!measures_waits()) {                                                                                         \
      real_##NAME(routine, data, threads, begin, end, step, chunk, flags);                                           \
      return;                                                                                                        \
    }                                                                                                                \
    prepare_team();                                                                                                  \
    TeamRegion region(routine, data, CROSSTALK_SITE);                                                                \
    real_##NAME(TeamRegion::run_part, &region, threads, begin, end, step, chunk, flags);                             \
  }
CROSSTALK_PARALLEL_LOOP(GOMP_parallel_loop_static)
CROSSTALK_PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
CROSSTALK_PARALLEL_LOOP(GOMP_parallel_loop_guided)
CROSSTALK_PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
CROSSTALK_PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
#undef CROSSTALK_PARALLEL_LOOP

#define CROSSTALK_PARALLEL_RUNTIME_LOOP(NAME)                                                                        \
  namespace {                                                                                                        \
  CROSSTALK_REAL constinit RealFunction<ParallelRuntimeLoop> real_##NAME(#NAME);                                     \
  }                                                                                                                  \
  CROSSTALK_INTERPOSE_WAIT(                                                                                          \
      void, wrap_##NAME, #NAME,                                                                                      \
      (Routine routine, void* data, unsigned threads, long begin, long end, long step, unsigned flags));             \
  void wrap_##NAME(Routine routine, void* data, unsigned threads, long begin, long end, long step, unsigned flags) { \
    if (!measures_waits()) {                                                                                         \
      real_##NAME(routine, data, threads, begin, end, step, flags);                                                  \
      return;                                                                                                        \
    }                                                                                                                \
    prepare_team();                                                                                                  \
    TeamRegion region(routine, data, CROSSTALK_SITE);                                                                \
    real_##NAME(TeamRegion::run_part, &region, threads, begin, end, step, flags);                                    \
  }
CROSSTALK_PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
CROSSTALK_PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
CROSSTALK_PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
#undef CROSSTALK_PARALLEL_RUNTIME_LOOP

}  // namespace crosstalk::in_target
