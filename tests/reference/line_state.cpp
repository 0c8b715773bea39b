// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/line_state.h"

#include <algorithm>

namespace crosstalk::reference {

LineState::Party& LineState::begin_run(ThreadIndex thread) {
  const auto found =
      std::find_if(parties_.begin(), parties_.end(), [thread](const Party& party) { return party.thread == thread; });
  if (found != parties_.end()) {
    return *found;
  }
  if (parties_.empty()) {
    parties_.reserve(1);  // most lines are touched by one thread only
  }
  return parties_.emplace_back(Party{thread, 0, 0});
}

std::optional<Transfer> LineState::transfer(const LineAccess& access, const Party& party) const {
  if (last_store_thread_ == nobody || last_store_thread_ == access.thread || last_store_run_ <= party.last_access) {
    return std::nullopt;
  }
  for (auto store = stores_.rbegin(); store != stores_.rend() && store->run > party.last_access; ++store) {
    if (store->thread == last_store_thread_ && (store->bytes & access.bytes) != 0) {
      return Transfer{store->thread, store->code, true};
    }
  }
  return Transfer{last_store_thread_, last_store_code_, false};
}

void LineState::store(const LineAccess& access, std::vector<ThreadIndex>& invalidated) {
  if (last_store_run_ != run_) {
    for (const Party& party : parties_) {
      if (party.thread != access.thread && party.last_load > last_store_run_) {
        invalidated.push_back(party.thread);
      }
    }
  }
  last_store_run_ = run_;
  last_store_thread_ = access.thread;
  last_store_code_ = access.code;
  const auto same = [&](const Store& store) {
    return store.thread == access.thread && store.run == run_ && store.code == access.code;
  };
  if (!stores_.empty() && same(stores_.back()) && (access.bytes & ~stores_.back().bytes) == 0) {
    return;
  }
  std::uint64_t bytes = access.bytes;
  if (!stores_.empty() && same(stores_.back())) {
    bytes |= stores_.back().bytes;
    stores_.pop_back();
  }
  for (Store& store : stores_) {
    if (store.thread == access.thread) {
      store.bytes &= ~bytes;
    }
  }
  std::erase_if(stores_, [](const Store& store) { return store.bytes == 0; });
  if (stores_.empty()) {
    stores_.reserve(1);
  }
  stores_.push_back({bytes, run_, access.thread, access.code});
}

std::optional<Transfer> LineState::access(const LineAccess& access, std::vector<ThreadIndex>& invalidated) {
  std::optional<Transfer> seen;
  if (last_thread_ != access.thread) {
    Party& party = begin_run(access.thread);
    seen = transfer(access, party);
    ++run_;
    last_thread_ = access.thread;
    party.last_access = run_;
    if (loads(access.kind)) {
      party.last_load = run_;
    }
  }
  if (stores(access.kind)) {
    store(access, invalidated);
  }
  return seen;
}

}  // namespace crosstalk::reference
