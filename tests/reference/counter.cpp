// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/counter.h"

#include <algorithm>

namespace crosstalk::reference {
namespace {

constexpr std::size_t node_bytes = 3 * sizeof(void*);  // a hash table's or tree's overhead for an entry, about

std::uint64_t mix(std::uint64_t value) {  // the finaliser of MurmurHash3
  value = (value ^ (value >> 33U)) * 0xff51afd7ed558ccdULL;
  value = (value ^ (value >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33U);
}

std::uint64_t together(std::uint32_t high, std::uint32_t low) { return (std::uint64_t{high} << 32U) | low; }

std::uint64_t bits(std::uint64_t first, std::uint64_t count) {
  return (count >= line_bytes ? ~0ULL : (1ULL << count) - 1) << first;
}

}  // namespace

std::size_t PairHash::operator()(const CodePair& pair) const {
  return mix(mix(together(pair.producer, pair.consumer)) + together(pair.producer_code, pair.consumer_code));
}

std::size_t PairHash::operator()(const DataPair& pair) const {
  return mix(mix(mix(pair.address) + together(pair.producer, pair.consumer)) + pair.block);
}

LineState& Counter::line(std::uint64_t address, Cursor& cursor) {
  const std::uint64_t number = address / page_bytes;
  if (cursor.generation != generation_) {
    cursor = Cursor();
    cursor.generation = generation_;
  }
  auto& slot = cursor.slots[number % cursor.slots.size()];
  if (slot.page != number) {
    auto& page = pages_[number];
    if (!page) {
      page = std::make_unique<Page>();
      memory_ += sizeof(Page) + node_bytes;
    }
    slot = {number, page.get()};
  }
  return slot.found->lines[address % page_bytes / line_bytes];
}

std::uint32_t Counter::block_at(std::uint64_t address) {
  auto next = live_.upper_bound(address);
  if (next == live_.begin()) {
    return 0;
  }
  Live& live = std::prev(next)->second;
  if (address - live.block.begin >= live.block.bytes) {
    return 0;
  }
  if (live.number == 0) {
    blocks_.push_back(live.block);
    memory_ += sizeof live.block;
    live.number = static_cast<std::uint32_t>(blocks_.size());
  }
  return live.number;
}

void Counter::count(const Access& access, std::uint64_t address, const Transfer& transfer) {
  const auto add = [&](auto& table, const auto& key) {
    const auto [entry, fresh] = table.try_emplace(key);
    ++(transfer.true_sharing ? entry->second.true_sharing : entry->second.false_sharing);
    memory_ += fresh ? sizeof *entry + node_bytes : 0;
  };
  add(by_code_, CodePair{transfer.producer, access.thread, transfer.producer_code, access.code});
  add(by_data_, DataPair{address, block_at(address), transfer.producer, access.thread});
}

void Counter::access_line(const Access& access, std::uint64_t address, std::uint64_t bytes, Cursor& cursor) {
  LineState& state = line(address, cursor);
  if (state.last_was(access.thread) && !stores(access.kind)) {
    return;
  }
  const std::size_t before = state.heap_bytes();
  const auto transfer =
      state.access({access.thread, access.code, bits(address % line_bytes, bytes), access.kind}, invalidated_);
  memory_ += state.heap_bytes() - before;
  if (transfer) {
    count(access, address, *transfer);
  }
  for (const ThreadIndex loser : invalidated_) {
    ++invalidations_[{access.thread, loser}];
  }
  invalidated_.clear();
}

bool Counter::access(const Access& access, Cursor& cursor) {
  std::uint64_t address = access.address;
  for (std::uint64_t left = access.bytes; left > 0;) {
    const std::uint64_t here = std::min(left, line_bytes - address % line_bytes);
    access_line(access, address, here, cursor);
    address += here;
    left -= here;
  }
  return memory_ <= memory_limit_;
}

void Counter::forget(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = (begin + page_bytes - 1) / page_bytes;
  const std::uint64_t last = end / page_bytes;
  std::size_t gone = 0;
  const auto erase = [&](auto page) {
    for (const LineState& state : page->second->lines) {
      memory_ -= state.heap_bytes();
    }
    memory_ -= sizeof(Page) + node_bytes;
    ++gone;
    return pages_.erase(page);
  };
  if (first < last && last - first > pages_.size()) {
    for (auto page = pages_.begin(); page != pages_.end();) {
      page = page->first >= first && page->first < last ? erase(page) : std::next(page);
    }
  } else {
    for (std::uint64_t number = first; number < last; ++number) {
      if (const auto page = pages_.find(number); page != pages_.end()) {
        erase(page);
      }
    }
  }
  generation_ += gone > 0 ? 1 : 0;
}

void Counter::allocated(const HeapBlock& block) {
  if (block.bytes > 0) {
    const auto [entry, fresh] = live_.insert_or_assign(block.begin, Live{block, 0});
    memory_ += fresh ? sizeof *entry + node_bytes : 0;
  }
}

void Counter::freed(std::uint64_t begin) {
  if (const auto found = live_.find(begin); found != live_.end()) {
    memory_ -= sizeof *found + node_bytes;
    live_.erase(found);
  }
}

}  // namespace crosstalk::reference
