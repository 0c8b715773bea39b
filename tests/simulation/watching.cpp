// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/watching.h"

#include <algorithm>
#include <tuple>

namespace crosstalk::simulation {
namespace {

// As in sampling.cpp and watch_unit.cpp, which name the reasons.
constexpr std::uint32_t forgiven_duds = 4, well_known_hits = 64, least_one_in = 4, memory_ms = 2000;
constexpr std::uint32_t max_traps = 16, max_runs = 6;
constexpr double briefer_by = 40, named_share = 0.75;
constexpr std::uint32_t long_one_in = 32;
constexpr double first_cost_guess = 0.04;  // of a period
constexpr double ns_per_ms = 1e6;

profile::WatchWord piece(std::uint32_t word, double probability) {
  return {static_cast<std::uint8_t>(word * word_bytes), word_bytes, 0, static_cast<float>(probability)};
}

bool suspect(const in_target::Suspicion& known, std::uint32_t now_ms) {
  return known.other_thread && now_ms - known.partner.time_ms < memory_ms && known.duds < forgiven_duds &&
         (known.store_seen || known.duds < 2);
}

}  // namespace

Watching::Watching(const Observer& observer, std::uint32_t threads, std::uint64_t seed)
    : observer_(observer),
      threads_(threads),
      slots_(observer.registers == 3 ? 1 : (observer.registers + words_per_slot - 1) / words_per_slot),
      random_(seed),
      mean_cost_ns_(first_cost_guess * observer.period_ns) {
  budget_.clear();
  budget_.start(observer.budget);
}

void Watching::spend(double ns, bool exploring) {
  budget_.spend(static_cast<std::uint64_t>(ns));
  if (exploring) {
    budget_.explore(static_cast<std::uint64_t>(ns));
  }
}

profile::LineState& Watching::state_of(std::uint64_t line) {
  const std::size_t index = (line - first_line_address) / profile::cache_line;
  if (index >= states_.size()) {
    states_.resize(index + 1);
  }
  return states_[index];
}

Watching::Slot* Watching::room(bool suspected, double now_ns) {
  for (std::uint32_t i = first_slot(suspected); i < last_slot(suspected); ++i) {
    if (slot_[i].watch != 0 && now_ns >= slot_[i].deadline_ns) {
      close(slot_[i], now_ns, profile::CloseReason::horizon);
    }
    if (slot_[i].watch == 0) {
      return &slot_[i];
    }
  }
  return nullptr;
}

bool Watching::passed_over(const in_target::Suspicion& known) {
  return known.hits > well_known_hits && below(random_, std::min(known.hits / well_known_hits + 1, least_one_in)) != 0;
}

void Watching::sample(profile::SampleRow& row) {
  const auto now_ns = static_cast<double>(row.time_ns);
  const auto now_ms = static_cast<std::uint32_t>(now_ns / ns_per_ms);
  budget_.earn(row.cpu_ns);
  spend(observer_.sample_cost_ns, false);
  for (std::uint32_t i = 0; i < slots_; ++i) {
    if (slot_[i].watch != 0 && now_ns >= slot_[i].deadline_ns) {
      close(slot_[i], now_ns, profile::CloseReason::horizon);
    }
  }
  const std::uint64_t offset = row.address % profile::cache_line;
  const in_target::Publication access{static_cast<std::uint16_t>(row.thread.value + 1),
                                      static_cast<std::uint8_t>(offset), row.width, row.access, now_ms};
  const in_target::Suspicion known = board_->publish(row.address - offset, access);
  const bool suspected = suspect(known, now_ms);
  row.flags = static_cast<std::uint8_t>(row.flags | profile::sample_eligible |
                                        (suspected ? unsigned{profile::sample_suspected} : 0U));
  if (slots_ == 0 || (suspected && passed_over(known))) {
    return;
  }
  Slot* slot = room(suspected, now_ns);
  if (slot != nullptr && budget_.affords(static_cast<std::uint64_t>(mean_cost_ns_), !suspected)) {
    open(*slot, row, known, suspected);
  }
}

void Watching::choose_words(Slot& slot, const profile::SampleRow& row, const in_target::Suspicion& suspicion) {
  const auto own = static_cast<std::uint32_t>(row.address % profile::cache_line / word_bytes);
  slot.word[0] = piece(own, 1);
  slot.words = 1;
  const auto named = static_cast<std::uint32_t>(suspicion.partner.offset / word_bytes);
  const bool has_name = suspicion.other_thread && named != own;
  const double by_name = has_name ? named_share : 0;
  const double by_chance = (1 - by_name) / (words_in_line - 1);
  std::uint32_t second = named;
  if (!has_name || below(random_, 4) == 0) {
    second = (own + 1 + below(random_, words_in_line - 1)) % words_in_line;
  }
  slot.word[1] = piece(second, by_chance + (has_name && second == named ? by_name : 0));
  if (observer_.registers == 1) {
    slot.word[0].probability = 0.5F;
    slot.word[1].probability *= 0.5F;
    if (below(random_, 2) == 1) {
      slot.word[0] = slot.word[1];
    }
    return;
  }
  slot.words = 2;
}

void Watching::arm(Slot& slot, const profile::SampleRow& row) {
  for (std::uint32_t t = 0; t < threads_; ++t) {
    slot.mode[t].fill(t == row.thread.value ? Mode::write_only : Mode::read_write);
  }
  if (stores(row.access)) {
    slot.mode[row.thread.value][0] = Mode::off;  // the store of this run is known already
  }
}

void Watching::open(Slot& slot, profile::SampleRow& row, const in_target::Suspicion& suspicion, bool suspected) {
  slot.watch = static_cast<std::uint32_t>(watches_.size() + 1);
  slot.sequence = slot.runs = 0;
  slot.runner = row.thread.value;
  slot.suspected = suspected;
  slot.stored = stores(row.access);
  slot.line = row.address - row.address % profile::cache_line;
  slot.brief = !suspected && below(random_, long_one_in) != 0;
  const double horizon_ns = observer_.horizon_ns / (slot.brief ? briefer_by : 1);
  slot.deadline_ns = static_cast<double>(row.time_ns) + horizon_ns;
  choose_words(slot, row, suspicion);
  arm(slot, row);
  slot.cost_ns = observer_.arm_cost_ns * threads_;
  spend(slot.cost_ns, !suspected);

  profile::WatchRow watch;
  watch.id = WatchId{slot.watch};
  watch.thread = row.thread;
  watch.time_ns = row.time_ns;
  watch.line = slot.line;
  watch.words.assign(slot.word.begin(), slot.word.begin() + slot.words);
  watch.threads = threads_;
  watch.armed = threads_ - 1;
  watch.suspected = suspected;
  watch.horizon_ns = static_cast<std::uint64_t>(horizon_ns);
  watch.state = state_of(slot.line);
  row.watch = watch.id;
  row.flags |= profile::sample_armed;
  watch.sample_ip = row.ip;
  watch.sample_access_ip = row.access_ip;
  watch.sample_address = row.address;
  watch.sample_cpu_ns = row.cpu_ns;
  watch.sample_width = row.width;
  watch.sample_access = row.access;
  watch.sample_from = row.from;
  watch.sample_flags = row.flags;
  watch.sample_cpu = row.cpu;
  watches_.push_back(std::move(watch));
}

bool Watching::trap(Slot& slot, std::uint32_t thread, std::uint32_t word, const Access& access, double now_ns) {
  Mode& mode = slot.mode[thread][word];
  if (mode == Mode::off || (mode == Mode::write_only && !stores(access.kind))) {
    return false;
  }
  profile::TrapRow row;
  row.watch = WatchId{slot.watch};
  row.thread = ThreadId{thread};
  row.sequence = slot.sequence++;
  row.time_ns = static_cast<std::uint64_t>(now_ns);
  row.ip = ip_after(access.kind);
  row.cpu = static_cast<std::uint16_t>(thread);
  row.word = static_cast<std::uint8_t>(word);
  row.write_only = mode == Mode::write_only;
  row.state = state_of(slot.line);
  row.registers.value[static_cast<std::size_t>(Register::rax)] = slot.line + access.word * word_bytes;
  if (unit(random_) >= observer_.lost_traps) {
    traps_.push_back(row);
  }
  slot.stored |= stores(access.kind);
  slot.cost_ns += observer_.trap_cost_ns;
  spend(observer_.trap_cost_ns, !slot.suspected);
  mode = mode == Mode::read_write ? Mode::write_only : Mode::off;
  const std::uint32_t previous = slot.runner;
  slot.runner = thread;
  slot.runs += previous != thread ? 1 : 0;
  if (slot.runs == 1 && previous != thread) {
    slot.deadline_ns = std::max(slot.deadline_ns, now_ns + static_cast<double>(profile::verdict_ns));
  }
  const bool full = slot.sequence >= max_traps || slot.runs >= max_runs;
  if (full || now_ns >= slot.deadline_ns) {
    close(slot, now_ns, full ? profile::CloseReason::full : profile::CloseReason::horizon);
  } else if (previous != thread) {
    slot.mode[previous].fill(Mode::read_write);
  }
  return true;
}

std::uint32_t Watching::access(std::uint32_t thread, const Access& access, double now_ns) {
  if (stores(access.kind)) {
    ++state_of(address_of(access.line)).word[access.word];
  }
  std::uint32_t trapped = 0;
  for (std::uint32_t i = 0; i < slots_; ++i) {
    Slot& slot = slot_[i];
    if (slot.watch == 0 || slot.line != address_of(access.line)) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.words && slot.watch != 0; ++w) {
      if (slot.word[w].offset == access.word * word_bytes) {
        trapped += trap(slot, thread, w, access, now_ns) ? 1 : 0;
      }
    }
  }
  return trapped;
}

