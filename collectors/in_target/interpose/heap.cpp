// SPDX-License-Identifier: Apache-2.0
// The allocating functions. Each calls the real one, then enters the block into the block table with the call's return
// address. A small block is left out if the budget is used up.
//
// free() and operator delete are not interposed. A removal would cost as much again as an entry, on the hottest
// function of many programs, and gain nothing: a reallocated block overwrites the entry or is newer, and freed memory
// is not accessed. It also keeps us out of every mismatched pair (memory of one allocator freed by another's free),
// since we hand out the real function's own pointers only.
//
// munmap() is interposed: a mapping's place may be taken by memory that no function here sees (a thread's stack, a
// library), and beside a system call a removal is free.
//
// A block is entered once, though `new[]` calls `new` and `new` calls malloc(), which are all interposed: only the
// outermost operator of the C++ library enters it.
//
// The C++ operators stand in for themselves only so that a block's site is the caller of `new` and not libstdc++. A
// program's own operators take precedence over ours and reach us as malloc(). One case is out of reach: a program
// without any operators of its own that loads two plugins, RTLD_LOCAL, of which one replaces them and does not use
// malloc(). Both plugins get those of the plugin that came first.
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cstdarg>
#include <initializer_list>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/block_table.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/sys/system_calls.h"

extern "C" {                                                           // the linker's names
extern const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT
extern const char etext __attribute__((visibility("hidden")));         // NOLINT
}

namespace crosstalk::in_target {
namespace {

// Not marked as cold: gcc would lay the end of its callers among cold code, too.
__attribute__((noinline)) void look_for_modules() {
  blocks::shared.look_for_modules.store(0, std::memory_order_relaxed);
  on_module_change();
}

__attribute__((always_inline)) inline void note_modules() {
  if (__builtin_expect(blocks::shared.look_for_modules.load(std::memory_order_relaxed) != 0, 0)) {
    look_for_modules();
  }
}

std::uint64_t value_of(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);  // NOLINT: an address
}

__attribute__((always_inline)) inline void track(void* block, std::size_t bytes, const void* site,
                                                 profile::BlockKind kind = profile::BlockKind::heap) {
  if (kind == profile::BlockKind::heap) {
    blocks::note(value_of(block), bytes, value_of(site), kind);
  } else {
    blocks::insert(value_of(block), bytes, value_of(site), kind);  // beside a system call it costs nothing
  }
  note_modules();
}

using Allocate = void*(std::size_t);
using AllocateAligned = void*(std::size_t, std::size_t);
using AllocateNothrow = void*(std::size_t, const void*);
using AllocateAlignedNothrow = void*(std::size_t, std::size_t, const void*);

CROSSTALK_REAL constinit RealFunction<Allocate> real_malloc("malloc");
CROSSTALK_REAL constinit RealFunction<void*(std::size_t, std::size_t)> real_calloc("calloc");
CROSSTALK_REAL constinit RealFunction<void*(void*, std::size_t)> real_realloc("realloc");
CROSSTALK_REAL constinit RealFunction<void*(void*, std::size_t, std::size_t)> real_reallocarray("reallocarray");
CROSSTALK_REAL constinit RealFunction<AllocateAligned> real_memalign("memalign");
CROSSTALK_REAL constinit RealFunction<AllocateAligned> real_aligned_alloc("aligned_alloc");
CROSSTALK_REAL constinit RealFunction<int(void**, std::size_t, std::size_t)> real_posix_memalign("posix_memalign");
CROSSTALK_REAL constinit RealFunction<Allocate> real_valloc("valloc");
CROSSTALK_REAL constinit RealFunction<Allocate> real_pvalloc("pvalloc");

CROSSTALK_REAL constinit RealFunction<Allocate> real_new("_Znwm");
CROSSTALK_REAL constinit RealFunction<Allocate> real_new_array("_Znam");
CROSSTALK_REAL constinit RealFunction<AllocateNothrow> real_new_nothrow("_ZnwmRKSt9nothrow_t");
CROSSTALK_REAL constinit RealFunction<AllocateNothrow> real_new_array_nothrow("_ZnamRKSt9nothrow_t");
CROSSTALK_REAL constinit RealFunction<AllocateAligned> real_new_aligned("_ZnwmSt11align_val_t");
CROSSTALK_REAL constinit RealFunction<AllocateAligned> real_new_array_aligned("_ZnamSt11align_val_t");
CROSSTALK_REAL constinit RealFunction<AllocateAlignedNothrow> real_new_aligned_nothrow(
    "_ZnwmSt11align_val_tRKSt9nothrow_t");
CROSSTALK_REAL constinit RealFunction<AllocateAlignedNothrow> real_new_array_aligned_nothrow(
    "_ZnamSt11align_val_tRKSt9nothrow_t");

/// The code of the C++ library's operators, which lie together in the libraries there are. Until it has been looked
/// for, it is everywhere: so the usual way asks one question only.
struct OperatorCode {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> bytes{~std::uint64_t{0}};  // 0: they do not lie together
  std::atomic<bool> malloc_seen{false};

