// SPDX-License-Identifier: Apache-2.0
// Reads the columns of a row (tables.h) and checks every value. Internal to the reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "profile/model.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// The valid ranges of ids in rows.
struct Bounds {
  std::uint32_t processes = 0;
  std::uint32_t threads = 0;
  std::uint32_t regions = 0;
  std::uint64_t time_base_ns = 0;
  std::vector<std::uint32_t> thread_numbers = {};  // by the id in the file; empty: they are the same
};

/// Takes the columns of the current row from left to right and remembers the first value out of its range.
class ColumnScan {
 public:
  static constexpr bool reads = true;
  ColumnScan(const sqlite::Statement& row, const Bounds& bounds) : row_(&row), bounds_(&bounds) {}

  /// The parts that a sample has. `last` has the previous registers of each thread.
  void set_parts(SampleParts parts, std::vector<std::optional<Registers>>& last) { parts_ = parts, last_ = &last; }
  /// Stacks that are not wanted are left out. `wanted`: none wants all.
  void set_wanted(const std::function<bool(StackId)>& wanted) { wanted_ = &wanted; }

  template <class Field, class Kind>
  void column(const char* name, Field& field, const Kind& kind) {
    kind.read(*this, name, field);
  }
  template <class Holds>
  void demand(const Holds& holds, const char* name, std::int64_t value) {
    bool is_met = false;
    if constexpr (std::is_invocable_v<Holds>) {
      is_met = holds();
    } else {
      is_met = holds;
    }
    if (!is_met) {
      reject(name, value);
    }
  }
  [[nodiscard]] bool is_whole() const { return parts_ == SampleParts::all; }
  [[nodiscard]] bool leaves_out(StackId stack) {
    left_out_ = !sound() || (wanted_ != nullptr && *wanted_ && !(*wanted_)(stack));
    return left_out_;
  }
  [[nodiscard]] bool left_out() const { return left_out_; }

  // For the kinds of columns (column_kinds.h): each takes the next column.
  std::int64_t take_integer() { return row_->integer(column_++); }
  double take_real() { return row_->real(column_++); }
  std::string take_text() { return row_->text(column_++); }
  std::span<const std::uint8_t> take_blob() { return row_->blob(column_++); }
  /// Takes the column only if it is NULL.
  bool take_null() {
    const bool null = next_is_null();
    column_ += null ? 1 : 0;
    return null;
  }
  [[nodiscard]] bool next_is_null() const { return row_->is_null(column_); }
  [[nodiscard]] const Bounds& bounds() const { return *bounds_; }
  /// The previous registers of the sample's thread; null if the thread is not known.
  [[nodiscard]] std::optional<Registers>* last_of(ThreadId thread) {
    return last_ != nullptr && thread.value < last_->size() ? &(*last_)[thread.value] : nullptr;
  }

  void reject(const char* name, std::int64_t value);
  /// Bytes that cannot be unpacked are told by their number.
  void reject_length(const char* name, std::span<const std::uint8_t> blob);
  [[nodiscard]] bool sound() const { return error_.empty(); }
  /// "column is value"
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  const sqlite::Statement* row_;
  const Bounds* bounds_;
  SampleParts parts_ = SampleParts::all;
  std::vector<std::optional<Registers>>* last_ = nullptr;
  const std::function<bool(StackId)>* wanted_ = nullptr;
  bool left_out_ = false;
  int column_ = 0;
  std::string error_;
};

}  // namespace crosstalk::profile
