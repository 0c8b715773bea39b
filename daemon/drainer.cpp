// SPDX-License-Identifier: Apache-2.0
#include "daemon/drainer.h"

#include <algorithm>
#include <utility>

#include "daemon/wait_rows.h"

namespace crosstalk::daemon {
namespace {

using profile::SlotState;

// A thread that was silent for this long may be gone: ask the kernel.
constexpr std::uint64_t quiet_ns = 1'000'000'000;
constexpr int max_scans = 8;
constexpr std::uint32_t scan_margin = 64;
constexpr std::uint64_t full_scan_ns = 1'000'000'000;
constexpr std::size_t batch_to_keep = 8U << 20U;

SlotState state_of(const profile::ThreadSlot& slot) {
  return static_cast<SlotState>(slot.state.load(std::memory_order_acquire));
}

/// Resets an unowned slot as in a new arena; the state is stored last.
void free_slot(profile::ThreadSlot& slot) {
  for (std::atomic<std::uint64_t>* counter :
       {&slot.lost_records, &slot.lost_bytes, &slot.samples, &slot.traps, &slot.handlers_ns, &slot.switches_ns,
        &slot.switches, &slot.cpu_ns, &slot.handler_samples_ns, &slot.head, &slot.tail}) {
    counter->store(0, std::memory_order_relaxed);
  }
  slot.clock.store(0, std::memory_order_relaxed);
  slot.period_us.store(0, std::memory_order_relaxed);
  slot.marks_regions.store(0, std::memory_order_relaxed);
  slot.from_outside.store(0, std::memory_order_relaxed);
  slot.pid.store(0, std::memory_order_relaxed);
  slot.tid.store(0, std::memory_order_relaxed);
  ++slot.generation;
  slot.state.store(static_cast<std::uint32_t>(SlotState::free), std::memory_order_release);
}

/// Returns the times between the first and the latest look; nullopt if there was only one. Times continue through an
/// exec, so the time before the first look belongs to another slot.
std::optional<SchedulerTimes> between(const std::optional<SchedulerTimes>& first, const SchedulerTimes& latest) {
  return first && latest.ran_ns > first->ran_ns && latest.waited_ns >= first->waited_ns
             ? std::optional(SchedulerTimes{latest.ran_ns - first->ran_ns, latest.waited_ns - first->waited_ns})
             : std::nullopt;
}

void add_times(const std::optional<SchedulerTimes>& times, profile::ProcessorWaits& waits) {
  if (times) {
    ++waits.threads;
    waits.ran_ns += times->ran_ns;
    waits.waited_ns += times->waited_ns;
  }
}

}  // namespace

Drainer::Drainer(Arena& arena, RecordDecoder& decoder, Ends ends) : arena_(&arena), decoder_(&decoder), ends_(ends) {}

/// Returns false if its ring could not be mapped; the next pass tries again.
bool Drainer::open(std::uint32_t index, std::uint64_t now_ns) {
  const profile::ThreadSlot& shared = arena_->slot(index);
  Slot& slot = slots_[index];
  const std::byte* ring = arena_->ring(index);
  if (ring == nullptr) {
    unread_ += slot.unread ? 0 : 1;
    slot.unread = true;
    return false;
  }
  slot.unread = false;
  slot.reader.emplace(arena_->slot(index), ring, arena_->ring_bytes());
  slot.pid = shared.pid.load(std::memory_order_relaxed);
  slot.tid = shared.tid.load(std::memory_order_relaxed);
  slot.quiet_since_ns = now_ns;
  slot.look = NameSchedule(now_ns);
  slot.ended = false;
  slot.from_outside = shared.from_outside.load(std::memory_order_relaxed) != 0;
  open_.push_back(index);
  if (ends_ == Ends::found && !slot.from_outside) {
    monitor_.watch(slot.pid);
  }
  decoder_->open_slot(index, slot.pid, slot.tid, now_ns);
  return true;
}

/// Opens the slots of [begin, end) that went live; returns the end of the used ones.
std::uint32_t Drainer::scan(std::uint32_t begin, std::uint32_t end, std::uint64_t now_ns) {
  std::uint32_t used = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const SlotState state = state_of(arena_->slot(i));
    used = state != SlotState::free ? i + 1 : used;
    if (!std::as_const(slots_)[i].reader && (state == SlotState::live || state == SlotState::ended) &&
        !open(i, now_ns) && state == SlotState::ended) {
      slots_[i].unread = false;
      free_slot(arena_->slot(i));
    }
  }
  return used;
}

/// Does the same for the slots from `begin` on that were ever used: looking at others would take memory.
std::uint32_t Drainer::scan_touched(std::uint32_t begin, std::uint64_t now_ns) {
  std::uint32_t used = 0;
  for (Arena::Slots touched = arena_->touched_slots(begin); touched.begin < touched.end;
       touched = arena_->touched_slots(touched.end)) {
    used = std::max(used, scan(touched.begin, touched.end, now_ns));
  }
  return used;
}

