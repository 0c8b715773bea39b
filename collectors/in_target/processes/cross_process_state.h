// SPDX-License-Identifier: Apache-2.0
// State that the processes of a recording share, in the arena's exchange: the cost of observing them, and when watching
// rests. For processes that share memory also a bulletin board of shared lines, the users of each piece of memory, and
// common watches.
//
// Lines are identified by the mapped file (watch_policy/shared_line.h), a thread by the number of its ring: its slot's
// index + 1.
//
// A common watch is the watch unit's, with its progress here instead of in the process (watch/common_watches.h). The
// thread that opens it arms the threads of all processes. It is over when `watch` differs from its id; the thread that
// sets `watch` back to 0 writes the record of its end.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/rests.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/shared_line.h"
#include "collectors/watch_policy/words.h"
#include "profile/arena.h"
#include "profile/records.h"

namespace crosstalk::in_target {

using watch_policy::SharedLine;
using watch_policy::watch_slots;
using watch_policy::words_per_slot;

/// A watch that several processes keep. All but `watch` and `progress` is constant while `watch` is not 0.
struct alignas(profile::cache_line) SharedWatch {
  std::atomic<std::uint64_t> lock;   // when the opener took it, CLOCK_MONOTONIC; 0: free
  std::atomic<std::uint32_t> watch;  // id; 0: none
  std::atomic<std::uint32_t> suspected;
  watch_policy::WatchProgress progress;
  std::atomic<std::uint64_t> device, inode, file_offset;
  std::atomic<std::uint32_t> words;
  std::atomic<std::uint64_t> word[words_per_slot];  // profile::WatchWord
};

/// A process that has been sampled in shared memory lately, and the address of its mapping.
struct SharedUser {
  std::atomic<std::uint64_t> object;  // SharedLine::object(); 0: free
  std::atomic<std::uint64_t> begin, bytes, file_offset;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> time_ms;  // when, CLOCK_MONOTONIC
};

struct CrossProcessState {
  static constexpr std::uint32_t max_users = 128;
  static constexpr std::uint32_t board_lines = 4096;
  static constexpr unsigned key_shift = 64 - 12;  // a key is spread already
  static_assert(board_lines == 1U << (64 - key_shift));
  SharedWatch watch[watch_slots];
  SharedUser user[max_users];
  watch_policy::BoardLine line[board_lines];
  alignas(profile::cache_line) watch_policy::CommonBudget budget;

  /// The bulletin board's line for SharedLine::key().
  watch_policy::BoardLine& line_of(std::uint64_t key) { return line[key >> key_shift]; }
};
static_assert(sizeof(CrossProcessState) <= profile::cross_process_bytes);
static_assert(sizeof(profile::WatchWord) == sizeof(std::uint64_t));

}  // namespace crosstalk::in_target
