// SPDX-License-Identifier: Apache-2.0
// The kinds of columns of a profile: how a field is stored, and what is checked when it is read. Internal to the writer
// and the reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "profile/bound_columns.h"
#include "profile/codec.h"
#include "profile/column_codecs.h"
#include "profile/column_scan.h"

namespace crosstalk::profile {

// Each has the `type` and whether the column is `nullable`, bind(), which gives the field to a statement, and read(),
// which rejects values out of range. ...OrNull: NULL for 0, or for "".

/// An integer, a bool or an id. When read, it is 0..max; a signed one is any that its type has.
struct Number {
  std::uint64_t max = UINT64_MAX;
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = false;

  template <class Field>
  static std::int64_t integer(const Field& field) {
    if constexpr (requires { field.value; }) {
      return std::int64_t{field.value};
    } else {
      return static_cast<std::int64_t>(field);
    }
  }
  template <class Field>
  void bind(BoundColumns& to, const Field& field) const {
    to.put().bind(integer(field));
  }
  template <class Field>
  void read(ColumnScan& from, const char* name, Field& field) const {
    if constexpr (requires { field.value; }) {
      read(from, name, field.value);
    } else {
      const std::int64_t value = from.take_integer();
      field = static_cast<Field>(value);
      if (!is_in_range<Field>(value)) {
        from.reject(name, value);
        field = Field{};
      }
    }
  }

