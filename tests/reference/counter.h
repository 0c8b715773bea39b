// SPDX-License-Identifier: Apache-2.0
// Counts communications and invalidations of a whole program: a state for each accessed line, found by page, and totals
// by thread pair, instructions and data. Not thread-safe: the user has the turn (turn.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/reference/line_state.h"

namespace crosstalk::reference {

inline constexpr std::uint64_t line_bytes = 64;
inline constexpr std::uint64_t page_bytes = 4096;

struct Access {
  ThreadIndex thread = 0;
  CodeIndex code = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  // 1 or more; may straddle lines, each of which is then accessed
  AccessKind kind = AccessKind::none;
};

/// Numbers of communications.
struct Counts {
  std::uint64_t true_sharing = 0, false_sharing = 0;
};

/// By threads and the instructions on both sides.
struct CodePair {
  ThreadIndex producer = 0, consumer = 0;
  CodeIndex producer_code = 0, consumer_code = 0;
  bool operator==(const CodePair&) const = default;
};

/// By threads and the first byte within the line that the consumer accessed.
struct DataPair {
  std::uint64_t address = 0;
  std::uint32_t block = 0;  // heap block that was live there, else 0
  ThreadIndex producer = 0, consumer = 0;
  bool operator==(const DataPair&) const = default;
};

struct PairHash {
  std::size_t operator()(const CodePair& pair) const;
  std::size_t operator()(const DataPair& pair) const;
};

using ThreadPair = std::pair<ThreadIndex, ThreadIndex>;  // the storing thread, and the one that reads or loses a copy

/// One live range of memory that the program was given by its allocator.
struct HeapBlock {
  std::uint64_t begin = 0, bytes = 0;
  std::uint64_t caller = 0;  // return address of the allocation
};

class Counter {
 public:
  /// `memory_limit` in bytes, of all that is kept here.
  explicit Counter(std::size_t memory_limit) : memory_limit_(memory_limit) {}

  /// Caches a thread's pages; only for speed.
  class Cursor {
    friend class Counter;
    struct Slot {
      std::uint64_t page = UINT64_MAX;
      struct Page* found = nullptr;
    };
    std::array<Slot, 64> slots;
    std::uint64_t generation = 0;
  };

  /// False once the memory limit is reached; no access may follow then.
  [[nodiscard]] bool access(const Access& access, Cursor& cursor);
  /// Forgets returned memory: later data there has no history.
  void forget(std::uint64_t begin, std::uint64_t end);

  void allocated(const HeapBlock& block);
  void freed(std::uint64_t begin);

  [[nodiscard]] const std::unordered_map<CodePair, Counts, PairHash>& by_code() const { return by_code_; }
  [[nodiscard]] const std::unordered_map<DataPair, Counts, PairHash>& by_data() const { return by_data_; }
  [[nodiscard]] const std::map<ThreadPair, std::uint64_t>& invalidations() const { return invalidations_; }
  /// Blocks by their number less 1; live or not.
  [[nodiscard]] const std::vector<HeapBlock>& blocks() const { return blocks_; }
  [[nodiscard]] std::size_t memory() const { return memory_; }

 private:
  LineState& line(std::uint64_t address, Cursor& cursor);
  void access_line(const Access& access, std::uint64_t address, std::uint64_t bytes, Cursor& cursor);
  void count(const Access& access, std::uint64_t address, const Transfer& transfer);
  [[nodiscard]] std::uint32_t block_at(std::uint64_t address);

  std::size_t memory_limit_, memory_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t generation_ = 0;  // of pages_; a cursor of an older one is void
  std::unordered_map<CodePair, Counts, PairHash> by_code_;
  std::unordered_map<DataPair, Counts, PairHash> by_data_;
  std::map<ThreadPair, std::uint64_t> invalidations_;
  std::vector<ThreadIndex> invalidated_;
  // Blocks get a number when they first communicate, so that millions of others cost nothing.
  struct Live {
    HeapBlock block;
    std::uint32_t number = 0;
  };
  std::map<std::uint64_t, Live> live_;  // by begin
  std::vector<HeapBlock> blocks_;
};

/// The states of the lines of one page.
struct Page {
  std::array<LineState, page_bytes / line_bytes> lines;
};

}  // namespace crosstalk::reference