  /// One of them has called our malloc(), so they all get their memory there.
  [[nodiscard]] bool calls_malloc() const { return malloc_seen.load(std::memory_order_relaxed); }
  void note_malloc() {
    if (!calls_malloc()) {
      malloc_seen.store(true, std::memory_order_relaxed);
    }
  }
};
constinit OperatorCode operator_code;

__attribute__((noinline, cold)) void find_operators() {
  constexpr std::uint64_t room = 1024;  // for all of them
  constexpr std::uint64_t last = 64;    // more than half of the longest
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  for (RealDefinition* one : std::initializer_list<RealDefinition*>{
           &real_new, &real_new_array, &real_new_nothrow, &real_new_array_nothrow, &real_new_aligned,
           &real_new_array_aligned, &real_new_aligned_nothrow, &real_new_array_aligned_nothrow}) {
    if (const std::uint64_t at = value_of(one->address()); at != 0) {
      low = std::min(low, at);
      high = std::max(high, at);
    }
  }
  operator_code.begin.store(low, std::memory_order_relaxed);
  operator_code.bytes.store(high - low <= room - last ? high - low + last : 0, std::memory_order_release);
}

/// True if the caller may be an operator of the C++ library. Then one of ours called it, and enters the block.
__attribute__((always_inline)) inline bool may_be_operator(const void* site) {
  const std::uint64_t bytes = operator_code.bytes.load(std::memory_order_acquire);
  return value_of(site) - operator_code.begin.load(std::memory_order_relaxed) < bytes;
}
/// True if the operators' code is known.
bool operators_known() { return operator_code.bytes.load(std::memory_order_relaxed) != ~std::uint64_t{0}; }

/// The caller of an operator may have been jumped to, so that the caller seems to be our own.
__attribute__((always_inline)) inline bool is_own(const void* site) {
  return value_of(site) - value_of(&__ehdr_start) < value_of(&etext) - value_of(&__ehdr_start);
}
bool is_operator_or_own(const void* site) {
  if (!operators_known()) {
    find_operators();
  }
  return may_be_operator(site) || is_own(site);
}

using Map = void*(void*, std::size_t, int, int, int, long);
CROSSTALK_REAL constinit RealFunction<Map> real_mmap("mmap");
CROSSTALK_REAL constinit RealFunction<int(void*, std::size_t)> real_munmap("munmap");
CROSSTALK_REAL constinit RealFunction<void*(void*, std::size_t, std::size_t, int, void*)> real_mremap("mremap");

}  // namespace

// --------------------------------------------------------------------------------------------- C

CROSSTALK_INTERPOSE(void*, wrap_malloc, "malloc", (std::size_t bytes));

namespace {

__attribute__((noinline)) void* allocate(std::size_t bytes, const void* site) {
  if (!may_be_operator(site) || !operators_known()) {
    void* block = real_malloc(bytes);
    track(block, bytes, site);
    return block;
  }
  operator_code.note_malloc();
  if (blocks::shared.left_out.load(std::memory_order_acquire) == nullptr) {
    return real_malloc(bytes);
  }
  // The operator enters the block, unless it found it below a threshold that has fallen since: then nobody would say
  // that it was left out.
  void* block = real_malloc(bytes);
  blocks::leave_out(value_of(block), bytes);
  return block;
}

}  // namespace

