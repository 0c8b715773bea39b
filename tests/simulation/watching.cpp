// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/watching.h"

#include <algorithm>
#include <tuple>

#include "collectors/watch_policy/probing.h"

namespace crosstalk::simulation {
namespace {

constexpr double first_cost_guess = 0.04;  // of a period
constexpr std::uint64_t ns_per_ms = 1'000'000;

std::uint64_t whole(double ns) { return static_cast<std::uint64_t>(ns); }

/// Threads are numbered from 0 in rows; the policy's numbers begin with 1.
std::uint32_t number_of(std::uint32_t thread) { return thread + 1; }
std::uint32_t thread_of(std::uint32_t number) { return number - 1; }

}  // namespace

Watching::Watching(const Observer& observer, std::uint32_t threads, std::uint32_t access_bytes, std::uint64_t seed)
    : observer_(observer),
      word_bytes_(access_bytes),
      plan_(watch_policy::SlotPlan::of(observer.registers)),
      random_(seed),
      policy_random_(random_() | 1U),
      mean_cost_ns_(whole(first_cost_guess * observer.period_ns)) {
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    begins(thread);
  }
  budget_.clear();
  budget_.start(observer.budget);
  board_->start(observer.board_slots);
}

void Watching::begins(std::uint32_t thread) {
  living_.push_back(thread);
  samples_.resize(std::max<std::size_t>(samples_.size(), thread + 1));
}

void Watching::ends(std::uint32_t thread) { std::erase(living_, thread); }

bool Watching::lives(std::uint32_t thread) const {
  return std::find(living_.begin(), living_.end(), thread) != living_.end();
}

void Watching::spend(std::uint64_t ns, bool exploring) {
  budget_.spend(ns);
  if (exploring) {
    budget_.explore(ns);
  }
}

profile::LineState& Watching::state_of(std::uint64_t line) {
  const std::size_t index = (line - first_line_address) / profile::cache_line;
  if (index >= states_.size()) {
    states_.resize(index + 1);
  }
  return states_[index];
}

Watching::Slot* Watching::room(bool suspected) {
  for (std::uint32_t i = plan_.first(suspected); i < plan_.last(suspected); ++i) {
    if (slot_[i].watch == 0) {
      return &slot_[i];
    }
  }
  return nullptr;
}

double Watching::sample(profile::SampleRow& row, std::uint64_t cpu_ns) {
  const std::uint32_t thread = row.thread.value;
  const auto now_ms = static_cast<std::uint32_t>(row.time_ns / ns_per_ms);
  budget_.earn(cpu_ns);
  spend(whole(observer_.sample_cost_ns), false);
  expire(row.time_ns);
  const auto offset = static_cast<std::uint32_t>(row.address % profile::cache_line);
  const watch_policy::SampledAccess access{offset, row.width, row.access, row.from == profile::AddressFrom::next,
                                           (row.flags & profile::sample_on_stack) != 0};
  const watch_policy::Suspicion known =
      board_->publish(row.address - offset, {static_cast<std::uint16_t>(number_of(thread)),
                                             static_cast<std::uint8_t>(offset), row.width, row.access, now_ms});
  const bool suspected = watch_policy::is_suspected(known, now_ms);
  row.flags = static_cast<std::uint8_t>(row.flags | profile::sample_eligible |
                                        (suspected ? unsigned{profile::sample_suspected} : 0U));
  ++samples_[thread];
  if (observer_.probe) {
    return probe(row, suspected);
  }
  if (plan_.slots == 0 || !watch_policy::is_drawn(access, known, suspected, samples_[thread], policy_random_)) {
    return 0;
  }
  Slot* slot = room(suspected);
  return slot != nullptr && budget_.affords(mean_cost_ns_, !suspected) ? open(*slot, row, access, known, suspected) : 0;
}

/// A watch that the sample opens, which lasts and arms as the caller has it.
profile::WatchRow Watching::new_watch(profile::SampleRow& row, bool suspected) {
  profile::WatchRow watch;
  watch.id = WatchId{static_cast<std::uint32_t>(watches_.size() + 1)};
  watch.thread = row.thread;
  watch.time_ns = row.time_ns;
  watch.line = row.address - row.address % profile::cache_line;
  watch.threads = static_cast<std::uint32_t>(living_.size());
  watch.suspected = suspected;
  watch.state = state_of(watch.line);
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
  watch.sample_measurement = row.measurement;
  return watch;
}

