// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/mapped_parts.h"

#include <atomic>

#include "collectors/code_mapping.h"
#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/objects/module_facts.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/records.h"

namespace crosstalk::in_target::modules {
namespace {

constexpr std::uint64_t shortest_pause_ns = 50'000'000;
constexpr std::uint64_t longest_pause_ns = 10'000'000'000;

/// `begin` and `end` are read by handlers.
struct Part {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> end{0};  // 0: the slot is free
  std::uint64_t inode = 0, offset = 0;
  bool seen = false;
};

constinit Part parts[collectors::most_mapped_parts];
constinit std::atomic<bool> any{false};
constinit std::uint64_t next_ns = 0, pause_ns = shortest_pause_ns;
constinit char path[path_limit] = {};

struct Look {
  bool (*is_in_module)(std::uint64_t);
  std::uint64_t now_ns;
  bool found;
};

Part* slot_for(const MappedFile& file) {
  Part* slot = nullptr;
  for (Part& part : parts) {
    const std::uint64_t end = part.end.load(std::memory_order_relaxed);
    if (end == file.end && part.begin.load(std::memory_order_relaxed) == file.begin && part.inode == file.inode &&
        part.offset == file.offset) {
      return &part;
    }
    slot = slot == nullptr && end == 0 ? &part : slot;
  }
  return slot;
}

void report(const MappedFile& file, Part& part, Look& look) {
  profile::ModuleLoad load;
  load.header.type = profile::RecordType::module_load;
  load.time_ns = look.now_ns;
  load.begin = file.begin;
  load.end = file.end;
  load.bias = file.begin - file.offset;
  load.file_offset = file.offset;
  load.is_part = 1;
  if (!emit(&load, sizeof(load), path, file.path_length)) {
    return;  // the ring is full: again at the next look
  }
  part.inode = file.inode;
  part.offset = file.offset;
  part.begin.store(file.begin, std::memory_order_relaxed);
  part.end.store(file.end, std::memory_order_relaxed);
  any.store(true, std::memory_order_relaxed);
  look.found = true;
}

void visit(const MappedFile& file, void* data) {
  auto& look = *static_cast<Look*>(data);
  if (!file.executable || file.path_length == 0 || file.path_length >= path_limit || look.is_in_module(file.begin) ||
      !collectors::is_file_of_code({path, file.path_length})) {
    return;
  }
  Part* const part = slot_for(file);
  if (part == nullptr) {
    return;
  }
  part->seen = true;
  if (part->end.load(std::memory_order_relaxed) == 0) {
    report(file, *part, look);
  }
}

/// `whole`: all mappings were visited, so a part that was not seen is gone.
void report_gone(std::uint64_t now_ns, bool whole) {
  for (Part& part : parts) {
    const std::uint64_t end = part.end.load(std::memory_order_relaxed);
    const bool gone = whole && end != 0 && !part.seen;
    part.seen = false;
    if (!gone) {
      continue;
    }
    profile::ModuleUnload unload;
    unload.header.type = profile::RecordType::module_unload;
    unload.time_ns = now_ns;
    unload.begin = part.begin.load(std::memory_order_relaxed);
    unload.end = end;
    if (emit(&unload, sizeof(unload), nullptr, 0)) {
      part.end.store(0, std::memory_order_relaxed);
    }
  }
}

}  // namespace

void look_for_parts(bool (*is_in_module)(std::uint64_t address), std::uint64_t now_ns) {
  if (now_ns < next_ns) {
    return;
  }
  Look look{is_in_module, monotonic_ns(), false};
  report_gone(look.now_ns, visit_mappings(path, path_limit, visit, &look));
  pause_ns = look.found ? shortest_pause_ns : pause_ns < longest_pause_ns ? pause_ns * 2 : pause_ns;
  next_ns = look.now_ns + pause_ns;
}

bool is_in_part(std::uint64_t address) {
  if (!any.load(std::memory_order_relaxed)) {
    return false;
  }
  for (const Part& part : parts) {
    if (address >= part.begin.load(std::memory_order_relaxed) && address < part.end.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void forget_parts() {
  for (Part& part : parts) {
    part.end.store(0, std::memory_order_relaxed);
  }
  any.store(false, std::memory_order_relaxed);
  next_ns = 0;
  pause_ns = shortest_pause_ns;
}

}  // namespace crosstalk::in_target::modules