/// True if a slot was found. Threads claim the lowest free slot, so a scan of a margin beyond the last used one finds
/// them. All others are scanned once a second.
bool Drainer::find_new_slots(std::uint64_t now_ns) {
  const std::size_t known = open_.size();
  std::uint32_t begin = 0;
  std::uint32_t used = 0;
  std::uint32_t end = std::min(scan_end_ + scan_margin, arena_->slot_count());
  if (now_ns >= full_scan_due_ns_) {
    full_scan_due_ns_ = now_ns + full_scan_ns;
    used = scan_touched(end, now_ns);
    end = std::max(end, used);
  }
  while (begin < end) {
    used = std::max(used, scan(begin, end, now_ns));
    begin = end;
    end = std::max(end, std::min(used + scan_margin, arena_->slot_count()));
  }
  scan_end_ = used;
  return open_.size() != known;
}

Drainer::Pass Drainer::drain(std::uint64_t now_ns) {
  // Read before the rings: this pass then has all that a process wrote before its end.
  const std::vector<std::int32_t> ended_pids = monitor_.take_ended();
  // A process announces itself before it has a second live thread. So if a scan finds nothing new, earlier scans have
  // found the slots that announce all slots found so far, and this pass reads them.
  for (int scans = 0; scans < max_scans && find_new_slots(now_ns); ++scans) {
  }
  const Pass pass = fill_batch(now_ns);
  interpret_batch();
  look_at_threads(now_ns);
  close_finished(ended_pids, now_ns);
  arena_->header().heartbeat_ns.store(now_ns, std::memory_order_relaxed);
  return pass;
}

Drainer::Pass Drainer::fill_batch(std::uint64_t now_ns) {
  Pass pass;
  batch_.clear();
  if (batch_.capacity() > batch_to_keep) {
    batch_.shrink_to_fit();
  }
  portions_.clear();
  for (const std::uint32_t index : open_) {
    Slot& slot = slots_[index];
    // Load the state first: once it is `ended`, head no longer moves.
    slot.ended = state_of(arena_->slot(index)) == SlotState::ended;
    const std::size_t begin = batch_.size();
    const profile::DrainOutcome outcome = slot.reader->drain(batch_);
    corruptions_ += outcome.corrupt ? 1 : 0;
    if (outcome.bytes != 0) {
      portions_.push_back({index, begin, batch_.size()});
      slot.quiet_since_ns = now_ns;
    }
    pass.bytes += outcome.bytes;
    pass.fullest = std::max(pass.fullest, outcome.bytes);
  }
  return pass;
}

void Drainer::interpret_batch() {
  const std::span<const std::byte> batch(batch_);
  for (const Portion& portion : portions_) {
    profile::parse_records(batch.subspan(portion.begin, portion.end - portion.begin),
                           [&](const profile::RecordView& record) { decoder_->announce(portion.slot, record); });
  }
  for (const Portion& portion : portions_) {
    if (const auto regions = regions_of(portion.slot, 0)) {
      decoder_->learn_regions(portion.slot, *regions);
    }
    const profile::ParseOutcome outcome =
        profile::parse_records(batch.subspan(portion.begin, portion.end - portion.begin),
                               [&](const profile::RecordView& record) { decoder_->decode(portion.slot, record); });
    corruptions_ += outcome.corrupt ? 1 : 0;
  }
}

/// Reads the names and scheduler times of live threads. A thread that has ended reported its last name itself.
void Drainer::look_at_threads(std::uint64_t now_ns) {
  for (const std::uint32_t index : open_) {
    Slot& slot = slots_[index];
    if (slot.ended || monitor_.unknown(slot.pid) || !slot.look.due(now_ns)) {
      continue;
    }
    look_at_times(slot);
    const std::optional<std::string> name = thread_name(slot.pid, slot.tid);
    if (name && !executes_another(index)) {
      decoder_->rename(index, *name);
    }
  }
}

void Drainer::look_at_times(Slot& slot) {
  if (const auto times = scheduler_times(slot.pid, slot.tid)) {
    slot.first_times = slot.first_times ? slot.first_times : times;
    slot.times = *times;
  }
}

/// True if an exec has replaced the program. The process's first thread has the new program's name before that program
/// attaches, if it ever does. Called after reading the name, because the file changes before the name.
bool Drainer::executes_another(std::uint32_t index) const {
  const Slot& slot = slots_[index];
  return slot.tid == slot.pid && executable_of(slot.pid) != decoder_->executable(index);
}

bool Drainer::finished(std::uint32_t index, const std::vector<std::int32_t>& ended_pids, std::uint64_t now_ns) const {
  const Slot& slot = slots_[index];
  if (slot.from_outside) {
    return slot.ended;  // its observer writes there until then
  }
  if (slot.ended || decoder_->superseded(index) ||
      std::find(ended_pids.begin(), ended_pids.end(), slot.pid) != ended_pids.end()) {
    return true;
  }
  return monitor_.unknown(slot.pid) && now_ns - slot.quiet_since_ns > quiet_ns;
}

