// SPDX-License-Identifier: Apache-2.0
#include "models/cycle_accounting.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace crosstalk::models {
namespace {

constexpr std::array<CycleClass, 4> levels = {CycleClass::l1d, CycleClass::l2, CycleClass::l3, CycleClass::memory};

/// Distributes the elapsed time among classes.
class Purse {
 public:
  Purse(CycleAccount& account, double seconds) : account_(account), left_(std::max(0.0, seconds)) {}

  /// Adds to a class's time, at most what is left. An absent amount gives it nothing, not even a zero.
  void give(CycleClass to, const std::optional<double>& seconds) {
    if (seconds) {
      const double given = std::clamp(*seconds, 0.0, left_);
      left_ -= given;
      account_.at(to) = account_.at(to).value_or(0) + given;
    }
  }
  [[nodiscard]] double left() const { return left_; }

 private:
  CycleAccount& account_;
  double left_;
};

void give_off_cpu(const CycleEvidence& e, Purse& purse) {
  if (!e.off_cpu_s) {
    return;
  }
  const double off = std::min(*e.off_cpu_s, purse.left());
  const double io = std::clamp(e.io_s.value_or(0), 0.0, off);
  const double runnable = std::clamp(e.runnable_s.value_or(0), 0.0, off - io);
  purse.give(CycleClass::io, e.io_s ? std::optional(io) : std::nullopt);
  purse.give(CycleClass::runnable, e.runnable_s ? std::optional(runnable) : std::nullopt);
  purse.give(CycleClass::blocked, off - io - runnable);
}

void give_data(const CycleEvidence& e, double seconds, Purse& purse) {
  if (!e.data_levels) {
    purse.give(CycleClass::data, seconds);
    return;
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    purse.give(levels[i], seconds * (*e.data_levels)[i]);
  }
}

void give_in_user_code(const CycleEvidence& e, Purse& purse) {
  purse.give(CycleClass::committing, e.commit_bound_s);
  if (!e.standing) {
    return;
  }
  const Standing& at = *e.standing;
  const double all = at.fpu.value_or(0) + at.data.value_or(0) + at.frontend.value_or(0) + at.branch.value_or(0);
  const double waiting = purse.left() / std::max(1.0, all);
  const auto seconds = [waiting](const std::optional<double>& part) {
    return part ? std::optional(*part * waiting) : std::nullopt;
  };
  purse.give(CycleClass::fpu, seconds(at.fpu));
  if (at.data) {
    give_data(e, *at.data * waiting, purse);
  }
  purse.give(CycleClass::frontend, seconds(at.frontend));
  purse.give(CycleClass::branch, seconds(at.branch));
}

}  // namespace

const char* cycle_class_name(CycleClass which) {
  static constexpr std::array<const char*, cycle_classes> names = {
      "committing", "fpu",     "l1d",       "l2", "l3",      "memory",   "data",   "frontend",    "branch",
      "lock",       "barrier", "condition", "io", "blocked", "runnable", "kernel", "unattributed"};
  return names[static_cast<std::size_t>(which)];
}

double CycleAccount::total() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0,
                         [](double sum, const std::optional<double>& part) { return sum + part.value_or(0); });
}

CycleAccount account(const CycleEvidence& evidence) {
  CycleAccount account;
  Purse purse(account, evidence.elapsed_s);
  give_off_cpu(evidence, purse);
  purse.give(CycleClass::lock, evidence.lock_s);
  purse.give(CycleClass::barrier, evidence.barrier_s);
  purse.give(CycleClass::condition, evidence.condition_s);
  purse.give(CycleClass::kernel, evidence.kernel_s);
  give_in_user_code(evidence, purse);
  purse.give(CycleClass::unattributed, purse.left());
  if (evidence.off_cpu_s && !evidence.runnable_s) {
    account.notes.emplace_back("The wait for a free processor was not measured; it is part of the blocked time.");
  }
  if (evidence.standing && !evidence.commit_bound_s) {
    account.notes.emplace_back("The time to commit instructions is unknown; it is part of the waiting time.");
  }
  return account;
}

std::optional<double> imbalance(std::span<const double> seconds_by_thread) {
  if (seconds_by_thread.size() < 2) {
    return std::nullopt;
  }
  const double sum = std::accumulate(seconds_by_thread.begin(), seconds_by_thread.end(), 0.0);
  const double most = *std::max_element(seconds_by_thread.begin(), seconds_by_thread.end());
  return most > 0 ? std::optional(1 - sum / static_cast<double>(seconds_by_thread.size()) / most) : std::nullopt;
}

}  // namespace crosstalk::models