/// One line is probed at a time, as by an observer from outside.
double Watching::probe(profile::SampleRow& row, bool suspected) {
  const watch_policy::ProbePlan plan = watch_policy::plan_probe(next_random(policy_random_));
  const std::uint64_t cost_ns = whole(observer_.probe_cost_ns);
  if (!plan.wanted || probed_.watch != 0 || !budget_.affords(cost_ns, false)) {
    return 0;
  }
  spend(cost_ns, false);
  profile::WatchRow watch = new_watch(row, suspected);
  watch.armed = watch.threads - 1;
  watch.probe.emplace().gap_ns = plan.gap_ns;
  watch.close = profile::CloseReason::horizon;
  watch.close_ns = row.time_ns + plan.gap_ns;
  probed_ = {watch.id.value, static_cast<double>(watch.close_ns), *watch.state};
  watches_.push_back(watch);
  return plan.gap_ns;
}

void Watching::look_again() {
  profile::WatchRow& watch = watches_[probed_.watch - 1];
  const profile::LineState& after = state_of(watch.line);
  constexpr std::uint64_t whole_word = 0xff;  // a bit for each byte
  for (std::uint32_t word = 0; word < profile::LineState::words; ++word) {
    if (after.word[word] != probed_.before.word[word]) {
      watch.probe->changed |= whole_word << (word * word_bytes);
    }
  }
  probed_ = {};
}

std::uint32_t Watching::arm(Slot& slot, std::uint32_t sampled, const watch_policy::SampledAccess& access,
                            const watch_policy::Suspicion& suspicion) {
  slot.mode.assign(samples_.size(), Modes{});
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    slot.mode[sampled][w] = watch_policy::first_mode(access, w);
  }
  const std::uint32_t partner = slot.suspected ? suspicion.partner.thread : 0;
  const bool has_partner = partner != 0 && thread_of(partner) != sampled && lives(thread_of(partner));
  watch_policy::ArmedDraw draw(static_cast<std::uint32_t>(living_.size()) - 1, has_partner);
  std::uint32_t armed = 0;
  for (const std::uint32_t t : living_) {
    if (t != sampled && ((has_partner && t == thread_of(partner)) || draw.take(policy_random_))) {
      slot.mode[t].fill(WatchMode::read_write);
      ++armed;
    }
  }
  return armed;
}

double Watching::open(Slot& slot, profile::SampleRow& row, const watch_policy::SampledAccess& access,
                      const watch_policy::Suspicion& suspicion, bool suspected) {
  const std::uint32_t thread = row.thread.value;
  slot.watch = static_cast<std::uint32_t>(watches_.size() + 1);
  slot.suspected = suspected;
  slot.line = row.address - row.address % profile::cache_line;
  const std::uint64_t whole_ns = whole(observer_.horizon_ns);
  const std::uint64_t horizon_ns = watch_policy::choose_horizon(suspected, whole_ns, policy_random_);
  slot.alarm_ns = horizon_ns < whole_ns ? row.time_ns + horizon_ns : 0;
  slot.choice = watch_policy::choose_words(access, suspicion, plan_.registers, next_random(policy_random_));
  slot.progress.begin(number_of(thread), access, row.time_ns + horizon_ns);
  const std::uint32_t armed = arm(slot, thread, access, suspicion);
  const double stall_ns = observer_.stall_ns * armed;
  slot.opener = thread;
  slot.armed_ns = static_cast<double>(row.time_ns) + stall_ns;
  slot.cost_ns = whole(observer_.arm_cost_ns * (armed + 1));
  spend(slot.cost_ns, !suspected);

  profile::WatchRow watch = new_watch(row, suspected);
  watch.words.assign(slot.choice.word, slot.choice.word + slot.choice.words);
  watch.armed = armed;
  watch.horizon_ns = horizon_ns;
  watches_.push_back(watch);
  return stall_ns;
}

