// SPDX-License-Identifier: Apache-2.0
#include "daemon/told_once.h"

#include <algorithm>
#include <iterator>

namespace crosstalk::daemon {
namespace {

/// Removes the half of the rows that was told first.
template <class Row>
void halve(std::map<std::uint64_t, Row>& rows) {
  std::vector<std::uint64_t> times;
  times.reserve(rows.size());
  for (const auto& [begin, row] : rows) {
    times.push_back(row.time_ns);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2 - 1);
  std::nth_element(times.begin(), middle, times.end());
  std::size_t surplus = rows.size() / 2;  // many may be of the same time
  std::erase_if(rows, [&](const auto& entry) {
    const bool old = surplus != 0 && entry.second.time_ns <= *middle;
    surplus -= old ? 1 : 0;
    return old;
  });
}

/// Adds a row of memory, and removes those of memory that it overlaps.
template <class Row>
void replace(std::map<std::uint64_t, Row>& rows, const Row& row, std::size_t most) {
  auto at = rows.lower_bound(row.begin);
  if (at != rows.begin() && std::prev(at)->second.begin + std::prev(at)->second.bytes > row.begin) {
    --at;
  }
  while (at != rows.end() && (at->first == row.begin || at->first - row.begin < row.bytes || at->first < row.begin)) {
    at = rows.erase(at);
  }
  if (rows.size() >= most) {
    halve(rows);
  }
  rows.emplace(row.begin, row);
}

}  // namespace

void ToldOnce::keep(const profile::BlockRow& row) { replace(processes_[row.process.value].blocks, row, most_blocks); }

void ToldOnce::keep(const profile::SharedMappingRow& row) {
  replace(processes_[row.process.value].mappings, row, most_mappings);
}

void ToldOnce::keep(const profile::ThreadCreationRow& row, const profile::StackRow& stack) {
  std::erase_if(creations_, [&](const Creation& before) {
    return before.row.thread == row.thread && before.stack.registers[Register::rsp] == stack.registers[Register::rsp];
  });
  if (creations_.size() >= most_creations) {
    creations_.pop_front();
  }
  creations_.push_back({row, stack});
}

void ToldOnce::keep(ProcessId process, const profile::MessageRow& row) {
  std::vector<profile::MessageRow>& messages = processes_[process.value].messages;
  const bool known = std::ranges::any_of(
      messages, [&](const profile::MessageRow& other) { return other.code == row.code && other.text == row.text; });
  if (!known && messages.size() < most_messages) {
    messages.push_back(row);
  }
}

void ToldOnce::forget(ProcessId process) { processes_.erase(process.value); }

void ToldOnce::put(const OfProcess& process, RowSink& sink) {
  for (const auto& [begin, row] : process.blocks) {
    sink.put(row);
  }
  for (const auto& [begin, row] : process.mappings) {
    sink.put(row);
  }
  for (const profile::MessageRow& row : process.messages) {
    sink.put(row);
  }
}

void ToldOnce::put_creations(RowSink& sink) const {
  for (const Creation& creation : creations_) {
    sink.put(creation.stack);
    sink.put(creation.row);
  }
}

}  // namespace crosstalk::daemon
