// SPDX-License-Identifier: Apache-2.0
// Keeps rows that collectors tell only once, for the files that a recording begins later (`record --switch-output`):
// memory that samples touch, stacks of threads that created others, and messages about a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "daemon/row_sink.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Bounded: of each kind, the latest rows stay. Not thread-safe.
class ToldOnce {
 public:
  static constexpr std::size_t most_blocks = 4096;  // of a process
  static constexpr std::size_t most_mappings = 1024;
  static constexpr std::size_t most_messages = 64;
  static constexpr std::size_t most_creations = 256;  // of all processes

  /// Keeps a block or mapping in the place of those that had its memory before.
  void keep(const profile::BlockRow& row);
  void keep(const profile::SharedMappingRow& row);
  /// Keeps the creator's latest stack of this frame.
  void keep(const profile::ThreadCreationRow& row, const profile::StackRow& stack);
  void keep(ProcessId process, const profile::MessageRow& row);
  /// Forgets a process that is over.
  void forget(ProcessId process);

  /// Puts the rows of processes and threads that live. Forgets the creations by others.
  template <class Lives>
  void put_everything(RowSink& sink, Lives lives) {
    std::erase_if(creations_, [&](const Creation& creation) { return !lives(creation.row.thread); });
    for (const auto& [id, process] : processes_) {
      if (lives(ProcessId{id})) {
        put(process, sink);
      }
    }
    put_creations(sink);
  }

 private:
  struct Creation {
    profile::ThreadCreationRow row;
    profile::StackRow stack;
  };
  struct OfProcess {
    std::map<std::uint64_t, profile::BlockRow> blocks;  // by begin
    std::map<std::uint64_t, profile::SharedMappingRow> mappings;
    std::vector<profile::MessageRow> messages;
  };
  static void put(const OfProcess& process, RowSink& sink);
  void put_creations(RowSink& sink) const;

  std::unordered_map<std::uint32_t, OfProcess> processes_;
  std::deque<Creation> creations_;
};

}  // namespace crosstalk::daemon