bool Watching::trap(Slot& slot, std::uint32_t thread, std::uint32_t word, const Access& access, std::uint64_t now_ns) {
  if (thread >= slot.mode.size() || (thread != slot.opener && static_cast<double>(now_ns) < slot.armed_ns)) {
    return false;
  }
  WatchMode& mode = slot.mode[thread][word];
  if (mode == WatchMode::off || (mode == WatchMode::write_only && !stores(access.kind))) {
    return false;
  }
  profile::TrapRow row;
  row.watch = WatchId{slot.watch};
  row.thread = ThreadId{thread};
  row.sequence = slot.progress.count_trap();
  row.time_ns = now_ns;
  row.ip = ip_after(access.kind, word_bytes_);
  row.cpu = static_cast<std::uint16_t>(thread);
  row.word = static_cast<std::uint8_t>(word);
  row.write_only = mode == WatchMode::write_only;
  row.state = state_of(slot.line);
  row.registers.value[static_cast<std::size_t>(Register::rax)] = slot.line + std::uint64_t{access.word} * word_bytes_;
  if (unit(random_) >= observer_.lost_traps) {
    traps_.push_back(row);
  }
  if (stores(access.kind)) {
    slot.progress.saw_store();
  }
  slot.cost_ns += whole(observer_.trap_cost_ns);
  spend(whole(observer_.trap_cost_ns), !slot.suspected);
  mode = watch_policy::mode_after_trap(mode);
  const watch_policy::Turn turn = slot.progress.advance(number_of(thread), row.sequence, now_ns);
  if (turn.close) {
    close(slot, now_ns, *turn.close);
  }
  if (turn.rearm != 0) {
    slot.mode[thread_of(turn.rearm)].fill(WatchMode::read_write);
  }
  return true;
}

std::uint32_t Watching::access(std::uint32_t thread, const Access& access, double now_ns) {
  if (stores(access.kind)) {
    ++state_of(address_of(access.line)).word[std::size_t{access.word} * word_bytes_ / word_bytes];
  }
  std::uint32_t trapped = 0;
  for (Slot& slot : slot_) {
    if (observer_.dead || slot.watch == 0 || slot.line != address_of(access.line)) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.choice.words && slot.watch != 0; ++w) {
      const profile::WatchWord& piece = slot.choice.word[w];
      const std::uint32_t offset = access.word * word_bytes_;
      if (offset < std::uint32_t{piece.offset} + piece.length && piece.offset < offset + word_bytes_) {
        trapped += trap(slot, thread, w, access, whole(now_ns)) ? 1 : 0;
      }
    }
  }
  return trapped;
}

void Watching::expire(std::uint64_t now_ns) {
  for (Slot& slot : slot_) {
    if (slot.watch != 0 && slot.progress.expired(now_ns)) {
      close(slot, now_ns, profile::CloseReason::horizon);
    }
  }
}

// An alarm expires once. If the watch has been prolonged by then, a later trap or sample ends it.
void Watching::pass(double now_ns) {
  if (probed_.watch != 0 && now_ns >= probed_.due_ns) {
    look_again();
  }
  for (Slot& slot : slot_) {
    if (slot.alarm_ns != 0 && now_ns >= static_cast<double>(slot.alarm_ns)) {
      slot.alarm_ns = 0;
      expire(whole(now_ns));
    }
  }
}

void Watching::finish(double now_ns) {
  if (probed_.watch != 0) {
    look_again();
  }
  for (Slot& slot : slot_) {
    if (slot.watch != 0) {
      close(slot, whole(now_ns), profile::CloseReason::stopped);
    }
  }
}

void Watching::close(Slot& slot, std::uint64_t now_ns, profile::CloseReason reason) {
  const bool exchanged = slot.progress.exchanged();
  board_->judged(slot.line, exchanged);
  if (!slot.suspected) {
    budget_.explored(exchanged);
  }
  mean_cost_ns_ = watch_policy::mean_with(mean_cost_ns_, slot.cost_ns);
  watches_[slot.watch - 1].close = reason;
  watches_[slot.watch - 1].close_ns = now_ns;
  slot.watch = 0;
}

std::vector<profile::TrapRow> Watching::take_traps() {
  std::stable_sort(traps_.begin(), traps_.end(), [](const profile::TrapRow& a, const profile::TrapRow& b) {
    return std::tie(a.watch.value, a.sequence) < std::tie(b.watch.value, b.sequence);
  });
  return std::move(traps_);
}

}  // namespace crosstalk::simulation