void Watching::pass(double now_ns) {
  for (std::uint32_t i = 0; i < slots_; ++i) {
    if (slot_[i].watch != 0 && slot_[i].brief && slot_[i].runs == 0 && now_ns >= slot_[i].deadline_ns) {
      close(slot_[i], now_ns, profile::CloseReason::horizon);
    }
  }
}

void Watching::finish(double now_ns) {
  for (Slot& slot : slot_) {
    if (slot.watch != 0) {
      close(slot, now_ns, profile::CloseReason::stopped);
    }
  }
}

void Watching::close(Slot& slot, double now_ns, profile::CloseReason reason) {
  const bool exchanged = slot.stored && slot.runs > 0;
  board_->judged(slot.line, exchanged);
  if (!slot.suspected) {
    budget_.explored(exchanged);
  }
  constexpr double memory = 8;  // watches
  mean_cost_ns_ += (slot.cost_ns - mean_cost_ns_) / memory;
  watches_[slot.watch - 1].close = reason;
  watches_[slot.watch - 1].close_ns = static_cast<std::uint64_t>(now_ns);
  slot.watch = 0;
}

std::vector<profile::TrapRow> Watching::take_traps() {
  std::stable_sort(traps_.begin(), traps_.end(), [](const profile::TrapRow& a, const profile::TrapRow& b) {
    return std::tie(a.watch.value, a.sequence) < std::tie(b.watch.value, b.sequence);
  });
  return std::move(traps_);
}

}  // namespace crosstalk::simulation
