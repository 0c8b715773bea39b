// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/watches.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "collectors/watch_policy/interruption.h"
#include "collectors/watch_policy/stack_allowance.h"
#include "profile/records.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t first_cost_guess_ns = 200'000;
constexpr std::uint32_t few_shots = shots_a_breakpoint / 4;
constexpr std::uint32_t many_shots = shots_a_breakpoint / 2;

/// Takes the lowest words of the stack; false if they did not come with the sample.
bool take_frame(const PerfSample& trap, profile::WatchTrap& record) {
  if (trap.stack.size() < sizeof record.frame) {
    return false;
  }
  std::memcpy(record.frame, trap.stack.data(), sizeof record.frame);
  return true;
}

void write_trap(WatchedThread& thread, profile::WatchTrap record, const PerfSample& trap, bool with_stack) {
  record.header.type = profile::RecordType::watch_trap;
  record.time_ns = trap.time_ns;
  record.ip = trap.registers[Register::rip];
  record.cpu = static_cast<std::uint16_t>(trap.cpu);
  record.stack.registers = trap.registers;
  record.has_frame = record.write_only == 0 && take_frame(trap, record) ? 1 : 0;
  record.stack.bytes = with_stack ? trap.stack.size() & ~std::size_t{7} : 0;
  record.has_stack = record.stack.bytes != 0 ? 1 : 0;
  thread.records->write(record, trap.stack.data(), record.stack.bytes);
  thread.records->slot().traps.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool StackAllowance::take(std::uint64_t now_ns) {
  const auto with_this = watch_policy::pay_for_stack(paid_until_ns_, now_ns, rate_);
  paid_until_ns_ = with_this.value_or(paid_until_ns_);
  return with_this.has_value();
}

Watches::Watches(WatchWorld& world, watch_policy::Budget& budget, const WatchSettings& settings)
    : world_(world),
      budget_(budget),
      settings_(settings),
      plan_(watch_policy::SlotPlan::of(settings.registers)),
      stacks_(settings.stacks_per_s),
      mean_cost_ns_(first_cost_guess_ns) {}

bool Watches::has_room(bool suspected) const {
  return std::any_of(slots_.begin() + plan_.first(suspected), slots_.begin() + plan_.last(suspected),
                     [](const Slot& slot) { return slot.watch == 0; });
}

/// Charges a thread of the target for the watch's cost.
void Watches::charge(Slot& slot, std::uint64_t ns, const WatchedThread& payer) {
  attribute(slot, ns);
  budget_.spend(ns);
  payer.records->slot().handlers_ns.fetch_add(ns, std::memory_order_relaxed);
}

/// Counts the observer's own cost; its runner spends all of the observer's time from the budget.
void Watches::charge_own(Slot& slot, std::uint64_t ns) {
  own_ns_ += ns;
  attribute(slot, ns);
}

void Watches::attribute(Slot& slot, std::uint64_t ns) {
  slot.cost_ns += ns;
  if (!slot.suspected) {
    budget_.explore(ns);
  }
}

bool Watches::prepare(Slot& slot, Part& part, std::uint32_t word) {
  const profile::WatchWord& piece = slot.choice.word[word];
  std::optional<Breakpoint>& breakpoint = part.breakpoint[word];
  const std::uint64_t begin_ns = world_.now_ns();
  breakpoint.reset();  // its debug register is needed
  if (std::optional<OpenEvent> event =
          world_.prepare(*part.thread, {part.line + piece.offset, piece.length, part.wanted[word]})) {
    breakpoint = Breakpoint{std::move(*event), part.wanted[word], 0};
  }
  charge(slot, watch_policy::lost_by_interruption(world_.now_ns() - begin_ns), *part.thread);
  return breakpoint.has_value();
}

/// All words of the watch, or none: a thread that is armed for a part of it would look as if it had left the rest
/// alone.
bool Watches::prepare_all(Slot& slot, Part& part) {
  for (std::uint32_t word = 0; word < slot.choice.words; ++word) {
    if (part.wanted[word] != WatchMode::off && !prepare(slot, part, word)) {
      return false;
    }
  }
  return true;
}

void Watches::prepare_others(Slot& slot, WatchedThread& self, const WatchRequest& request) {
  const std::uint32_t partner = request.suspected ? request.suspicion.partner.thread : 0;
  const bool has_partner = std::any_of(request.others.begin(), request.others.end(),
                                       [partner](const LinePlace& place) { return place.thread->number() == partner; });
  watch_policy::ArmedDraw draw(static_cast<std::uint32_t>(request.others.size()), has_partner);
  for (const LinePlace& place : request.others) {
    const bool is_partner = has_partner && place.thread->number() == partner;
    if (!is_partner && !draw.take(self.random)) {
      continue;
    }
    Part part{place.thread, place.line, {WatchMode::read_write, WatchMode::read_write}, {}};
    if (prepare_all(slot, part)) {
      slot.parts.push_back(std::move(part));
    }
  }
}

void Watches::enable(Slot& slot, Part& part, std::uint32_t word) {
  std::optional<Breakpoint>& breakpoint = part.breakpoint[word];
  if (breakpoint) {
    const std::uint64_t begin_ns = world_.now_ns();
    world_.enable(breakpoint->event, shots_a_breakpoint);
    breakpoint->left = shots_a_breakpoint;
    charge(slot, watch_policy::lost_by_interruption(world_.now_ns() - begin_ns), *part.thread);
  }
}

void Watches::enable_all(Slot& slot) {
  for (Part& part : slot.parts) {
    for (std::uint32_t word = 0; word < slot.choice.words; ++word) {
      enable(slot, part, word);
    }
  }
}

std::uint32_t Watches::open(WatchedThread& self, const WatchRequest& request) {
  Slot& slot =
      *std::find_if(slots_.begin() + plan_.first(request.suspected), slots_.begin() + plan_.last(request.suspected),
                    [](const Slot& each) { return each.watch == 0; });
  const std::uint64_t cpu_before_ns = world_.cpu_ns();
  slot.line = request.line;
  slot.board = request.board;
  slot.key = request.key;
  slot.suspected = request.suspected;
  slot.changed = false;
  slot.cost_ns = 0;
  slot.choice =
      watch_policy::choose_words(request.access, request.suspicion, plan_.registers, next_random(self.random));
  const std::uint64_t horizon_ns = watch_policy::choose_horizon(request.suspected, settings_.horizon_ns, self.random);
  Part own{&self, slot.line, {}, {}};
  for (std::uint32_t word = 0; word < slot.choice.words; ++word) {
    own.wanted[word] = watch_policy::first_mode(request.access, word);
  }
  if (prepare_all(slot, own)) {
    slot.parts.push_back(std::move(own));
    prepare_others(slot, self, request);
  }
  const bool others = slot.parts.size() > 1;
  if (others) {
    slot.watch = world_.new_watch();
    const std::uint64_t begin_ns = world_.now_ns();
    enable_all(slot);
    // From now on: arming is a call to each thread's processor, which may take longer than a brief watch lasts.
    slot.progress.begin(self.number(), request.access, world_.now_ns() + horizon_ns);
    write_open(slot, self, request.others.size() + 1, horizon_ns, begin_ns);
  } else {
    slot.parts.clear();
  }
  charge_own(slot, world_.cpu_ns() - cpu_before_ns);
  return others ? slot.watch : 0;
}

void Watches::write_open(const Slot& slot, const WatchedThread& self, std::size_t threads, std::uint64_t horizon_ns,
                         std::uint64_t begin_ns) {
  profile::WatchOpen record;
  record.header.type = profile::RecordType::watch_open;
  record.time_ns = begin_ns;
  record.line = slot.line;
  record.watch = slot.watch;
  record.words = slot.choice.words;
  std::copy_n(slot.choice.word, slot.choice.words, record.word);
  record.threads = static_cast<std::uint32_t>(threads);
  record.armed = static_cast<std::uint32_t>(slot.parts.size() - 1);
  record.suspected = slot.suspected ? 1 : 0;
  record.horizon_ns = horizon_ns;
  self.records->write(record);
}

void Watches::trapped(WatchedThread& thread, const PerfSample& trap) {
  for (Slot& slot : slots_) {
    for (Part& part : slot.parts) {
      for (std::uint32_t word = 0; slot.watch != 0 && word < slot.choice.words; ++word) {
        std::optional<Breakpoint>& breakpoint = part.breakpoint[word];
        if (!breakpoint || breakpoint->event.id != trap.event) {
          continue;
        }
        breakpoint->left -= std::min(breakpoint->left, 1U);
        slot.changed = true;
        charge(slot, settings_.trap_cost_ns, thread);
        if (trap.has_registers) {
          take(slot, part, word, trap);
        }
        return;
      }
    }
  }
}

/// Takes an access of the watch, in the order of times, if the policy wants it.
void Watches::take(Slot& slot, Part& part, std::uint32_t word, const PerfSample& trap) {
  const WatchMode wanted = part.wanted[word];
  if (wanted == WatchMode::off) {
    return;
  }
  const bool stored = part.breakpoint[word]->mode == WatchMode::write_only || world_.was_store(*part.thread, trap);
  if (wanted == WatchMode::write_only && !stored) {
    return;
  }
  profile::WatchTrap record;
  record.watch = slot.watch;
  record.sequence = slot.progress.count_trap();
  record.word = static_cast<std::uint8_t>(word);
  record.line = part.line != slot.line ? part.line : 0;
  record.write_only = part.breakpoint[word]->mode == WatchMode::write_only ? 1 : 0;
  write_trap(*part.thread, record, trap, stacks_.take(trap.time_ns));
  if (stored) {
    slot.progress.saw_store();
  }
  part.wanted[word] = watch_policy::mode_after_trap(wanted);
  const watch_policy::Turn turn = slot.progress.advance(part.thread->number(), record.sequence, trap.time_ns);
  if (turn.close) {
    close(slot, *turn.close, trap.time_ns);
    return;
  }
  for (Part& other : slot.parts) {
    if (turn.rearm != 0 && other.thread->number() == turn.rearm) {
      other.wanted = {WatchMode::read_write, WatchMode::read_write};
    }
  }
}

/// A breakpoint that reports too much stays while it reports little: the next owner will have it wanted again.
void Watches::settle(Slot& slot, Part& part, std::uint32_t word) {
  const WatchMode wanted = part.wanted[word];
  std::optional<Breakpoint>& breakpoint = part.breakpoint[word];
  const std::uint32_t left = breakpoint ? breakpoint->left : 0;
  const WatchMode reports = breakpoint ? breakpoint->mode : WatchMode::off;
  if (wanted == WatchMode::off) {
    if (breakpoint && left < many_shots) {
      breakpoint.reset();
    }
    return;
  }
  const bool sees_it = reports == wanted || reports == WatchMode::read_write;
  const bool sees_more = reports == WatchMode::read_write && wanted == WatchMode::write_only;
  if (!sees_it || left < (sees_more ? many_shots : few_shots)) {
    if (prepare(slot, part, word)) {
      enable(slot, part, word);
    }
  }
}

void Watches::settle(std::uint64_t read_until_ns) {
  for (Slot& slot : slots_) {
    if (slot.watch == 0) {
      continue;
    }
    if (slot.progress.expired(read_until_ns)) {
      close(slot, profile::CloseReason::horizon, read_until_ns);
      continue;
    }
    if (!slot.changed) {
      continue;
    }
    slot.changed = false;
    const std::uint64_t cpu_before_ns = world_.cpu_ns();
    for (Part& part : slot.parts) {
      for (std::uint32_t word = 0; word < slot.choice.words; ++word) {
        settle(slot, part, word);
      }
    }
    charge_own(slot, world_.cpu_ns() - cpu_before_ns);
  }
}

std::uint64_t Watches::next_end_ns() const {
  std::uint64_t next = UINT64_MAX;
  for (const Slot& slot : slots_) {
    next = slot.watch != 0 ? std::min(next, slot.progress.deadline_ns()) : next;
  }
  return next;
}

void Watches::close(Slot& slot, profile::CloseReason reason, std::uint64_t time_ns) {
  const std::uint64_t cpu_before_ns = world_.cpu_ns();
  profile::WatchClose record;
  record.header.type = profile::RecordType::watch_close;
  record.time_ns = time_ns;
  record.watch = slot.watch;
  record.reason = reason;
  record.traps = slot.progress.traps();
  if (!slot.parts.empty()) {
    slot.parts.front().thread->records->write(record);
  }
  slot.parts.clear();
  slot.watch = 0;
  const bool exchanged = slot.progress.exchanged();
  slot.board->judged(slot.key, exchanged);
  if (!slot.suspected) {
    budget_.explored(exchanged);
  }
  charge_own(slot, world_.cpu_ns() - cpu_before_ns);
  mean_cost_ns_ = watch_policy::mean_with(mean_cost_ns_, slot.cost_ns);
}

bool Watches::involves(const WatchedThread& thread) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.watch != 0 &&
           std::any_of(slot.parts.begin(), slot.parts.end(), [&](const Part& part) { return part.thread == &thread; });
  });
}

void Watches::leave(const WatchedThread& thread) {
  for (Slot& slot : slots_) {
    const auto leaves = [&](const Part& part) { return part.thread == &thread; };
    if (slot.watch != 0 && slot.parts.size() == 1 && leaves(slot.parts.front())) {
      close(slot, profile::CloseReason::stopped, world_.now_ns());
    }
    std::erase_if(slot.parts, leaves);
  }
}

void Watches::close_all() {
  for (Slot& slot : slots_) {
    if (slot.watch != 0) {
      close(slot, profile::CloseReason::stopped, world_.now_ns());
    }
  }
}

}  // namespace crosstalk::observer
