// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/processes/kick.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/session/handlers.h"
#include "collectors/in_target/session/messages.h"
#include "collectors/in_target/session/record_writer.h"
#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

constexpr std::int32_t memory_ms = 2000;  // who was sampled there so long ago counts as no user any more
constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr auto relaxed = std::memory_order_relaxed;

enum Part : std::uint32_t { undecided = 0, takes_part = 1, keeps_out = 2 };
constinit std::atomic<std::uint32_t> part{undecided};

// Thread ids are numbers of a pid namespace: to signal by one of another namespace would hit anyone.
void decide_to_take_part(const ThreadState& self) {
  struct stat status {};
  const bool seen = system_call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) == 0;
  std::uint64_t theirs = 0;
  const bool first = seen && cross_process_state().pid_namespace.compare_exchange_strong(theirs, status.st_ino);
  const bool same = seen && (first || theirs == status.st_ino);
  if (same && (self.kick_blocked || !install_kick_handler())) {
    stop_sharing();
    return;
  }
  part.store(same ? takes_part : keeps_out, relaxed);
  if (!same) {
    emit_message("shared_memory_apart",
                 "a process is in a pid namespace of its own, or has no /proc: what it exchanges with other processes "
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
  return static_cast<std::int32_t>(now_ms - user.time_ms.load(relaxed)) < memory_ms;
}

// Notes the use; true when another process has used it lately.
bool note_use(const ThreadState& self, std::uint64_t object, std::uint32_t now_ms) {
  const std::int32_t pid = runtime().pid;
  SharedUser* mine = nullptr;
  SharedUser* place = nullptr;
  bool others = false;
  for (SharedUser& user : cross_process_state().user) {
    const std::uint64_t of = user.object.load(std::memory_order_acquire);
    if (of == object && user.pid.load(relaxed) == pid) {
      mine = &user;
    } else if (of == object && recent(user, now_ms)) {
      others = true;
    } else if (place == nullptr && (of == 0 || !recent(user, now_ms))) {
      place = &user;
    }
  }
  if (mine == nullptr && place != nullptr) {
    std::uint64_t old = place->object.load(relaxed);
    if ((old == 0 || !recent(*place, now_ms)) && place->object.compare_exchange_strong(old, 0)) {
      place->pid.store(pid, relaxed);
      place->number.store(self.number, relaxed);
      place->time_ms.store(now_ms, relaxed);
      place->object.store(object, std::memory_order_release);
    }
  } else if (mine != nullptr) {
    mine->number.store(self.number, relaxed);
    mine->time_ms.store(now_ms, relaxed);
  }
  return others;
}

}  // namespace

CrossProcessState& cross_process_state() {
  return *reinterpret_cast<CrossProcessState*>(runtime().arena.cross_process());
}

void stop_sharing() {
  if (part.exchange(keeps_out, relaxed) != keeps_out) {
    shut_gates();
    emit_message("shared_memory_signal",
                 "a process uses or blocks SIGURG, by which processes that share memory are told of each other's "
                 "watches: what it exchanges with others is not observed from then on");
  }
}

bool sharing() { return part.load(relaxed) == takes_part; }

SharedLine find_shared_line(ThreadState& self, std::uint64_t address, std::uint64_t now_ns) {
  SharedMaps& maps = shared_maps();
  if (maps.empty()) {
    return {};
  }
  SharedPlace place;
  SharedLookup found = maps.find(address, place);
  if (found == SharedLookup::unidentified) {
    if (part.load(relaxed) == undecided) {
      decide_to_take_part(self);
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
  line.others = note_use(self, line.object(), static_cast<std::uint32_t>(now_ns / ns_per_ms));
  return line;
}

std::uint32_t kick_users(const SharedLine& line, std::uint64_t now_ns) {
  const std::uint64_t object = line.object();
  std::uint32_t kickd = 0;
  for (SharedUser& user : cross_process_state().user) {
    if (user.object.load(std::memory_order_acquire) == object && user.pid.load(relaxed) != runtime().pid &&
        recent(user, static_cast<std::uint32_t>(now_ns / ns_per_ms)) && kickd < SharedWatch::max_members) {
      kickd += kick(user.number.load(relaxed)) ? 1 : 0;
    }
  }
  return kickd;
}

void shared_memory_after_fork() {
  part.store(undecided, relaxed);
  shared_maps().after_fork();
}

}  // namespace crosstalk::in_target