 private:
  template <class Field>
  [[nodiscard]] bool is_in_range(std::int64_t value) const {
    using Limits = std::numeric_limits<Field>;
    if constexpr (std::is_signed_v<Field>) {
      return value >= Limits::min() && value <= Limits::max();
    } else {  // all 64 bits can be an address, which SQLite takes for a negative number
      return static_cast<std::uint64_t>(value) <= std::min<std::uint64_t>(max, Limits::max());
    }
  }
};
struct NumberOrNull : Number {
  static constexpr bool nullable = true;
  template <class Field>
  void bind(BoundColumns& to, const Field& field) const {
    to.put().bind_unless_zero(static_cast<std::uint64_t>(integer(field)));
  }
};

template <class E>
struct Enumerator {
  E first, last;
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = false;
  void bind(BoundColumns& to, E field) const { to.put().bind(static_cast<std::int64_t>(field)); }
  void read(ColumnScan& from, const char* name, E& field) const {
    const std::int64_t value = from.take_integer();
    field = static_cast<E>(value);
    if (value < static_cast<std::int64_t>(first) || value > static_cast<std::int64_t>(last)) {
      from.reject(name, value);
      field = first;
    }
  }
};
template <class E>
struct EnumeratorOrNull : Enumerator<E> {
  static constexpr bool nullable = true;
  void bind(BoundColumns& to, E field) const { to.put().bind_unless_zero(static_cast<std::uint64_t>(field)); }
};
template <class E>
Enumerator(E, E) -> Enumerator<E>;
template <class E>
EnumeratorOrNull(E, E) -> EnumeratorOrNull<E>;

/// NULL for nothing, else as `of` has it.
template <class Kind>
struct Optional {
  Kind of;
  static constexpr const char* type = Kind::type;
  static constexpr bool nullable = true;
  template <class Field>
  void bind(BoundColumns& to, const std::optional<Field>& field) const {
    field ? of.bind(to, *field) : void(to.put().bind_null());
  }
  template <class Field>
  void read(ColumnScan& from, const char* name, std::optional<Field>& field) const {
    from.take_null() ? field.reset() : of.read(from, name, field.emplace());
  }
};
template <class Kind>
Optional(Kind) -> Optional<Kind>;

struct Text {
  static constexpr const char* type = "TEXT";
  static constexpr bool nullable = false;
  static void bind(BoundColumns& to, std::string_view field) { to.put().bind(field); }
  static void read(ColumnScan& from, const char* /*name*/, std::string& field) { field = from.take_text(); }
};
struct TextOrNull : Text {
  static constexpr bool nullable = true;
  static void bind(BoundColumns& to, std::string_view field) {
    field.empty() ? to.put().bind_null() : to.put().bind(field);
  }
};

struct Real {
  static constexpr const char* type = "REAL";
  static constexpr bool nullable = false;
  static void bind(BoundColumns& to, double field) { to.put().bind(field); }
  static void read(ColumnScan& from, const char* /*name*/, double& field) { field = from.take_real(); }
};
/// 0..1
struct Fraction : Real {
  static void read(ColumnScan& from, const char* name, float& field) {
    const double value = from.take_real();
    const bool sound = value >= 0 && value <= 1;
    field = sound ? static_cast<float>(value) : 0;
    from.demand(sound, name, value > 1 ? 2 : -1);
  }
};

/// A moment, stored as the time since the session's begin.
struct Time {
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = false;
  static void bind(BoundColumns& to, std::uint64_t field) {
    to.put().bind(static_cast<std::int64_t>(field - to.time_base_ns()));
  }
  static void read(ColumnScan& from, const char* /*name*/, std::uint64_t& field) {
    field = from.bounds().time_base_ns + static_cast<std::uint64_t>(from.take_integer());
  }
};
/// NULL if it is not known, and then 0.
struct TimeIf {
  bool known;
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = true;
  void bind(BoundColumns& to, std::uint64_t field) const { known ? Time::bind(to, field) : void(to.put().bind_null()); }
  static void read(ColumnScan& from, const char* name, std::uint64_t& field) {
    from.take_null() ? void(field = 0) : Time::read(from, name, field);
  }
};

/// An address, stored as its distance from another one.
struct OffsetOrNull {
  std::uint64_t from_address;
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = true;
  void bind(BoundColumns& to, std::uint64_t field) const {
    field != 0 ? to.put().bind(static_cast<std::int64_t>(field - from_address)) : to.put().bind_null();
  }
  void read(ColumnScan& from, const char* /*name*/, std::uint64_t& field) const {
    field = from.take_null() ? 0 : from_address + static_cast<std::uint64_t>(from.take_integer());
  }
};

/// Stored in a larger unit.
struct MultipleOrNull {
  std::uint32_t unit;
  static constexpr const char* type = "INTEGER";
  static constexpr bool nullable = true;
  void bind(BoundColumns& to, std::uint32_t field) const { to.put().bind_unless_zero(field / unit); }
  void read(ColumnScan& from, const char* name, std::uint32_t& field) const {
    Number{UINT32_MAX / unit}.read(from, name, field);
    field *= unit;
  }
};

/// A process of the file.
struct ProcessNumber : Number {
  static void read(ColumnScan& from, const char* name, ProcessId& field) {
    read_below(from, name, from.bounds().processes, field);
  }
  /// Reads an id below `count`, which may be 0.
  template <class AnyId>
  static void read_below(ColumnScan& from, const char* name, std::uint32_t count, AnyId& field) {
    Number{}.read(from, name, field);
    if (from.sound() && field.value >= count) {
      from.reject(name, field.value);
      field = AnyId{};
    }
  }
};
/// A thread of the file by its number there.
struct ThreadInFile : Number {
  static void read(ColumnScan& from, const char* name, ThreadId& field) {
    ProcessNumber::read_below(from, name, from.bounds().threads, field);
  }
};
/// A thread of the file by the reader's number.
struct ThreadNumber : Number {
  static void read(ColumnScan& from, const char* name, ThreadId& field) {
    ThreadInFile::read(from, name, field);
    const std::vector<std::uint32_t>& numbers = from.bounds().thread_numbers;
    field = field.value < numbers.size() ? ThreadId{numbers[field.value]} : field;
  }
};
struct RegionNumber : Number {
  static void read(ColumnScan& from, const char* name, RegionId& field) {
    Number{from.bounds().regions}.read(from, name, field);
  }
};
struct RegionOrNull : NumberOrNull {
  static void read(ColumnScan& from, const char* name, RegionId& field) { RegionNumber::read(from, name, field); }
};

struct Blob {
  static constexpr const char* type = "BLOB";
  static constexpr bool nullable = false;
  static void bind(BoundColumns& to, std::span<const std::uint8_t> field) { to.put().bind(field); }
  static void read(ColumnScan& from, const char* /*name*/, std::vector<std::uint8_t>& field) {
    const std::span<const std::uint8_t> blob = from.take_blob();
    field.assign(blob.begin(), blob.end());
  }
};
/// Compressed when stored. The reader has the bytes as they are stored.
struct StaysCompressed : Blob {
  static void bind(BoundColumns& to, std::span<const std::uint8_t> field) {
    const auto packed = to.packing().packer.pack(field);
    packed ? void(to.put().bind(*packed)) : to.bind_nothing();
  }
};
/// Up to max_stack_bytes, of which there are `size`.
struct CompressedStack : StaysCompressed {
  std::uint32_t size;
  explicit CompressedStack(std::uint32_t bytes) : size(bytes) {}
  static void bind(BoundColumns& to, std::span<const std::uint8_t> field) {
    StaysCompressed::bind(to, field.first(std::min(field.size(), max_stack_bytes)));
  }
  void read(ColumnScan& from, const char* /*name*/, std::vector<std::uint8_t>& field) const {
    const bool unpacked = unpack_stack(from.take_blob(), field);
    from.demand(unpacked && field.size() == size, "size", size);
  }
};

/// The form that a codec gives the field (column_codecs.h).
template <class Codec>
struct Packed {
  static constexpr const char* type = "BLOB";
  static constexpr bool nullable = false;
  template <class Field>
  static void bind(BoundColumns& to, const Field& field) {
    const auto packed = Codec::pack(field);
    if constexpr (requires { packed.bytes(); }) {
      to.bind_copy(packed.bytes());
    } else {
      to.bind_copy(packed);
    }
  }
  template <class Field>
  static void read(ColumnScan& from, const char* name, Field& field) {
    const std::span<const std::uint8_t> blob = from.take_blob();
    if (!Codec::unpack(blob, field)) {
      from.reject_length(name, blob);
    }
  }
};

/// A sample's registers, counted from those of the thread's sample before.
struct StepsOrNull {
  ThreadId thread;
  std::uint64_t ip;
  static constexpr const char* type = "BLOB";
  static constexpr bool nullable = true;
  void bind(BoundColumns& to, const std::optional<Registers>& field) const {
    if (!field) {
      to.put().bind_null();
      return;
    }
    const auto [previous, first] = to.packing().registers.try_emplace(thread.value);
    to.bind_copy(RegisterSteps(*field, first ? nullptr : &previous->second).bytes());
    previous->second = *field;
  }
  void read(ColumnScan& from, const char* name, std::optional<Registers>& field) const {
    field.reset();
    if (from.take_null()) {
      return;
    }
    const std::span<const std::uint8_t> blob = from.take_blob();
    std::optional<Registers>* const last = from.last_of(thread);
    if (last != nullptr && !follow_steps(blob, *last)) {
      from.reject_length(name, blob);
    } else if (last != nullptr) {
      field = *last;
      (*field)[Register::rip] = ip;
    }
  }
};

}  // namespace crosstalk::profile
