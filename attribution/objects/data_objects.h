// SPDX-License-Identifier: Apache-2.0
// Finds the program's object at a data address: a thread's stack, a thread-local or global variable, a block of the
// heap by its allocation site, a mapping, memory that processes share, or unknown memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/objects/stack_variables.h"
#include "attribution/program/program_view.h"
#include "attribution/timeline/shared_index.h"

namespace crosstalk::attribution {

/// Blocks by address.
using BlockIndex = RowsByAddress<profile::BlockRow>;

/// The element type of a heap block, or the type of a variable on a stack.
struct Element {
  std::uint32_t file = 0;  // with the type's debug information
  symbolizer::AllocatedType type;
  bool several = false;  // in a block
};

struct DataObject {
  std::string name;
  std::string place;  // the end of a block's name, behind its type; empty: none
  std::string site;   // of some blocks of an allocation site: the name of all; else empty
  std::uint64_t blocks = 0;
  ObjectKind kind = ObjectKind::unknown;
  std::optional<std::uint64_t> bytes;  // absent: unknown, or the blocks of one site differ
  std::string allocated_at;            // "file:line function"; empty: static storage, or not known
  std::vector<symbolizer::Frame> allocation_path;
  std::uint32_t file = 0;  // of `symbol`
  std::optional<symbolizer::DataSymbol> symbol;
  std::optional<Element> element;  // of a heap block or a variable on a stack, where its type is known
};

struct DataRef {
  static constexpr std::uint32_t no_block = UINT32_MAX;
  std::uint32_t object = 0;        // index, in the order of first resolution
  std::uint64_t offset = 0;        // in the object; of blocks, in the block
  std::uint32_t block = no_block;  // index of DataObjects::blocks()
};

/// A resolved block of the heap.
struct HeapBlock {
  std::uint32_t object = 0;  // the block's object
  ProcessId process;
  std::uint64_t begin = 0, bytes = 0;
};

class DataObjects {
 public:
  /// All arguments must outlive this.
  DataObjects(const ProgramView& view, const BlockIndex& blocks, const SharedIndex& shared, const StackTable& stacks);

  /// The object at `address` for a known thread's process at a time. Cached. Never fails: see ObjectKind::unknown.
  DataRef resolve(ThreadId thread, std::uint64_t time_ns, std::uint64_t address);
  /// The blocks resolved so far. Blocks of one allocation site and one type are one object at first.
  [[nodiscard]] std::span<const HeapBlock> blocks() const { return heap_blocks_; }
  /// Makes each of `groups` (indices into blocks(), together all those of `object`) an object of its own from now on.
  void tell_apart(std::uint32_t object, std::span<const std::vector<std::uint32_t>> groups);
  /// Sets the number of an object's blocks.
  void set_blocks(std::uint32_t object, std::uint64_t blocks) { objects_[object].blocks = blocks; }
  [[nodiscard]] const DataObject& operator[](std::uint32_t object) const { return objects_[object]; }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  /// The rank of each object in the order of names; equal names have equal ranks.
  [[nodiscard]] std::vector<std::uint32_t> name_ranks() const;
  /// "member.inner[3]"; empty if the object's type is not known.
  [[nodiscard]] std::string field(std::uint32_t object, std::uint64_t offset);
  /// The same with its type, offset and size; nullopt if the object's type is not known.
  [[nodiscard]] std::optional<symbolizer::FieldPath> field_path(std::uint32_t object, std::uint64_t offset);

 private:
  struct Found {
    DataRef ref;
    bool stable = true;  // the same at all times, so it may be cached
  };
  struct Stack {
    std::uint32_t thread;
    std::uint64_t begin_ns, end_ns;  // end 0: never
  };
  struct TlsBlock {
    std::uint32_t file;
    std::uint64_t begin_ns, end_ns;
  };
  struct ProcessData {
    IntervalIndex<Stack> stacks;
    IntervalIndex<TlsBlock> tls;
  };

  /// `ref` with the object to which its block belongs now.
  [[nodiscard]] DataRef current(DataRef ref) const {
    ref.object = ref.block == DataRef::no_block ? ref.object : heap_blocks_[ref.block].object;
    return ref;
  }
  [[nodiscard]] std::uint32_t heap_block(std::uint32_t object, const profile::BlockRow& row);
  Found look_up(Moment moment, std::uint64_t address);
  std::optional<Found> in_tls(Moment moment, std::uint64_t address);
  std::optional<Found> in_stack(Moment moment, std::uint64_t address);
  std::optional<Found> in_shared(Moment moment, std::uint64_t address);
  std::optional<Found> in_block(Moment moment, std::uint64_t address);
  std::optional<Found> in_module(Moment moment, std::uint64_t address);
  Found nowhere(Moment moment, std::uint64_t address);
  std::uint32_t intern(const std::string& key, DataObject object);
  [[nodiscard]] DataObject object_of_block(Moment moment, const profile::BlockRow& block) const;
  /// Return addresses of the calls that allocated the block, innermost first.
  [[nodiscard]] std::vector<std::uint64_t> allocation_calls(const profile::BlockRow& block) const;
  [[nodiscard]] std::vector<symbolizer::Frame> allocation_path(Moment moment, const profile::BlockRow& block) const;
  [[nodiscard]] std::optional<Element> element_of(Moment moment, const profile::BlockRow& block) const;
  const ProcessData& data_of(ProcessId process);

  const ProgramView& view_;
  const BlockIndex& blocks_;
  const SharedIndex& shared_;
  const StackTable& stacks_;
  StackVariables stack_variables_;
  std::map<ProcessId, ProcessData> data_;
  struct PlaceHash {
    std::size_t operator()(const std::pair<ProcessId, std::uint64_t>& place) const noexcept {
      return spread(place.second ^ (std::uint64_t{place.first.value} << 48U));
    }
  };
  std::unordered_map<std::pair<ProcessId, std::uint64_t>, DataRef, PlaceHash> cache_;
  std::vector<HeapBlock> heap_blocks_;
  std::map<std::tuple<std::uint32_t, ProcessId, std::uint64_t>, std::uint32_t> heap_block_ids_;  // object, begin
  std::map<const profile::BlockRow*, std::uint32_t> known_blocks_;                               // their indices
  std::map<std::string, std::uint32_t> ids_;
  std::vector<DataObject> objects_;
};

}  // namespace crosstalk::attribution
