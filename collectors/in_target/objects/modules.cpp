// SPDX-License-Identifier: Apache-2.0
// Reports the modules that come and go.
//
// dlopen is not interposed. A wrapper would become its caller, and glibc resolves a name without a slash, $ORIGIN and
// the namespace by its caller's RUNPATH and link map: plugins would not be found. Nothing reports the end of a dlopen,
// so the library looks for modules:
//   - when an instruction pointer is sampled or trapped outside all known modules (note_code_address): the next
//     allocation, outside any handler, looks. Only running modules can be in a profile, so this misses none that
//     matters;
//   - what the loader does not know, because the program mapped a file's code itself, is looked for in the list of
//     mappings (mapped_parts.h);
//   - before and after each dlclose, to see modules that lived between two looks. Interposing dlclose is safe: its
//     caller does not matter;
//   - when the core asks: at attach, at exit, and when a thread starts, but then once in a tenth of a second unless it
//     starts in an unknown module. glibc walks all of its modules for each look, under a common lock, which the program
//     holds while it looks at its modules itself.
// A look without a change is one callback (glibc counts loads and unloads in dlpi_adds and dlpi_subs). A new module
// gets the time of the look before, which did not find it: so no sample in it is older than it.
#include "collectors/in_target/objects/modules.h"

#include <sys/auxv.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/block_table.h"
#include "collectors/in_target/objects/link_namespaces.h"
#include "collectors/in_target/objects/mapped_parts.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace modules {
namespace {

// Looks at the modules again so often after a change: the loader works at a module for milliseconds.
constexpr std::uint32_t most_looks_again = 50;
constexpr std::uint64_t pause_ns = 20'000'000;  // before each

/// A module that was reported. `begin` and `end` are read by handlers.
struct Known {
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;
  std::uint64_t identity = 0;  // hash of name and build id: another file may come to the same place
  bool seen = false;           // in this look
};

struct Book {
  Known known[known_limit];
  std::atomic<std::uint32_t> count{0};  // slots in use, freed ones (end = 0) among them
  unsigned long long adds = 0;          // dlpi_adds and dlpi_subs at the last look
  unsigned long long subs = 0;
  std::atomic<std::uint64_t> last_look_ns{0};  // read without the flag when a thread starts
  std::int64_t lowest_static_tls = 0;
  std::atomic<bool> code_outside{false};      // of all modules that were known then
  std::atomic<std::uint64_t> outside{0};      // an address of such code since the last look
  std::atomic<std::uint32_t> looks_again{0};  // looks still to take though nothing changes
  bool complete = false;                      // every record of the last look was taken
  char path[path_limit] = {};                 // of the module being reported: the stack may be small
  ProcessFlag looked_at;                      // by one thread at a time
};

constinit Book book;

std::uint64_t identity_of(const dl_phdr_info& module, const profile::ModuleLoad& load) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto add = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const char* c = module.dlpi_name; c != nullptr && *c != 0; ++c) {
    add(static_cast<std::uint8_t>(*c));
  }
  for (std::size_t i = 0; i < load.build_id_size; ++i) {
    add(load.build_id[i]);
  }
  return hash;
}

Known* find_known(const Extent& extent, std::uint64_t identity) {
  const std::uint32_t count = book.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Known& known = book.known[i];
    if (known.begin.load(std::memory_order_relaxed) == extent.begin &&
        known.end.load(std::memory_order_relaxed) == extent.end && known.identity == identity) {
      return &known;
    }
  }
  return nullptr;
}

/// Null when all slots are taken.
Known* free_slot() {
  const std::uint32_t count = book.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (book.known[i].end.load(std::memory_order_relaxed) == 0) {
      return &book.known[i];
    }
  }
  if (count == known_limit) {
    return nullptr;
  }
  book.count.store(count + 1, std::memory_order_relaxed);
  return &book.known[count];
}

