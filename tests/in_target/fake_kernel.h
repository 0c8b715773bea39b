// SPDX-License-Identifier: Apache-2.0
// Replaces sys/perf_events.cpp and the surroundings of a watch unit in a target: recorded watchpoints, threads on
// paper, and an arena of its own, so that the unit is driven step by step without a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/watch/watch_unit.h"
#include "profile/records.h"

namespace crosstalk::in_target::test {

/// A debug register's event as the kernel would hold it.
struct FakeEvent {
  std::uint32_t word = 0;
  bool open = false;
  WatchPlace place;
};

class FakeKernel {
 public:
  /// Starts afresh; the runtime, its registry and its board are the process's own.
  FakeKernel();
  ~FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  /// A live thread; the first one is the test's own: the kernel knows it.
  ThreadState& add_thread();
  /// Returns the address and mode of the thread's watchpoint for its `event`th word; `off` if it has none.
  [[nodiscard]] WatchPlace place(const ThreadState& thread, std::uint32_t event) const;
  /// The thread accesses memory: each watchpoint there fires. Returns how many did.
  std::uint32_t access(ThreadState& thread, std::uint64_t address, bool store, std::uint64_t now_ns);
  /// The program closes all descriptors that it does not know.
  void close_descriptors();

  WatchUnit watch;              ///< the unit that is tested
  std::uint32_t registers = 4;  ///< that a thread gets; more are refused with ENOSPC
  bool spare_numbers = true;    ///< the program has more than a few descriptors left
  std::uint32_t alarms_set = 0;
  bool dead = false;                ///< watchpoints can be set, and none fires
  std::function<void()> after_set;  ///< called once right after a watchpoint was set, for another thread's action
  std::vector<FakeEvent> events;    ///< by descriptor - 1
  bool sharing = false;             ///< the process takes part in the exchange with others
  std::vector<SharedUse> uses;      ///< other processes that have the watched line mapped

  /// Returns the thread's records since the last call, as the bytes of each.
  [[nodiscard]] std::vector<std::vector<std::byte>> records(ThreadState& thread);

 private:
  struct Ring;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<std::byte> arena_;
};

/// The records of one type among `all`.
template <class Record>
std::vector<Record> of_type(const std::vector<std::vector<std::byte>>& all, profile::RecordType type) {
  std::vector<Record> found;
  for (const auto& bytes : all) {
    profile::RecordHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.type == type) {
      Record record;
      std::memcpy(static_cast<void*>(&record), bytes.data(), sizeof record);
      found.push_back(record);
    }
  }
  return found;
}

}  // namespace crosstalk::in_target::test
