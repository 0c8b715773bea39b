// SPDX-License-Identifier: Apache-2.0
// Binds the columns of a row (tables.h) to the statement that puts it. Internal to the writer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "profile/codec.h"
#include "profile/model.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// The parts of a writer's state that packed columns depend on.
struct PackingState {
  StackPacker packer;
  std::unordered_map<std::uint32_t, Registers> registers;  // by thread: what its next sample's are counted from
};

/// Binds the fields from left to right. Blobs are bound by their address: run the statement while this lives.
class BoundColumns {
 public:
  static constexpr bool reads = false;
  BoundColumns(sqlite::Statement& put, PackingState& packing, std::uint64_t time_base_ns)
      : put_(put), packing_(packing), time_base_ns_(time_base_ns) {}

  template <class Field, class Kind>
  void column(const char* /*name*/, const Field& field, const Kind& kind) {
    kind.bind(*this, field);
  }
  template <class Holds>
  void demand(const Holds&, const char*, std::int64_t) {}
  [[nodiscard]] static bool is_whole() { return true; }
  [[nodiscard]] static bool leaves_out(StackId) { return false; }

  // For the kinds of columns (column_kinds.h).
  [[nodiscard]] sqlite::Statement& put() { return put_; }
  [[nodiscard]] PackingState& packing() { return packing_; }
  [[nodiscard]] std::uint64_t time_base_ns() const { return time_base_ns_; }
  /// Binds a copy of `packed`.
  void bind_copy(std::span<const std::uint8_t> packed) {
    if (packed.size() > kept_.size() - used_) {
      bind_nothing();
      return;
    }
    std::uint8_t* const begin = kept_.data() + used_;
    std::copy(packed.begin(), packed.end(), begin);
    used_ += packed.size();
    put_.bind(std::span<const std::uint8_t>(begin, packed.size()));
  }
  /// Marks the row as one that cannot be put.
  void bind_nothing() {
    out_of_memory_ = true;
    put_.bind_null();
  }
  /// True if a column could not be packed.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

 private:
  sqlite::Statement& put_;
  PackingState& packing_;
  std::uint64_t time_base_ns_;
  bool out_of_memory_ = false;
  std::array<std::uint8_t, max_call_chain * 10> kept_;  // packed columns; the longest is a call chain
  std::size_t used_ = 0;
};

}  // namespace crosstalk::profile
