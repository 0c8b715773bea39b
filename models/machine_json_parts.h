// SPDX-License-Identifier: Apache-2.0
// Parts of machine files: units, figures, and a reader of members that remembers the first invalid one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/machine.h"

namespace crosstalk::models::machine_json {

using Json = nlohmann::ordered_json;

inline constexpr const char* hertz = "Hz";
inline constexpr const char* seconds = "s";
inline constexpr const char* bytes_per_second = "bytes/s";
inline constexpr const char* flops_per_second = "flops/s";
inline constexpr const char* instructions_per_second = "instructions/s";
inline constexpr const char* instructions_per_cycle = "instructions/cycle";
inline constexpr const char* instructions_count = "instructions";
inline constexpr const char* operations_per_second = "operations/s";

inline Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Adds the members of a figure to those of its row.
inline Json with(Json row, const Figure& figure, const char* unit) {
  row["value"] = optional(figure.value);
  row["unit"] = unit;
  row["spread"] = figure.spread;
  row["median"] = figure.tries > 0 ? Json(figure.median) : Json(nullptr);
  row["tries"] = figure.tries;
  row["disturbed"] = figure.disturbed;
  row["theoretical"] = optional(figure.theoretical);
  row["method"] = figure.method;
  if (!figure.refused.empty()) {
    row["refused"] = figure.refused;
  }
  return row;
}

/// Reads members. Remembers the first invalid one and ignores all later ones.
class Reader {
 public:
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  const Json* member(const Json& object, const std::string& path, const char* key) {
    if (error_) {
      return nullptr;
    }
    if (!object.is_object()) {
      return wrong(path, "it is no object");
    }
    const auto found = object.find(key);
    return found == object.end() ? wrong(join(path, key), "it is missing") : &*found;
  }

  std::string text(const Json& object, const std::string& path, const char* key) {
    const Json* const value = member(object, path, key);
    if (value != nullptr && !value->is_string()) {
      wrong(join(path, key), "it is no text");
    }
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

  bool yes(const Json& object, const std::string& path, const char* key) {
    const Json* const value = member(object, path, key);
    if (value != nullptr && !value->is_boolean()) {
      wrong(join(path, key), "it is neither true nor false");
    }
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  template <class Whole>
  Whole whole(const Json& object, const std::string& path, const char* key) {
    const Json* const value = member(object, path, key);
    return value != nullptr ? whole_of<Whole>(*value, join(path, key)) : Whole{};
  }

  template <class Whole>
  Whole whole_of(const Json& value, const std::string& path) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<Whole>::max()) {
      wrong(path, "it is no whole number in range");
      return {};
    }
    return value.get<Whole>();
  }

  std::vector<std::uint32_t> wholes(const Json& object, const std::string& path, const char* key) {
    std::vector<std::uint32_t> numbers;
    const Json* const list = member(object, path, key);
    if (list != nullptr && !list->is_array()) {
      wrong(join(path, key), "it is no list");
    } else if (list != nullptr) {
      for (const Json& number : *list) {
        numbers.push_back(whole_of<std::uint32_t>(number, join(path, key)));
      }
    }
    return numbers;
  }

  std::optional<double> number_or_null(const Json& object, const std::string& path, const char* key) {
    const Json* const value = member(object, path, key);
    if (value == nullptr || value->is_null()) {
      return std::nullopt;
    }
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
      wrong(join(path, key), "it is no number");
      return std::nullopt;
    }
    return value->get<double>();
  }

  double number(const Json& object, const std::string& path, const char* key) {
    const auto value = number_or_null(object, path, key);
    if (!value && !error_) {
      wrong(join(path, key), "it is no number");
    }
    return value.value_or(0);
  }

  template <class Enum>
  Enum one_of(const Json& object, const std::string& path, const char* key) {
    const std::string given = text(object, path, key);
    const auto known = names<Enum>();
    const auto found = std::find(known.begin(), known.end(), given);
    if (found == known.end()) {
      wrong(join(path, key), "there is no '" + given.substr(0, 40) + "'");
      return Enum{};
    }
    return static_cast<Enum>(found - known.begin());
  }

  Figure figure(const Json& row, const std::string& path, const char* unit) {
    Figure figure;
    figure.value = number_or_null(row, path, "value");
    figure.spread = number(row, path, "spread");
    figure.median = number_or_null(row, path, "median").value_or(0);
    figure.tries = whole<std::uint32_t>(row, path, "tries");
    if (row.is_object() && row.contains("disturbed")) {  // in files of before it does not
      figure.disturbed = whole<std::uint32_t>(row, path, "disturbed");
    }
    figure.theoretical = number_or_null(row, path, "theoretical");
    figure.method = text(row, path, "method");
    if (row.is_object() && row.contains("refused")) {
      figure.refused = text(row, path, "refused");
    }
    if (const std::string given = text(row, path, "unit"); !error_ && given != unit) {
      wrong(path + ".unit", "it is '" + given.substr(0, 40) + "' and must be '" + unit + "'");
    }
    return figure;
  }

  Figure figure_member(const Json& object, const std::string& path, const char* key, const char* unit) {
    const Json* const row = member(object, path, key);
    return row != nullptr ? figure(*row, join(path, key), unit) : Figure{};
  }

  /// Calls `read(element, path)` for each element of an array.
  template <class Read>
  void each(const Json& object, const char* key, Read read) {
    const Json* const array = member(object, "", key);
    if (array != nullptr && !array->is_array()) {
      wrong(key, "it is no list");
      return;
    }
    for (std::size_t i = 0; array != nullptr && !error_ && i < array->size(); ++i) {
      read((*array)[i], std::string(key) + "[" + std::to_string(i) + "]");
    }
  }

  std::nullptr_t wrong(const std::string& field, const std::string& what) {
    if (!error_) {
      error_ = Error{ErrorCode::corrupt, field + ": " + what};
    }
    return nullptr;
  }

  [[nodiscard]] static std::string join(const std::string& path, const char* key) {
    return path.empty() ? key : path + "." + key;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace crosstalk::models::machine_json