/// Sets the distance of the module's thread-local block from the thread pointer, if it is the same in every thread. A
/// block that was allocated for this thread alone lies elsewhere: on the heap, far from the static area, which ends at
/// the thread pointer and has some 2 KiB to spare for late modules (glibc.rtld.optional_static_tls).
void fill_tls(const dl_phdr_info& module, bool first_look, profile::ModuleLoad& load) {
  constexpr std::int64_t spare = 8192;
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    if (module.dlpi_phdr[i].p_type != PT_TLS || module.dlpi_tls_data == nullptr) {
      continue;
    }
    const auto data = reinterpret_cast<std::uint64_t>(module.dlpi_tls_data);  // NOLINT: an address
    const auto offset = static_cast<std::int64_t>(data - fs_base());
    if (first_look && offset < book.lowest_static_tls) {
      book.lowest_static_tls = offset;
    }
    if (first_look || (offset < 0 && offset >= book.lowest_static_tls - spare)) {
      load.tls_offset = offset;
      load.tls_size = module.dlpi_phdr[i].p_memsz;
    }
  }
}

/// The path as an absolute one; "" for the vdso.
std::size_t path_of(const dl_phdr_info& module, const profile::ModuleLoad& load, char* out) {
  if (load.is_vdso != 0) {
    return 0;
  }
  const char* name = module.dlpi_name == nullptr ? "" : module.dlpi_name;
  if (name[0] == '/') {
    const std::size_t length = strlen(name);
    const std::size_t size = length < path_limit ? length : 0;
    memcpy(out, name, size);
    return size;
  }
  if (name[0] == 0) {  // the program itself
    return program_path(out, path_limit);
  }
  return mapped_path(load.begin, out, path_limit);
}

struct Look {
  std::uint64_t now_ns = 0;
  bool first = false;
  bool others_visited = false;  // modules of other namespaces, in this pass
  bool changed = false;
  bool complete = true;
  bool any_gone = false;
};

/// Returns the mapping's extent and identity, without the facts that only a report needs.
profile::ModuleLoad identify(const dl_phdr_info& module) {
  const Extent extent = extent_of(module);
  profile::ModuleLoad load;
  load.header.type = profile::RecordType::module_load;
  load.begin = extent.begin;
  load.end = extent.end;
  load.bias = module.dlpi_addr;
  load.build_id_size = static_cast<std::uint8_t>(build_id_of(module, load.build_id, sizeof(load.build_id)));
  const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  load.is_vdso = vdso >= extent.begin && vdso < extent.end ? 1 : 0;
  return load;
}

/// Lets a pass visit the modules of other namespaces as well, once.
int visit_others(const dl_phdr_info& module, ModuleVisitor visitor, Look& look) {
  return std::exchange(look.others_visited, true) ? 0 : visit_other_namespaces(module, visitor, &look);
}

/// First pass: marks the known ones that are still there; ends at once when nothing has changed.
int mark_seen(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  auto& look = *static_cast<Look*>(data);
  if (!look.changed) {
    if (book.complete && module->dlpi_adds == book.adds && module->dlpi_subs == book.subs) {
      return 1;
    }
    look.changed = true;
    book.adds = module->dlpi_adds;
    book.subs = module->dlpi_subs;
  }
  const profile::ModuleLoad load = identify(*module);
  Known* known = find_known({load.begin, load.end}, identity_of(*module, load));
  if (known != nullptr) {
    known->seen = true;
  }
  return visit_others(*module, mark_seen, look);
}

/// Before the new ones are reported, which may lie in the same place.
void report_gone(Look& look) {
  const std::uint32_t count = book.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Known& known = book.known[i];
    const bool gone = known.end.load(std::memory_order_relaxed) != 0 && !known.seen;
    known.seen = false;
    if (!gone) {
      continue;
    }
    profile::ModuleUnload unload;
    unload.header.type = profile::RecordType::module_unload;
    unload.time_ns = look.now_ns;
    unload.begin = known.begin.load(std::memory_order_relaxed);
    unload.end = known.end.load(std::memory_order_relaxed);
    look.any_gone = true;
    if (emit(&unload, sizeof(unload), nullptr, 0)) {
      known.end.store(0, std::memory_order_relaxed);
    } else {
      look.complete = false;  // the ring is full: again at the next look
    }
  }
}

