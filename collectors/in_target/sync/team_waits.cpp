// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sync/team_waits.h"

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/wait_clock.h"

namespace crosstalk::in_target {
namespace {

using profile::ThreadWaits;

constinit std::atomic<TeamRegion::CountThreads> count_threads{nullptr};

/// The wait lasts until it is ended explicitly: leaving a frame does not end it.
constexpr std::uint64_t no_frame = ~std::uint64_t{0};

void mark(ThreadWaits& table, ThreadWaits::Place place, std::uint64_t now_ns) {
  table.place.store(place, std::memory_order_relaxed);
  table.frame.store(no_frame, std::memory_order_relaxed);
  table.since_ns.store(now_ns, std::memory_order_relaxed);
}

}  // namespace

TeamRegion::TeamRegion(Routine routine, void* data, const void* site)
    : routine_(routine),
      data_(data),
      place_(ThreadWaits::place_of(profile::WaitKind::team, reinterpret_cast<std::uint64_t>(site))),
      pid_(runtime().pid),
      beginner_(measures_waits() ? own_waits() : nullptr) {}

TeamRegion::~TeamRegion() {
  if (beginner_since_ns_ == 0 || pid_ != runtime().pid || !observing()) {
    return;
  }
  const std::uint64_t now_ns = wait_clock_ns();
  beginner_->table->since_ns.store(0, std::memory_order_relaxed);
  if (now_ns > beginner_since_ns_) {
    add_wait(*beginner_->table, place_, now_ns - beginner_since_ns_);
  }
}

void TeamRegion::ask_for_threads(CountThreads count) { count_threads.store(count, std::memory_order_relaxed); }

void TeamRegion::run_part(void* region) {
  auto& self = *static_cast<TeamRegion*>(region);
  self.routine_(self.data_);
  self.part_done();
}

void TeamRegion::part_done() {
  const CountThreads count = count_threads.load(std::memory_order_relaxed);
  const std::uint32_t threads = count != nullptr && pid_ == runtime().pid ? count() : 0;
  if (threads < 2) {
    return;
  }
  OwnWaits* const own = measures_waits() ? own_waits() : nullptr;
  const std::uint64_t now_ns = wait_clock_ns();
  if (own != nullptr && now_ns != 0 && own == beginner_) {
    if (own->table->since_ns.load(std::memory_order_relaxed) == 0) {
      mark(*own->table, place_, now_ns);
      beginner_since_ns_ = now_ns;
    }
  } else if (own != nullptr && now_ns != 0) {
    mark(*own->table, place_, now_ns);
    own->begin_ns = now_ns;
    own->place = place_;
    own->next = waiting_.load(std::memory_order_relaxed);
    while (!waiting_.compare_exchange_weak(own->next, own, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    open_barrier(now_ns);
  }
}

void TeamRegion::open_barrier(std::uint64_t now_ns) const {
  for (const OwnWaits* one = waiting_.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    one->table->since_ns.store(0, std::memory_order_relaxed);
    if (now_ns > one->begin_ns && observing()) {
      add_wait(*one->table, one->place, now_ns - one->begin_ns);
    }
  }
}

}  // namespace crosstalk::in_target