// Leaves out blocks below the threshold first, for every caller. This is the usual path in programs that allocate so
// much that there is a threshold, so it decides our cost there.
void* wrap_malloc(std::size_t bytes) {
  if (!blocks::is_left_out(bytes)) {
    return allocate(bytes, __builtin_return_address(0));
  }
  void* block = real_malloc(bytes);
  blocks::count(bytes);
  blocks::leave_out(value_of(block), bytes);
  note_modules();
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_calloc, "calloc", (std::size_t count, std::size_t bytes));
void* wrap_calloc(std::size_t count, std::size_t bytes) {
  void* block = real_calloc(count, bytes);
  track(block, count * bytes, __builtin_return_address(0));  // the real one refuses a product that overflows
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_realloc, "realloc", (void* old_block, std::size_t bytes));
void* wrap_realloc(void* old_block, std::size_t bytes) {
  void* block = real_realloc(old_block, bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_reallocarray, "reallocarray", (void* old_block, std::size_t count, std::size_t bytes));
void* wrap_reallocarray(void* old_block, std::size_t count, std::size_t bytes) {
  void* block = real_reallocarray(old_block, count, bytes);
  track(block, count * bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_memalign, "memalign", (std::size_t alignment, std::size_t bytes));
void* wrap_memalign(std::size_t alignment, std::size_t bytes) {
  void* block = real_memalign(alignment, bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_aligned_alloc, "aligned_alloc", (std::size_t alignment, std::size_t bytes));
void* wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (may_be_operator(__builtin_return_address(0)) && operators_known()) {
    return real_aligned_alloc(alignment, bytes);
  }
  void* block = real_aligned_alloc(alignment, bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(int, wrap_posix_memalign, "posix_memalign", (void** out, std::size_t alignment, std::size_t bytes));
int wrap_posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  const int error = real_posix_memalign(out, alignment, bytes);
  if (error == 0) {
    track(*out, bytes, __builtin_return_address(0));
  }
  return error;
}

CROSSTALK_INTERPOSE(void*, wrap_valloc, "valloc", (std::size_t bytes));
void* wrap_valloc(std::size_t bytes) {
  void* block = real_valloc(bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_pvalloc, "pvalloc", (std::size_t bytes));
void* wrap_pvalloc(std::size_t bytes) {
  void* block = real_pvalloc(bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

// ------------------------------------------------------------------------------------------- C++
// The throwing operators may throw through these frames: they need nothing undone.

namespace {
__attribute__((noinline)) void* operator_new(std::size_t bytes, const void* site) {
  void* block = real_new(bytes);
  if (!is_operator_or_own(site)) {
    track(block, bytes, site);
  }
  return block;
}
}  // namespace

CROSSTALK_INTERPOSE(void*, wrap_new, "_Znwm", (std::size_t bytes));
void* wrap_new(std::size_t bytes) {
  if (blocks::is_left_out(bytes) && operator_code.calls_malloc()) {
    return real_new(bytes);
  }
  return operator_new(bytes, __builtin_return_address(0));
}

CROSSTALK_INTERPOSE(void*, wrap_new_array, "_Znam", (std::size_t bytes));
void* wrap_new_array(std::size_t bytes) {
  if (is_operator_or_own(__builtin_return_address(0))) {
    return real_new_array(bytes);
  }
  void* block = real_new_array(bytes);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_nothrow, "_ZnwmRKSt9nothrow_t", (std::size_t bytes, const void* tag));
void* wrap_new_nothrow(std::size_t bytes, const void* tag) {
  void* block = real_new_nothrow(bytes, tag);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_array_nothrow, "_ZnamRKSt9nothrow_t", (std::size_t bytes, const void* tag));
void* wrap_new_array_nothrow(std::size_t bytes, const void* tag) {
  void* block = real_new_array_nothrow(bytes, tag);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_aligned, "_ZnwmSt11align_val_t", (std::size_t bytes, std::size_t alignment));
void* wrap_new_aligned(std::size_t bytes, std::size_t alignment) {
  if (is_operator_or_own(__builtin_return_address(0))) {
    return real_new_aligned(bytes, alignment);
  }
  void* block = real_new_aligned(bytes, alignment);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_array_aligned, "_ZnamSt11align_val_t", (std::size_t bytes, std::size_t alignment));
void* wrap_new_array_aligned(std::size_t bytes, std::size_t alignment) {
  if (is_operator_or_own(__builtin_return_address(0))) {
    return real_new_array_aligned(bytes, alignment);
  }
  void* block = real_new_array_aligned(bytes, alignment);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",
                    (std::size_t bytes, std::size_t alignment, const void* tag));
void* wrap_new_aligned_nothrow(std::size_t bytes, std::size_t alignment, const void* tag) {
  void* block = real_new_aligned_nothrow(bytes, alignment, tag);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

CROSSTALK_INTERPOSE(void*, wrap_new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",
                    (std::size_t bytes, std::size_t alignment, const void* tag));
void* wrap_new_array_aligned_nothrow(std::size_t bytes, std::size_t alignment, const void* tag) {
  void* block = real_new_array_aligned_nothrow(bytes, alignment, tag);
  track(block, bytes, __builtin_return_address(0));
  return block;
}

// -------------------------------------------------------------------------------------- mappings

namespace {

/// Memory that threads may share: anonymous, or a file mapped shared. Reserved address space (PROT_NONE) is
/// none yet.
bool worth_tracking(int protection, int flags) {
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  return protection != PROT_NONE && (anonymous || (flags & MAP_TYPE) != MAP_PRIVATE);
}

/// Replaces the notes of earlier mappings at that place.
void note_mapping(const void* mapping, std::size_t bytes, bool is_shared) {
  SharedMaps& maps = shared_maps();
  const auto begin = reinterpret_cast<std::uint64_t>(mapping);  // NOLINT: an address
  if (!maps.empty()) {
    maps.remove(begin, bytes);
  }
  if (is_shared) {
    maps.add(begin, bytes);
  }
}

void* map(const void* site, void* address, std::size_t bytes, int protection, int flags, int fd, long offset) {
  void* mapping = real_mmap(address, bytes, protection, flags, fd, offset);
  if (mapping != MAP_FAILED) {
    note_mapping(mapping, bytes, (flags & MAP_TYPE) != MAP_PRIVATE);
  }
  if (mapping != MAP_FAILED && worth_tracking(protection, flags)) {
    track(mapping, bytes, site, profile::BlockKind::mapping);
  }
  return mapping;
}

}  // namespace

CROSSTALK_INTERPOSE(void*, wrap_mmap, "mmap", (void* address, std::size_t bytes, int prot, int flags, int fd, long at));
void* wrap_mmap(void* address, std::size_t bytes, int prot, int flags, int fd, long at) {
  return map(__builtin_return_address(0), address, bytes, prot, flags, fd, at);
}

CROSSTALK_INTERPOSE(void*, wrap_mmap64, "mmap64",
                    (void* address, std::size_t bytes, int prot, int flags, int fd, long at));
void* wrap_mmap64(void* address, std::size_t bytes, int prot, int flags, int fd, long at) {
  return map(__builtin_return_address(0), address, bytes, prot, flags, fd, at);
}

CROSSTALK_INTERPOSE(int, wrap_munmap, "munmap", (void* address, std::size_t bytes));
int wrap_munmap(void* address, std::size_t bytes) {
  // Before the call: after it another thread may have got, and entered, the same place.
  const auto begin = reinterpret_cast<std::uint64_t>(address);  // NOLINT: an address
  on_unmap(begin, bytes);
  blocks::remove(begin, bytes);
  if (!shared_maps().empty()) {
    shared_maps().remove(begin, bytes);
  }
  return real_munmap(address, bytes);
}

CROSSTALK_INTERPOSE(void*, wrap_mremap, "mremap",
                    (void* address, std::size_t old_bytes, std::size_t bytes, int flags, ...));
void* wrap_mremap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  va_list more;
  va_start(more, flags);
  void* wanted = va_arg(more, void*);  // as libc does: the register's content if it was not given
  va_end(more);
  const bool any_shared = !shared_maps().empty();
  const auto begin = reinterpret_cast<std::uint64_t>(address);  // NOLINT: an address
  on_unmap(begin, old_bytes);
  const bool is_shared = any_shared && shared_maps().remove(begin, old_bytes != 0 ? old_bytes : bytes);
  void* mapping = real_mremap(address, old_bytes, bytes, flags, wanted);
  const bool moved = mapping != MAP_FAILED;
  if (any_shared) {
    note_mapping(moved ? mapping : address, moved ? bytes : old_bytes, is_shared);
  }
  if (moved) {
    track(mapping, bytes, __builtin_return_address(0), profile::BlockKind::mapping);
  }
  return mapping;
}

// ----------------------------------------------------------------------------- System V segments

namespace {

CROSSTALK_REAL constinit RealFunction<void*(int, const void*, int)> real_shmat("shmat");
CROSSTALK_REAL constinit RealFunction<int(const void*)> real_shmdt("shmdt");

std::size_t segment_bytes(int id) {
  shmid_ds status{};
  return system_call(SYS_shmctl, id, IPC_STAT, &status) >= 0 ? status.shm_segsz : 0;
}

}  // namespace

CROSSTALK_INTERPOSE(void*, wrap_shmat, "shmat", (int id, const void* address, int flags));
void* wrap_shmat(int id, const void* address, int flags) {
  void* mapping = real_shmat(id, address, flags);
  const std::size_t bytes = mapping != MAP_FAILED ? segment_bytes(id) : 0;
  if (bytes != 0) {
    note_mapping(mapping, bytes, true);
    track(mapping, bytes, __builtin_return_address(0), profile::BlockKind::mapping);
  }
  return mapping;
}

CROSSTALK_INTERPOSE(int, wrap_shmdt, "shmdt", (const void* address));
int wrap_shmdt(const void* address) {
  shared_maps().remove_at(reinterpret_cast<std::uint64_t>(address));  // NOLINT: an address
  return real_shmdt(address);
}

}  // namespace crosstalk::in_target
