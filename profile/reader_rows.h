// SPDX-License-Identifier: Apache-2.0
// Converts rows of SQLite to rows of the model and checks every value. Internal to the reader.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "profile/counter_reading.h"
#include "profile/model.h"
#include "profile/sqlite.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::profile {

/// The valid ranges of ids in rows.
struct Bounds {
  std::uint32_t processes = 0;
  std::uint32_t threads = 0;
  std::uint32_t regions = 0;
  std::uint64_t time_base_ns = 0;
  std::vector<std::uint32_t> thread_numbers = {};  // by the id in the file; empty: they are the same
};

/// Returns new numbers for threads: those of a process by creation, which is the order of their kernel ids unless these
/// have wrapped around. Recorders number threads as they find them.
[[nodiscard]] std::vector<std::uint32_t> numbers_by_creation(const std::vector<ThreadRow>& threads);

/// Reads the columns of the current row from left to right and remembers the first value out of its range.
class ColumnScan {
 public:
  explicit ColumnScan(const sqlite::Statement& row) : row_(&row) {}

  /// An integer of 0..max.
  template <std::integral T>
  T number(const char* name, T max = std::numeric_limits<T>::max()) {
    const std::int64_t value = row_->integer(column_++);
    if (value < 0 || static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(max)) {
      reject(name, value);
      return T{};
    }
    return static_cast<T>(value);
  }
  /// An enumerator of first..last.
  template <class E>
  E enumerator(const char* name, E first, E last) {
    const std::int64_t value = row_->integer(column_++);
    if (value < static_cast<std::int64_t>(first) || value > static_cast<std::int64_t>(last)) {
      reject(name, value);
      return first;
    }
    return static_cast<E>(value);
  }
  /// All 64 bits; NULL is 0.
  std::uint64_t bits() { return static_cast<std::uint64_t>(row_->integer(column_++)); }
  /// The same; NULL is nothing.
  std::optional<std::uint64_t> optional_bits() {
    const bool known = !next_is_null();
    const std::uint64_t value = bits();
    return known ? std::optional(value) : std::nullopt;
  }
  std::int64_t signed_bits() { return row_->integer(column_++); }
  std::int32_t int32(const char* name);
  bool flag(const char* name) { return number<std::uint8_t>(name, 1) != 0; }
  /// 0..1
  float fraction(const char* name);
  double real() { return row_->real(column_++); }
  std::string text() { return row_->text(column_++); }
  std::span<const std::uint8_t> blob() { return row_->blob(column_++); }
  /// The next column's value in another form, without taking it.
  [[nodiscard]] std::int64_t value_as_integer() const { return row_->integer(column_); }
  [[nodiscard]] double value_as_real() const { return row_->real(column_); }
  [[nodiscard]] bool next_is_null() const { return row_->is_null(column_); }
  void skip() { ++column_; }
  /// An id below `count`.
  template <class AnyId>
  AnyId index(const char* name, std::uint32_t count) {
    const std::int64_t value = row_->integer(column_++);
    if (value < 0 || value >= std::int64_t{count}) {
      reject(name, value);
      return AnyId{};
    }
    return AnyId{static_cast<std::uint32_t>(value)};
  }

  void reject(const char* name, std::int64_t value);
  [[nodiscard]] bool sound() const { return error_.empty(); }
  /// "column is value"
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  const sqlite::Statement* row_;
  int column_ = 0;
  std::string error_;
};

// Each takes a row of the schema's get_... statement of that kind.
[[nodiscard]] ProcessRow process_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] ThreadRow thread_of(ColumnScan& scan, const Bounds& bounds);
/// Its bytes stay packed.
[[nodiscard]] KeptFileRow kept_file_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] ModuleRow module_of(ColumnScan& scan, const Bounds& bounds);
/// The parts of samples that a statement returns.
struct SampleColumns {
  SampleParts parts = SampleParts::all;
  bool measured = false;
};
/// `last` holds the previous registers of each thread, and is updated.
[[nodiscard]] SampleRow sample_of(ColumnScan& scan, const Bounds& bounds, SampleColumns columns,
                                  std::vector<std::optional<Registers>>& last);
[[nodiscard]] WatchRow watch_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] TrapRow trap_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] BlockRow block_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] SharedMappingRow shared_mapping_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] ThreadCreationRow thread_creation_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] CounterRow counter_of(ColumnScan& scan);
void read_reading(ColumnScan& scan, const Bounds& bounds, ReadingRow& row);
[[nodiscard]] ThreadWaitRow thread_wait_of(ColumnScan& scan, const Bounds& bounds);
[[nodiscard]] RegionRow region_of(ColumnScan& scan);
[[nodiscard]] ThreadRegionRow thread_region_of(ColumnScan& scan, const Bounds& bounds);
/// Reads into `row` and reuses its buffer; `bounds` as above.
void read_lookahead(ColumnScan& scan, const Bounds& bounds, LookaheadRow& row);
[[nodiscard]] EventRow event_of(ColumnScan& scan);
/// Reads into `row` and reuses its buffer.
void read_call_chain(ColumnScan& scan, CallChainRow& row);
[[nodiscard]] MessageRow message_of(ColumnScan& scan);
/// The measurement of a watch's sample.
struct MeasurementOf {
  WatchId watch;
  Measurement measurement;
};
[[nodiscard]] MeasurementOf watch_measurement_of(ColumnScan& scan);
/// The result of a probe of a line.
struct LineProbeOf {
  WatchId watch;
  ProbedLine probe;
};
[[nodiscard]] LineProbeOf line_probe_of(ColumnScan& scan);
/// A piece of a watched line: its watch, and its index among the watch's words.
struct WatchWordOf {
  WatchId watch;
  std::uint8_t index = 0;
  WatchWord word;
};
[[nodiscard]] WatchWordOf watch_word_of(ColumnScan& scan);
[[nodiscard]] StackId stack_id_of(ColumnScan& scan);
/// Fills the rest of `row` and reuses its buffer.
void read_stack(ColumnScan& scan, StackRow& row);

}  // namespace crosstalk::profile
