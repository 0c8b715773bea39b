// SPDX-License-Identifier: Apache-2.0
// A tool of LLVM's OpenMP runtime library (OMPT, OpenMP 5.0) that counts events and prints the counts at the end.
// Declared without the library's header, so that any compiler builds it.
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { parallel_begin = 3, control_tool = 11, sync_region_wait = 16, mutex_acquired = 27 };

typedef void (*AnyFunction)(void);
typedef struct {
  int (*initialize)(AnyFunction (*look_up)(const char*), int, uint64_t*);
  void (*finalize)(uint64_t*);
  uint64_t data;
} Tool;

static int regions, explicit_barriers, sections;

static void region_begins(uint64_t* task, const void* frame, uint64_t* region, unsigned threads, int flags,
                          const void* site) {
  (void)task, (void)frame, (void)region, (void)threads, (void)flags, (void)site;
  __atomic_fetch_add(&regions, 1, __ATOMIC_RELAXED);
}
static void waits(int kind, int endpoint, uint64_t* region, uint64_t* task, const void* site) {
  (void)region, (void)task, (void)site;
  __atomic_fetch_add(&explicit_barriers, kind == 3 && endpoint == 1 ? 1 : 0, __ATOMIC_RELAXED);
}
static void has_mutex(int kind, uint64_t id, const void* site) {
  (void)id, (void)site;
  __atomic_fetch_add(&sections, kind == 5 ? 1 : 0, __ATOMIC_RELAXED);
}
static int controlled(uint64_t command, uint64_t modifier, void* argument, const void* site) {
  (void)argument, (void)site;
  return (int)(command + modifier);
}

static int starts(AnyFunction (*look_up)(const char*), int device, uint64_t* data) {
  (void)device, (void)data;
  int (*set)(int, AnyFunction) = (int (*)(int, AnyFunction))look_up("ompt_set_callback");
  set(parallel_begin, (AnyFunction)region_begins);
  set(sync_region_wait, (AnyFunction)waits);
  set(mutex_acquired, (AnyFunction)has_mutex);
  set(control_tool, (AnyFunction)controlled);
  return 1;
}
static void ends(uint64_t* data) {
  printf("tool: %d regions, %d barriers, %d sections, its word %d\n", regions, explicit_barriers, sections, (int)*data);
  fflush(stdout);
}

__attribute__((visibility("default"))) Tool* ompt_start_tool(unsigned version, const char* library) {
  static Tool tool = {starts, ends, 42};
  (void)version, (void)library;
  return &tool;
}
