// SPDX-License-Identifier: Apache-2.0
#include "attribution/condition_locks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace crosstalk::attribution {
namespace {

/// The threads and the code that access an object.
struct Use {
  std::set<std::uint32_t> threads;
  std::set<std::pair<std::string, std::uint32_t>> lines;
  std::set<std::pair<std::string, std::string>> functions;  // with their files

  bool by_waiter = false;  // a thread takes it again after its wait: the C library has a function of its own for that

  void add(const std::string& file, std::uint32_t line, const std::string& function, const std::string& through) {
    constexpr const char* take_again = "mutex_cond_lock";
    by_waiter =
        by_waiter || function.find(take_again) != std::string::npos || through.find(take_again) != std::string::npos;
    if (line != 0) {
      lines.insert({file, line});
    }
    if (!function.empty()) {
      functions.insert({file, function});
    }
  }
};

std::map<std::string, Use> uses_of(const Communication& found) {
  std::map<std::string, Use> uses;
  for (const ObjectRow& object : found.objects) {
    for (const Cell& cell : object.cells) {
      uses[object.name].threads.insert({cell.producer, cell.consumer});
    }
  }
  for (const LinePair& pair : found.line_pairs) {
    Use& use = uses[pair.object];
    use.add(pair.producer_file, pair.producer_line, pair.producer_function, pair.producer_through);
    use.add(pair.consumer_file, pair.consumer_line, pair.consumer_function, pair.consumer_through);
  }
  return uses;
}

void add(Amount& to, const Amount& amount) {
  const bool moved = (to.detections > 0 && !to.one_processor) || (amount.detections > 0 && !amount.one_processor);
  const double detections = to.detections + amount.detections;
  const std::uint64_t seen = to.seen + amount.seen;
  if (to.cost_s && amount.cost_s) {
    const Sum sum = sum_of(to, amount);
    to.cost_s = sum.cost_s;
    to.cost_ci95 = sum.cost_ci95;
    to.gain_s = sum.gain_s;
    to.gain_ci95 = sum.gain_ci95;
  } else if (amount.cost_s) {
    to = amount;
  }
  to.count.reset();  // two counts of different words are no count of hand-overs
  to.count_ci95.reset();
  to.detections = detections;
  to.seen = seen;
  to.one_processor = detections > 0 && !moved;
}

template <class Set>
bool meet(const Set& a, const Set& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& each) { return b.contains(each); });
}

}  // namespace

std::vector<ConditionLocks> condition_locks_of(const Communication& found) {
  std::map<std::string, Use> uses = uses_of(found);
  std::set<std::size_t> taken;
  std::vector<ConditionLocks> result;
  for (std::size_t i = 0; i < found.objects.size(); ++i) {
    if (found.objects[i].sharing.kind != SharingKind::condition) {
      continue;
    }
    const Use& condition = uses[found.objects[i].name];
    std::vector<std::size_t> by_line, by_function;
    for (std::size_t j = 0; j < found.objects.size(); ++j) {
      const Use& lock = uses[found.objects[j].name];
      if (found.objects[j].sharing.kind != SharingKind::lock || taken.contains(j) ||
          lock.threads != condition.threads) {
        continue;
      }
      if (meet(lock.lines, condition.lines)) {
        by_line.push_back(j);
      } else if (lock.by_waiter || meet(lock.functions, condition.functions)) {
        by_function.push_back(j);
      }
    }
    if (by_line.empty() && by_function.size() == 1) {
      by_line = by_function;
    }
    if (!by_line.empty()) {
      taken.insert(by_line.begin(), by_line.end());
      result.push_back({i, std::move(by_line)});
    }
  }
  return result;
}

SyncPair sync_pair_within(const ObjectRow& object) {
  constexpr double noticeable = 0.05;  // of what is spent on such fields
  double all_s = 0;
  for (const SyncField& field : object.sync_fields) {
    all_s += field.cost_s;
  }
  const auto costliest = [&](SharingKind kind) {
    const auto found = std::find_if(object.sync_fields.begin(), object.sync_fields.end(),
                                    [&](const SyncField& f) { return f.kind == kind; });
    const bool counts = found != object.sync_fields.end() && found->cost_s >= noticeable * all_s;
    return counts ? &*found : nullptr;
  };
  const SyncPair pair{costliest(SharingKind::condition), costliest(SharingKind::lock)};
  return pair.condition != nullptr && pair.lock != nullptr ? pair : SyncPair();
}

ObjectRow joined(const std::vector<ObjectRow>& objects, const ConditionLocks& condition) {
  ObjectRow row = objects[condition.condition];
  for (const std::size_t at : condition.locks) {
    const ObjectRow& lock = objects[at];
    row.cost_s += lock.cost_s;
    add(row.true_sharing, lock.true_sharing);
    add(row.false_sharing, lock.false_sharing);
    row.cells.insert(row.cells.end(), lock.cells.begin(), lock.cells.end());
  }
  return row;
}

}  // namespace crosstalk::attribution
