// SPDX-License-Identifier: Apache-2.0
// Preloaded into the emulated program: passes each allocation on to the program's own allocator and notes the block's
// place and the caller. Its own accesses are not counted.
#define _GNU_SOURCE
#include "tests/reference/heap_notes.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

static void* note(void* block, size_t bytes, void* caller) {
  if (block != NULL) {
    const int before = errno;
    syscall(HEAP_NOTE_ALLOCATED, block, bytes, caller);
    errno = before;
  }
  return block;
}

static void note_free(void* block) {
  if (block != NULL) {
    const int before = errno;
    syscall(HEAP_NOTE_FREED, block);
    errno = before;
  }
}

// The next definition of the function that this one stands before, asked for once.
#define NEXT(type, name)                         \
  static type next;                              \
  if (next == NULL) {                            \
    next = (type)(size_t)dlsym(RTLD_NEXT, name); \
  }

typedef void* (*allocate_one)(size_t);
typedef void* (*allocate_two)(size_t, size_t);
typedef void* (*change)(void*, size_t);
typedef int (*allocate_into)(void**, size_t, size_t);
typedef void (*give_back)(void*);

void* malloc(size_t bytes) {
  NEXT(allocate_one, "malloc")
  return note(next(bytes), bytes, __builtin_return_address(0));
}

void free(void* block) {
  NEXT(give_back, "free")
  note_free(block);
  next(block);
}

void* calloc(size_t count, size_t bytes) {
  NEXT(allocate_two, "calloc")
  return note(next(count, bytes), count * bytes, __builtin_return_address(0));
}

void* realloc(void* block, size_t bytes) {
  NEXT(change, "realloc")
  note_free(block);  // before somebody else can be given it
  return note(next(block, bytes), bytes, __builtin_return_address(0));
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  NEXT(allocate_two, "aligned_alloc")
  return note(next(alignment, bytes), bytes, __builtin_return_address(0));
}

void* memalign(size_t alignment, size_t bytes) {
  NEXT(allocate_two, "memalign")
  return note(next(alignment, bytes), bytes, __builtin_return_address(0));
}

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  NEXT(allocate_into, "posix_memalign")
  const int status = next(block, alignment, bytes);
  if (status == 0) {
    note(*block, bytes, __builtin_return_address(0));
  }
  return status;
}

// C++: operator new calls malloc, whose note names operator new as the caller; these notes come later and replace it. A
// program without C++ does not call them.
void* _Znwm(size_t bytes);
void* _Znwm(size_t bytes) {
  NEXT(allocate_one, "_Znwm")
  return note(next(bytes), bytes, __builtin_return_address(0));
}

void* _Znam(size_t bytes);
void* _Znam(size_t bytes) {
  NEXT(allocate_one, "_Znam")
  return note(next(bytes), bytes, __builtin_return_address(0));
}

void* _ZnwmSt11align_val_t(size_t bytes, size_t alignment);
void* _ZnwmSt11align_val_t(size_t bytes, size_t alignment) {
  NEXT(allocate_two, "_ZnwmSt11align_val_t")
  return note(next(bytes, alignment), bytes, __builtin_return_address(0));
}

void* _ZnamSt11align_val_t(size_t bytes, size_t alignment);
void* _ZnamSt11align_val_t(size_t bytes, size_t alignment) {
  NEXT(allocate_two, "_ZnamSt11align_val_t")
  return note(next(bytes, alignment), bytes, __builtin_return_address(0));
}
