// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/guest_core.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/objects/block_table.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/system_calls.h"

#define SHOWN __attribute__((visibility("default")))

namespace crosstalk::in_target {
namespace {

constinit profile::SessionConfig config;
constinit std::atomic<bool> running{false};
constinit std::int32_t pid = 0;
constinit std::atomic<int> counts[guest_events] = {};
constinit GuestModule known_modules[512] = {};
constinit std::atomic<unsigned> module_count{0};

void count(GuestEvent event) { counts[event].fetch_add(1); }

// As the library's: the kernel blocks the signals that the target blocks.
void on_signal(int signal_number, siginfo_t* info, void* context) {
  if (signal_number == SIGTRAP && block_trap_as_wished(context)) {
    system_call(SYS_rt_sigqueueinfo, kernel_process_id(), signal_number, info);
  } else if (signal_number == SIGTRAP) {
    count(guest_trap);
  }
}

// As the library's: forwards other signals than ticks to libc.
void on_clock_signal(int signal_number, siginfo_t* info, void* context) {
  count(guest_clock_signal);
  if (const KernelAction wish = clock_signal_wish(); wish.handler != nullptr) {
    wish.handler(signal_number, info, context);
  }
}

KernelAction kernel_action(int signal_number) {
  KernelAction action{};
  get_kernel_action(signal_number, action);
  return action;
}

__attribute__((constructor)) void start() {
  if (getenv("GUEST_IDLE") != nullptr) {
    track_blocks(false, 0);
    return;
  }
  pid = kernel_process_id();
  config.follow_children = getenv("GUEST_NO_CHILDREN") == nullptr ? 1 : 0;
  const char* arena = getenv(profile::arena_variable);
  if (arena != nullptr && strcmp(arena, "/dev/null") == 0) {
    count(guest_found_arena);
  }
  remember_environment();
  prepare_exec_wrappers();
  hide_environment();
  pthread_atfork(nullptr, nullptr, environment_after_fork);
  own_signals(SIGTRAP);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  real_sigaction(SIGTRAP, &action, nullptr);
  if (!take_clock_signal(on_clock_signal, SA_SIGINFO | SA_RESTART)) {
    return;
  }
  adopt_thread_mask();
  running = true;
  on_module_change();
}

}  // namespace

bool observing() { return running.load(std::memory_order_relaxed); }
const profile::SessionConfig* session_config() { return pid == 0 ? nullptr : &config; }
std::int32_t attached_pid() { return pid; }
void before_exec() { count(guest_before_exec); }
void exec_failed() { count(guest_exec_failed); }
void on_seccomp() { count(guest_seccomp); }
bool confined() { return false; }
bool may_make_system_calls() { return true; }
bool next_program_has_room() { return true; }
void tell_unobserved(const UnobservedProgram& /*program*/, std::int32_t /*pid*/, bool withdrawn) {
  count(withdrawn ? guest_withdrawn : guest_unobserved);
}
void on_user_dispatch() {}
void on_breakpoint_wanted() {}
void on_limit_raised() {}
bool on_new_modules() { return true; }
void on_own_descriptors(bool /*new_thread*/) {}
void on_unmap(std::uint64_t /*begin*/, std::uint64_t /*bytes*/) {}
bool on_signal_limit() { return false; }
bool lends_stacks() { return true; }
void on_trap_blocked() {}
void on_signal_taken(int /*signal_number*/) { count(guest_signal_taken); }

void end_regions_below(std::uint64_t /*stack_pointer*/) {}
void forget_wait() {}
constinit std::atomic<bool> alone{false};
bool is_alone() { return alone.load(); }
constinit std::atomic<bool> waits_wanted{true};
MeasuredWait::MeasuredWait(profile::WaitKind kind, const void* site, const void* /*frame*/)
    : place_(profile::ThreadWaits::place_of(kind, reinterpret_cast<std::uint64_t>(site))) {
  count(guest_wait);
}
MeasuredWait::~MeasuredWait() = default;

bool emit(const void* fixed, std::size_t /*fixed_bytes*/, const void* tail, std::size_t tail_bytes) {
  profile::RecordHeader header;
  memcpy(&header, fixed, sizeof(header));
  if (header.type == profile::RecordType::module_load) {
    profile::ModuleLoad load;
    memcpy(&load, fixed, sizeof(load));
    GuestModule& m = known_modules[module_count.load()];
    const std::size_t length = tail_bytes < sizeof(m.path) ? tail_bytes : 0;
    memcpy(m.path, tail, length);
    m.path[length] = 0;
    m.bias = load.bias;
    m.begin = load.begin;
    m.end = load.end;
    m.tls_size = load.tls_size;
    m.tls_offset = load.tls_offset;
    m.time_ns = load.time_ns;
    m.build_id_size = load.build_id_size;
    m.is_vdso = load.is_vdso;
    module_count.fetch_add(1);
  } else if (header.type == profile::RecordType::module_unload) {
    profile::ModuleUnload unload;
    memcpy(&unload, fixed, sizeof(unload));
    for (unsigned i = 0; i < module_count.load(); ++i) {
      known_modules[i].unloaded |= known_modules[i].begin == unload.begin ? 1 : 0;
    }
  }
  return true;
}

}  // namespace crosstalk::in_target

using namespace crosstalk::in_target;  // NOLINT

extern "C" {

SHOWN int guest_find_block(const void* address, GuestBlock* out) {
  BlockInfo info;
  if (!find_block(reinterpret_cast<std::uint64_t>(address), info)) {  // NOLINT: an address
    return 0;
  }
  *out = {info.begin, info.bytes, info.site, info.kind == crosstalk::profile::BlockKind::mapping ? 1 : 0,
          info.first_report ? 1 : 0};
  return 1;
}
SHOWN unsigned guest_blocks_made() {
  unsigned made = 0;
  for (const std::uint32_t of_class : blocks::made_blocks.made) {
    made += of_class;
  }
  return made;
}
SHOWN int guest_count(int event) { return counts[event].load(); }
SHOWN int guest_owns(int signal_number) {
  return kernel_action(signal_number).handler == (signal_number == clock_signal ? &on_clock_signal : &on_signal) ? 1
                                                                                                                 : 0;
}
SHOWN std::uint64_t guest_kernel_mask() {
  std::uint64_t mask = 0;
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, 8);
  return mask;
}
SHOWN std::uint64_t guest_kernel_action_mask(int signal_number) { return kernel_action(signal_number).mask; }
SHOWN int guest_module(unsigned index, GuestModule* out) {
  if (index >= module_count.load()) {
    return 0;
  }
  *out = known_modules[index];
  return 1;
}
SHOWN void guest_note_code(const void* address) { note_code_address(reinterpret_cast<std::uint64_t>(address)); }
SHOWN void guest_track_blocks(int on, std::uint64_t threshold) { track_blocks(on != 0, threshold); }
SHOWN void guest_blocks_after_fork() { blocks_after_fork(); }
SHOWN void guest_be_alone(int is) { alone = is != 0; }
SHOWN std::uint8_t guest_mask_shadow() { return mask_shadow(); }
SHOWN void guest_inherit_mask_shadow(std::uint8_t bits) { inherit_mask_shadow(bits); }
SHOWN void guest_adopt_thread_mask() { adopt_thread_mask(); }
SHOWN void* guest_wished_trap_handler() {
  return reinterpret_cast<void*>(target_trap_action()->sa_handler);  // NOLINT
}
}