/// Reports the module if it is new. False: there is no room for more.
bool report(const dl_phdr_info& module, Look& look) {
  profile::ModuleLoad load = identify(module);
  const std::uint64_t identity = identity_of(module, load);
  if (load.end == 0 || find_known({load.begin, load.end}, identity) != nullptr) {
    return true;
  }
  Known* slot = free_slot();
  if (slot == nullptr) {
    return false;
  }
  load.time_ns = look.first || look.any_gone ? look.now_ns : book.last_look_ns.load(std::memory_order_relaxed);
  fill_tls(module, look.first, load);
  const std::size_t path_bytes = path_of(module, load, book.path);
  if (!emit(&load, sizeof(load), book.path, path_bytes)) {
    look.complete = false;
    return true;
  }
  slot->identity = identity;
  slot->begin.store(load.begin, std::memory_order_relaxed);
  slot->end.store(load.end, std::memory_order_relaxed);
  return true;
}

/// Second pass.
int report_new(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  auto& look = *static_cast<Look*>(data);
  return report(*module, look) ? visit_others(*module, report_new, look) : 1;
}

/// The program's own looks at the modules, by dl_iterate_phdr(). Meanwhile it holds the loader's lock, perhaps waiting
/// for a thread that starts or allocates, and we would have that one wait for the lock.
constinit std::atomic<std::uint32_t> lookers{0};
constinit std::atomic<std::uint64_t> last_looker_ns{0};

// One that has left by an exception, or was cancelled, is never counted down.
bool program_looks() {
  constexpr std::uint64_t patience_ns = 10'000'000'000;
  return lookers.load(std::memory_order_seq_cst) != 0 &&
         monotonic_ns() < last_looker_ns.load(std::memory_order_relaxed) + patience_ns;
}

// Waits for a thread of ours that took the flag before it could see this count.
void begin_looking() {
  constexpr int patience = 1000;
  const std::int32_t pid = kernel_process_id();
  last_looker_ns.store(monotonic_ns(), std::memory_order_relaxed);
  lookers.fetch_add(1, std::memory_order_seq_cst);
  for (int i = 0; i < patience && book.looked_at.held_by(pid); ++i) {
    system_call(SYS_sched_yield);
  }
}

void end_looking() {
  std::uint32_t count = lookers.load(std::memory_order_relaxed);
  while (count != 0 && !lookers.compare_exchange_weak(count, count - 1, std::memory_order_release)) {
  }
}

}  // namespace

std::int64_t lowest_static_tls() { return book.lowest_static_tls; }

}  // namespace modules

