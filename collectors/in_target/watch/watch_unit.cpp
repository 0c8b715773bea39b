// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_unit.h"

#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/arming.h"
#include "collectors/in_target/watch/common_watches.h"
#include "collectors/in_target/watch/followed_watches.h"
#include "collectors/in_target/watch/remote_arming.h"
#include "collectors/in_target/watch/trap_record.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"
#include "collectors/watch_policy/selection.h"

namespace crosstalk::in_target {
namespace {

constinit WatchUnit the_unit;

// The number of the thread that the board has named; 0: none, or one that has ended. A number that was published before
// its thread began belongs to an earlier thread, which has ended.
std::uint32_t living_partner(const watch_policy::Suspicion& suspicion) {
  const ThreadState* const thread = thread_of(suspicion.partner.thread);
  const bool began_later = thread != nullptr && watch_policy::is_before_ms(suspicion.partner.time_ms, thread->begun_ms);
  return began_later ? 0 : suspicion.partner.thread;
}

// Arms this thread first: another thread may take the line while the others are armed, and then changes this one's
// mode.
ArmedThreads arm_threads(WatchSlot& slot, ThreadState& self, const WatchRequest& request) {
  arm_sampled(slot, self, request.access);
  const std::uint32_t partner = request.suspected ? living_partner(request.suspicion) : 0;
  ArmedThreads elsewhere;
  if (slot.shared != nullptr) {
    elsewhere = arm_elsewhere(slot, self, partner);
  }
  const ArmedThreads here = arm_others(slot, self, partner);
  return {elsewhere.others + here.others, elsewhere.armed + here.armed};
}

// Unlocks the slot.
void write_open(WatchSlot& slot, ThreadState& self, const WatchRequest& request, ArmedThreads threads,
                std::uint64_t horizon_ns) {
  profile::WatchOpen record;
  record.header.type = profile::RecordType::watch_open;
  record.time_ns = request.sample->time_ns;
  record.line = slot.line;
  record.watch = slot.watch.load(std::memory_order_relaxed);
  record.words = slot.choice.words;
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    record.word[w] = slot.choice.word[w];
  }
  record.threads = 1 + threads.others;
  record.armed = threads.armed;
  record.suspected = request.suspected ? 1 : 0;
  record.horizon_ns = horizon_ns;
  record.state = slot.state;
  record.has_state = slot.has_state ? 1 : 0;
  slot.unlock();
  append(self, &record, sizeof record, nullptr, 0);
  request.sample->watch = record.watch;
  request.sample->flags |= profile::sample_armed;
}

}  // namespace

std::uint32_t new_watch_id() { return runtime().arena.header->next_watch.fetch_add(1, std::memory_order_relaxed) + 1; }

WatchUnit& watch_unit() { return the_unit; }

void WatchUnit::start(std::uint32_t words, std::uint64_t horizon_ns) {
  admission_.start(words);
  horizon_ns_ = horizon_ns;
  watches_.start();
}

bool WatchUnit::has_room(const ThreadState& self, bool suspected, std::uint64_t now_ns) const {
  const watch_policy::SlotPlan plan = admission_.plan_for(self);
  for (std::uint32_t i = plan.first(suspected); i < plan.last(suspected); ++i) {
    const WatchSlot& slot = watches_.slots()[i];
    if (slot.watch.load(std::memory_order_relaxed) == 0 || slot.progress().expired(now_ns)) {
      return true;
    }
  }
  return false;
}

bool WatchUnit::open(ThreadState& self, const WatchRequest& request, std::uint64_t now_ns) {
  if (!has_hidden_numbers()) {
    return false;  // the target has changed its limit: a watch that nobody is armed for would find nothing
  }
  if (!has_spare_numbers()) {
    descriptors_scarce();
    return false;
  }
  // Two threads that open events at the same time are in each other's way (sys/hidden_numbers.h): a watch that is
  // opened beside another one would miss threads.
  const TryLock opens(opening_, runtime().pid);
  if (!opens.held() && has_closed_events()) {
    return false;
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  const watch_policy::SlotPlan plan = admission_.plan_for(self);
  for (std::uint32_t i = plan.first(request.suspected); i < plan.last(request.suspected); ++i) {
    WatchSlot& slot = watches_.slots()[i];
    if (!claim(slot, request, now_ns)) {
      continue;
    }
    const std::uint64_t horizon_ns = watch_policy::choose_horizon(request.suspected, horizon_ns_, self.random);
    begin(slot, self, request, horizon_ns);
    slot.has_state = read_state(slot.line, slot.state);
    const ArmedThreads threads = arm_threads(slot, self, request);
    if (horizon_ns < horizon_ns_) {  // a brief one
      set_alarm(self, horizon_ns);
    }
    slot.cost_ns.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
    write_open(slot, self, request, threads, horizon_ns);
    return true;
  }
  return false;
}

// Locks the slot if it is free.
bool WatchUnit::claim(WatchSlot& slot, const WatchRequest& request, std::uint64_t now_ns) {
  if (slot.watch.load(std::memory_order_relaxed) != 0 || !slot.try_lock()) {
    return false;
  }
  slot.cost_ns.store(0, std::memory_order_relaxed);
  const bool free = slot.watch.load(std::memory_order_acquire) == 0;
  if (!free || (request.shared.others && !claim_common(slot, request.shared, now_ns))) {
    slot.unlock();
    return false;
  }
  if (!request.shared.others) {
    slot.shared = nullptr;
  }
  return true;
}

// The slot's lock is held.
void WatchUnit::begin(WatchSlot& slot, ThreadState& self, const WatchRequest& request, std::uint64_t horizon_ns) {
  const profile::Sample& sample = *request.sample;
  slot.line = sample.address & ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
  slot.identity = request.shared;
  slot.choice = watch_policy::choose_words(request.access, request.suspicion, admission_.plan_for(self).registers,
                                           next_random(self.random));
  slot.interrupted_ns.store(0, std::memory_order_relaxed);
  slot.suspected.store(request.suspected, std::memory_order_relaxed);
  slot.opened_ns = monotonic_ns();
  slot.progress().begin(self.number, request.access, slot.opened_ns + horizon_ns);
  slot.watch.store(new_watch_id(), std::memory_order_release);
  if (slot.shared != nullptr) {
    publish_common(slot);
  }
}

void WatchUnit::follow(ThreadState& self, std::uint64_t now_ns) { follow_all(watches_, slots(), self, now_ns); }

void WatchUnit::alarmed(ThreadState& self, std::uint64_t now_ns) {
  end_alarm(self);
  expire(self, now_ns);
}

void WatchUnit::renew_remote_events() { renew_events_elsewhere(watches_.slots()); }

}  // namespace crosstalk::in_target
