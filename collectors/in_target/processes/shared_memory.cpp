// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

constexpr std::int32_t memory_ms = 2000;  // a process sampled longer ago is no user any more
constexpr std::uint64_t ns_per_ms = 1'000'000;

enum Part : std::uint32_t { undecided = 0, takes_part = 1, keeps_out = 2 };
constinit std::atomic<std::uint32_t> part{undecided};

// Thread ids are numbers of a pid namespace: by one of another namespace anyone might be armed.
void decide_to_take_part() {
  struct stat status {};
  const bool seen = system_call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) == 0;
  const bool same = seen && status.st_ino == runtime().arena.header->pid_namespace;
  part.store(same ? takes_part : keeps_out, std::memory_order_relaxed);
  if (!same) {
    emit_message("shared_memory_apart",
                 "a process has no /proc that would tell its pid namespace: what it exchanges with other processes "
                 "through shared memory is not observed");
  }
}

bool record_mapping(ThreadState& self, const SharedPlace& place, std::uint64_t now_ns, const char* name,
                    std::size_t name_bytes) {
  profile::SharedMapping record;
  record.header.type = profile::RecordType::shared_mapping;
  record.time_ns = now_ns;
  record.begin = place.begin;
  record.bytes = place.bytes;
  record.file_offset = place.file_offset;
  record.device = place.device;
  record.inode = place.inode;
  return append(self, &record, sizeof record, name, name_bytes);
}

void identify(ThreadState& self, std::uint64_t address, std::uint64_t now_ns) {
  static char name[512];  // on a handler's stack it would take more of the target's than a guest should
  static constinit ProcessFlag name_taken;
  const TryLock lock(name_taken, runtime().pid);
  if (!lock.held()) {
    return;  // the next sample will do
  }
  SharedPlace place;
  const SharedMaps::Claim claim = shared_maps().claim(address, place);
  if (claim.granted()) {
    auto outcome = SharedMaps::Outcome::unknown;
    modules::MappedFile file;
    if (modules::find_mapped_file(address, file, name, sizeof name) && file.shared && file.inode != 0) {
      place.file_offset = file.offset + (place.begin - file.begin);
      place.device = file.device;
      place.inode = file.inode;
      outcome = record_mapping(self, place, now_ns, name, file.path_length) ? SharedMaps::Outcome::identified
                                                                            : SharedMaps::Outcome::again;
    } else {
      emit_message("shared_memory_unknown",
                   "/proc/self/maps does not tell what some shared memory is of: what processes exchange there is not "
                   "observed");
    }
    shared_maps().settle(claim, outcome, place);
  }
}

// Another process's time may be a little later than ours.
bool recent(const SharedUser& user, std::uint32_t now_ms) {
  return static_cast<std::int32_t>(now_ms - user.time_ms.load(std::memory_order_relaxed)) < memory_ms;
}

void fill_in(SharedUser& user, const SharedPlace& place, std::uint32_t now_ms) {
  user.begin.store(place.begin, std::memory_order_relaxed);
  user.bytes.store(place.bytes, std::memory_order_relaxed);
  user.file_offset.store(place.file_offset, std::memory_order_relaxed);
  user.time_ms.store(now_ms, std::memory_order_relaxed);
}

// Notes the use; true when another process has used it lately.
bool note_use(std::uint64_t object, const SharedPlace& place, std::uint32_t now_ms) {
  const std::int32_t pid = runtime().pid;
  SharedUser* mine = nullptr;
  SharedUser* room = nullptr;
  bool others = false;
  bool has_free = false;
  for (SharedUser& user : cross_process_state().user) {
    const std::uint64_t of = user.object.load(std::memory_order_acquire);
    if (of == object && user.pid.load(std::memory_order_relaxed) == pid) {
      mine = &user;
    } else if (of == object && recent(user, now_ms)) {
      others = true;
    } else if ((of == 0 && !has_free) || (room == nullptr && !recent(user, now_ms))) {
      room = &user;
      has_free = of == 0;
    }
  }
  if (mine != nullptr) {
    fill_in(*mine, place, now_ms);
  } else if (room != nullptr) {
    std::uint64_t old = room->object.load(std::memory_order_relaxed);
    if ((old == 0 || !recent(*room, now_ms)) && room->object.compare_exchange_strong(old, 0)) {
      room->pid.store(pid, std::memory_order_relaxed);
      fill_in(*room, place, now_ms);
      room->object.store(object, std::memory_order_release);
    }
  }
  return others;
}

// The kernel requires the same of a process that watches another one as of a debugger.
char ptrace_scope() {
  char scope = '0';
  const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    system_call(SYS_read, fd, &scope, 1);
    system_call(SYS_close, fd);
  }
  return scope;
}

}  // namespace

CrossProcessState& cross_process_state() {
  return *reinterpret_cast<CrossProcessState*>(runtime().arena.cross_process());
}

bool sharing() { return part.load(std::memory_order_relaxed) == takes_part; }

SharedLine find_shared_line(ThreadState& self, std::uint64_t address, std::uint64_t now_ns) {
  SharedMaps& maps = shared_maps();
  if (maps.empty()) {
    return {};
  }
  SharedPlace place;
  SharedLookup found = maps.find(address, place);
  if (found == SharedLookup::unidentified) {
    if (part.load(std::memory_order_relaxed) == undecided) {
      decide_to_take_part();
    }
    identify(self, address, now_ns);
    found = maps.find(address, place);
  }
  if (maps.overflowed()) {
    emit_message("shared_mappings_many",
                 "a program has more shared mappings at a time than are kept track of: what processes exchange in some "
                 "of them is not observed");
  }
  if (found != SharedLookup::found || !sharing()) {
    return {};
  }
  SharedLine line;
  line.device = place.device;
  line.inode = place.inode;
  line.file_offset = (place.file_offset + (address - place.begin)) & ~(std::uint64_t{profile::cache_line} - 1);
  line.known = true;
  line.others = note_use(line.object(), place, static_cast<std::uint32_t>(now_ns / ns_per_ms));
  return line;
}

// However long ago: a process that waits is sampled seldom, and one that has ended has no thread that could be armed.
std::uint32_t find_uses(const SharedLine& line, SharedUse* uses, std::uint32_t capacity) {
  const std::uint64_t object = line.object();
  std::uint32_t count = 0;
  for (SharedUser& user : cross_process_state().user) {
    if (count == capacity || user.object.load(std::memory_order_acquire) != object) {
      continue;
    }
    const std::int32_t pid = user.pid.load(std::memory_order_relaxed);
    const std::uint64_t into = line.file_offset - user.file_offset.load(std::memory_order_relaxed);
    if (pid != runtime().pid && into < user.bytes.load(std::memory_order_relaxed)) {
      uses[count++] = {pid, user.begin.load(std::memory_order_relaxed) + into};
    }
  }
  return count;
}

void remote_events_refused() {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  if (ptrace_scope() == '0') {
    emit_message("shared_memory_refused",
                 "a process may not set watchpoints in another one that it shares memory with, which has another user, "
                 "privileges or is not dumpable: what they exchange is seen in part");
  } else {
    emit_message("shared_memory_refused",
                 "kernel.yama.ptrace_scope forbids that processes set watchpoints in each other: what they exchange "
                 "through shared memory is seen in part; sysctl kernel.yama.ptrace_scope=0 allows it");
  }
}

void shared_memory_after_fork() {
  part.store(undecided, std::memory_order_relaxed);
  shared_maps().after_fork();
}

}  // namespace crosstalk::in_target
