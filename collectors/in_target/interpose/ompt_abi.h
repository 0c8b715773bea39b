// SPDX-License-Identifier: Apache-2.0
// The part of OMPT that is used here, as the OpenMP API specification fixes it (version 5.1, chapters 4 and 19.4): with
// it, a runtime library tells a tool inside the process what its threads wait for.
#pragma once

#include <cstdint>

namespace crosstalk::in_target::ompt {

/// A word of the tool's own for each parallel region, task and so on.
struct Data {
  std::uint64_t value;
};

enum class Callback : int {
  parallel_begin = 3,
  task_schedule = 6,
  control_tool = 11,
  sync_region_wait = 16,
  mutex_released = 17,
  mutex_acquire = 26,
  mutex_acquired = 27,
};

enum class Endpoint : int { begin = 1, end = 2 };

enum class SyncRegion : int {
  barrier = 1,
  barrier_implicit = 2,  // until 5.1 also at the end of parallel regions
  barrier_explicit = 3,
  barrier_implementation = 4,
  taskwait = 5,
  taskgroup = 6,
  reduction = 7,
  barrier_implicit_workshare = 8,
  barrier_implicit_parallel = 9,
  barrier_teams = 10,
};

enum class Mutex : int { lock = 1, test_lock, nest_lock, test_nest_lock, critical, atomic, ordered };

enum class TaskStatus : int {
  complete = 1,
  yield = 2,
  cancel = 3,
  detach = 4,
  early_fulfill = 5,
  late_fulfill = 6,
  switched = 7,
};

using AnyFunction = void (*)();
using LookUp = AnyFunction (*)(const char* name);
using SetCallback = int (*)(Callback which, AnyFunction callback);
using Initialize = int (*)(LookUp look_up, int initial_device, Data* tool);
using Finalize = void (*)(Data* tool);

/// The return value of ompt_start_tool(); it must stay at its address.
struct Tool {
  Initialize initialize;  // returns 0 for a tool that is not to be called again
  Finalize finalize;
  Data data;
};

}  // namespace crosstalk::in_target::ompt