namespace {

bool is_in_module(std::uint64_t ip) {
  using modules::book;
  const std::uint32_t count = book.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (ip >= book.known[i].begin.load(std::memory_order_relaxed) &&
        ip < book.known[i].end.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool is_known_code(std::uint64_t ip) { return is_in_module(ip) || modules::is_in_part(ip); }

}  // namespace

void on_module_change() {
  using namespace modules;
  const Passage passage;
  if (!observing()) {
    return;
  }
  const SavedErrno saved;
  const TryLock lock(book.looked_at, kernel_process_id());
  if (!lock.held()) {
    return;
  }
  if (program_looks()) {
    blocks::shared.look_for_modules.store(1, std::memory_order_relaxed);
    return;
  }
  Look look;
  look.now_ns = monotonic_ns();
  look.first = book.last_look_ns.load(std::memory_order_relaxed) == 0;
  iterate_modules(mark_seen, &look);
  if (look.changed) {
    report_gone(look);
    look.others_visited = false;
    iterate_modules(report_new, &look);
    book.complete = look.complete;
  }
  if (const std::uint64_t ip = book.outside.exchange(0, std::memory_order_relaxed); ip != 0 && !is_known_code(ip)) {
    look_for_parts(is_in_module, look.now_ns);
  }
  const std::uint32_t again = book.looks_again.load(std::memory_order_relaxed);
  if ((look.changed || again != 0) && !on_new_modules()) {
    book.looks_again.store(look.changed ? most_looks_again : again - 1, std::memory_order_relaxed);
  } else {
    book.looks_again.store(0, std::memory_order_relaxed);
  }
  book.last_look_ns.store(look.now_ns, std::memory_order_relaxed);
}

void on_thread_in_module(std::uint64_t routine) {
  constexpr std::uint64_t interval_ns = 100'000'000;
  const std::uint64_t last_ns = modules::book.last_look_ns.load(std::memory_order_relaxed);
  if (!is_known_code(routine) || monotonic_ns() > last_ns + interval_ns) {
    on_module_change();
  }
}

namespace {
constinit ForkHold fork_hold;
}  // namespace

// Waits, but not for ever, for a thread that was preempted in a look, which takes some ten microseconds.
void hold_modules_for_fork() {
  constexpr int tries = 1000;
  constexpr timespec pause{0, 100'000};
  for (int i = 0; i < tries && !fork_hold.take(modules::book.looked_at); ++i) {
    system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
}

void release_modules_after_fork() { fork_hold.give(modules::book.looked_at); }

void modules_after_fork() { modules::lookers.store(0, std::memory_order_relaxed); }

void forget_modules() {
  using modules::book;
  const std::uint32_t count = book.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    book.known[i].end.store(0, std::memory_order_relaxed);
    book.known[i].begin.store(0, std::memory_order_relaxed);
  }
  book.adds = book.subs = 0;
  book.complete = false;
  book.last_look_ns.store(0, std::memory_order_relaxed);
  book.code_outside.store(false, std::memory_order_relaxed);
  modules::forget_parts();
}

void look_for_modules_again() { modules::book.looks_again.store(modules::most_looks_again, std::memory_order_relaxed); }

void note_code_address(std::uint64_t ip) {
  using modules::book;
  if (book.looks_again.load(std::memory_order_relaxed) != 0 &&
      monotonic_ns() > book.last_look_ns.load(std::memory_order_relaxed) + modules::pause_ns) {
    blocks::shared.look_for_modules.store(1, std::memory_order_relaxed);
  }
  if (!is_known_code(ip)) {
    book.code_outside.store(true, std::memory_order_relaxed);
    book.outside.store(ip, std::memory_order_relaxed);
    blocks::shared.look_for_modules.store(1, std::memory_order_relaxed);
  }
}

void report_jit_dump() {
  using modules::book;
  const TryLock lock(book.looked_at, kernel_process_id());
  if (!lock.held() || !book.code_outside.load(std::memory_order_relaxed)) {
    return;
  }
  modules::look_for_parts(is_in_module, UINT64_MAX);
  char name[sizeof "jit-.dump" + 10];
  std::size_t length = 0;
  const auto add = [&](std::string_view text) {
    memcpy(name + length, text.data(), text.size());
    length += text.size();
  };
  add("jit-");
  char digits[10];
  std::size_t first = sizeof digits;
  for (auto pid = static_cast<std::uint32_t>(kernel_process_id()); pid != 0; pid /= 10) {
    digits[--first] = static_cast<char>('0' + pid % 10);
  }
  add({digits + first, sizeof digits - first});
  add(".dump");
  modules::MappedFile file;
  if (!modules::find_mapping_called({name, length}, file, book.path, modules::path_limit)) {
    return;
  }
  profile::ModuleLoad load;
  load.header.type = profile::RecordType::module_load;
  load.time_ns = monotonic_ns();
  load.begin = load.bias = file.begin;
  load.end = file.end;
  emit(&load, sizeof(load), book.path, file.path_length);
}

namespace {
CROSSTALK_REAL constinit RealFunction<int(void*)> real_dlclose("dlclose");
}  // namespace

CROSSTALK_INTERPOSE(int, wrap_dl_iterate_phdr, "dl_iterate_phdr", (ModuleVisitor, void*));
int wrap_dl_iterate_phdr(ModuleVisitor visitor, void* data) {
  if (!may_make_system_calls()) {
    return iterate_modules(visitor, data);
  }
  modules::begin_looking();
  const int result = iterate_modules(visitor, data);
  modules::end_looking();
  return result;
}

CROSSTALK_INTERPOSE(int, wrap_dlclose, "dlclose", (void* handle));
int wrap_dlclose(void* handle) {
  on_module_change();
  const int result = real_dlclose(handle);
  on_module_change();
  return result;
}

}  // namespace crosstalk::in_target
