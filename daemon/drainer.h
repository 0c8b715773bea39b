// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/arena.h"
#include "daemon/pidfd_monitor.h"
#include "daemon/record_decoder.h"
#include "daemon/scheduler_times.h"
#include "daemon/slot_table.h"
#include "daemon/thread_names.h"
#include "profile/ring_reader.h"

namespace crosstalk::daemon {

/// Detects the end of a thread or process: polls the kernel, because targets may vanish silently, or the collector
/// reports it.
enum class Ends { found, told };

/// Moves records from the arena's rings to the decoder, and manages the slots: opens new ones, and frees them when
/// their thread is gone. Not thread-safe.
class Drainer {
 public:
  Drainer(Arena& arena, RecordDecoder& decoder, Ends ends = Ends::found);

  struct Pass {
    std::uint64_t bytes = 0;    // drained
    std::uint64_t fullest = 0;  // bytes drained from the fullest ring
  };
  /// Makes one pass over all rings. `now_ns` is CLOCK_MONOTONIC.
  Pass drain(std::uint64_t now_ns);
  /// Frees the slots of threads that vanished silently. Takes some microseconds for each quiet slot; call it once a
  /// second.
  void find_lost_threads(std::uint64_t now_ns);
  /// Updates the threads' totals in the decoder.
  void read_totals(std::uint64_t now_ns);
  /// As read_totals(), as of `now_ns`: looks at all threads, and counts waits that go on up to now.
  void read_totals_exactly(std::uint64_t now_ns);
  /// Closes all slots after the last pass, and leaves their contents.
  void finish(std::uint64_t now_ns);

  /// Returns the threads' scheduler times between the first and the latest look at each.
  [[nodiscard]] profile::ProcessorWaits waits() const;
  [[nodiscard]] const PidfdMonitor& liveness() const { return monitor_; }
  [[nodiscard]] std::uint32_t live_slots() const { return static_cast<std::uint32_t>(open_.size()); }
  [[nodiscard]] std::uint64_t lost_records() const;
  /// Returns how often a ring's bytes had to be discarded.
  [[nodiscard]] std::uint64_t corruptions() const { return corruptions_; }
  /// Returns the number of threads whose ring could not be mapped here.
  [[nodiscard]] std::uint32_t unread() const { return unread_; }

 private:
  struct Slot {
    std::optional<profile::RingReader> reader;  // while it is live or ended
    std::int32_t pid = 0, tid = 0;
    std::uint64_t quiet_since_ns = 0;
    NameSchedule look;
    std::optional<SchedulerTimes> first_times;  // at the first look; nullopt: unknown
    SchedulerTimes times;                       // at the latest
    bool ended = false;
    bool unread = false;        // its ring cannot be mapped
    bool from_outside = false;  // as in ThreadSlot
  };
  struct Portion {
    std::uint32_t slot;
    std::size_t begin, end;  // in batch_
  };

  bool find_new_slots(std::uint64_t now_ns);
  std::uint32_t scan(std::uint32_t begin, std::uint32_t end, std::uint64_t now_ns);
  std::uint32_t scan_touched(std::uint32_t begin, std::uint64_t now_ns);
  bool open(std::uint32_t index, std::uint64_t now_ns);
  Pass fill_batch(std::uint64_t now_ns);
  void interpret_batch();
  void read_totals(std::uint64_t now_ns, std::uint64_t waits_until_ns);
  void look_at_threads(std::uint64_t now_ns);
  static void look_at_times(Slot& slot);
  [[nodiscard]] std::optional<RegionsSeen> regions_of(std::uint32_t index, std::uint64_t now_ns) const;
  [[nodiscard]] bool executes_another(std::uint32_t index) const;
  void close_finished(const std::vector<std::int32_t>& ended_pids, std::uint64_t now_ns);
  void close(std::uint32_t index, std::uint64_t now_ns);
  void tell_processor_times(std::uint32_t index);
  [[nodiscard]] bool finished(std::uint32_t index, const std::vector<std::int32_t>& ended_pids,
                              std::uint64_t now_ns) const;

  Arena* arena_;
  RecordDecoder* decoder_;
  Ends ends_;
  PidfdMonitor monitor_;  // watches none if the collector reports ends
  SlotTable<Slot> slots_;
  std::vector<std::uint32_t> open_;  // indices of slots with a reader
  std::vector<std::byte> batch_;
  std::vector<Portion> portions_;
  std::uint32_t scan_end_ = 0;  // slots from here on were free
  std::uint64_t full_scan_due_ns_ = 0;
  std::uint64_t lost_in_closed_ = 0, corruptions_ = 0;
  profile::ProcessorWaits waits_of_closed_;
  std::uint32_t unread_ = 0;
};

}  // namespace crosstalk::daemon