void Drainer::close_finished(const std::vector<std::int32_t>& ended_pids, std::uint64_t now_ns) {
  std::vector<std::uint32_t> still_open;
  still_open.reserve(open_.size());
  std::vector<std::uint32_t> closing;
  for (const std::uint32_t index : open_) {
    (finished(index, ended_pids, now_ns) ? closing : still_open).push_back(index);
  }
  open_.swap(still_open);
  for (const std::uint32_t index : closing) {  // closing one thread may need the records of another
    decoder_->update_totals(index, totals_of(arena_->slot(index)));
  }
  for (const std::uint32_t index : closing) {
    const std::int32_t pid = slots_[index].pid;
    close(index, now_ns);
    free_slot(arena_->slot(index));
    if (monitor_.unknown(pid)) {
      monitor_.forget(pid);
      decoder_->end_process(pid, now_ns);
    }
  }
  for (const std::int32_t pid : ended_pids) {
    decoder_->end_process(pid, now_ns);
  }
}

void Drainer::close(std::uint32_t index, std::uint64_t now_ns) {
  const SlotTotals totals = totals_of(arena_->slot(index));
  lost_in_closed_ += totals.lost;
  decoder_->update_totals(index, totals);
  decoder_->update_waits(index, wait_rows(arena_->waits(index), now_ns));
  if (const auto regions = regions_of(index, now_ns)) {
    decoder_->update_regions(index, *regions);
  }
  tell_processor_times(index);
  decoder_->close_slot(index, now_ns);
  add_times(between(slots_[index].first_times, slots_[index].times), waits_of_closed_);
  slots_[index].first_times.reset();
  slots_[index].reader.reset();
}

void Drainer::tell_processor_times(std::uint32_t index) {
  if (const auto times = between(slots_[index].first_times, slots_[index].times)) {
    decoder_->update_processor_times(index, *times);
  }
}

profile::ProcessorWaits Drainer::waits() const {
  profile::ProcessorWaits waits = waits_of_closed_;
  for (const std::uint32_t index : open_) {
    add_times(between(slots_[index].first_times, slots_[index].times), waits);
  }
  return waits;
}

void Drainer::find_lost_threads(std::uint64_t now_ns) {
  if (ends_ == Ends::told) {
    return;
  }
  for (const std::uint32_t index : open_) {
    Slot& slot = slots_[index];
    if (!slot.from_outside && now_ns - slot.quiet_since_ns > quiet_ns && !monitor_.unknown(slot.pid) &&
        PidfdMonitor::thread_gone(slot.pid, slot.tid)) {
      // Its last record was in its ring before it ended: the next pass reads it, then frees the slot.
      arena_->slot(index).state.store(static_cast<std::uint32_t>(SlotState::ended), std::memory_order_relaxed);
    }
  }
}

void Drainer::read_totals(std::uint64_t now_ns) { read_totals(now_ns, 0); }

void Drainer::read_totals_exactly(std::uint64_t now_ns) {
  for (const std::uint32_t index : open_) {
    if (!slots_[index].ended && !monitor_.unknown(slots_[index].pid)) {
      look_at_times(slots_[index]);
    }
  }
  read_totals(now_ns, now_ns);
}

void Drainer::read_totals(std::uint64_t now_ns, std::uint64_t waits_until_ns) {
  for (const std::uint32_t index : open_) {
    decoder_->update_totals(index, totals_of(arena_->slot(index)));
    decoder_->update_waits(index, wait_rows(arena_->waits(index), waits_until_ns));
    tell_processor_times(index);
    if (const auto regions = regions_of(index, now_ns)) {
      decoder_->update_regions(index, *regions);
    }
  }
}

/// Returns the regions of a thread that marks some; open ones count up to `now_ns`.
std::optional<RegionsSeen> Drainer::regions_of(std::uint32_t index, std::uint64_t now_ns) const {
  const bool marks = arena_->slot(index).marks_regions.load(std::memory_order_acquire) != 0;
  const profile::ThreadRegions* const table = marks ? arena_->regions(index) : nullptr;
  return table != nullptr ? std::optional(regions_seen(*table, arena_->header(), now_ns)) : std::nullopt;
}

void Drainer::finish(std::uint64_t now_ns) {
  read_totals(now_ns);
  for (const std::uint32_t index : open_) {
    close(index, now_ns);
    if (monitor_.unknown(slots_[index].pid)) {
      decoder_->end_process(slots_[index].pid, now_ns);
    }
  }
  open_.clear();
}

std::uint64_t Drainer::lost_records() const {
  std::uint64_t lost = lost_in_closed_;
  for (const std::uint32_t index : open_) {
    lost += totals_of(arena_->slot(index)).lost;
  }
  return lost;
}

}  // namespace crosstalk::daemon
