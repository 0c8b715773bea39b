// SPDX-License-Identifier: Apache-2.0
#include "driver/live/stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <vector>

#include "driver/live/snapshot_fields.h"

namespace crosstalk::driver::live {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_rows = 20'000;  // of a list

Json written(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json written(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
template <std::integral Number>
Json written(Number value) {
  return value;
}
template <class Value>
Json written(const std::optional<Value>& value) {
  return value ? written(*value) : Json(nullptr);
}
template <class Row>
Json written(const std::vector<Row>& rows);
template <class Row>
requires std::is_class_v<Row> Json written(const Row& row);

struct Writer {
  Json object = Json::object();
  template <class Value>
  void operator()(const char* name, const Value& value) {
    object[name] = written(value);
  }
};

template <class Row>
requires std::is_class_v<Row> Json written(const Row& row) {
  Writer writer;
  each_field(row, writer);
  return std::move(writer.object);
}

template <class Row>
Json written(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back(written(row));
  }
  return list;
}

/// Reads fields of one object; the first fault stays.
class Reader {
 public:
  Reader(const Json& object, std::string where, std::string& fault)
      : object_(object), where_(std::move(where)), fault_(fault) {}

  template <class Value>
  void operator()(const char* name, Value& value) {
    const auto found = object_.find(name);
    if (found != object_.end() && !found->is_null() && fault_.empty()) {
      read(*found, where_ + name, value);
    }
  }

 private:
  void refuse(const std::string& where, const char* what) { fault_ = "the field " + where + " is no " + what; }

  void read(const Json& json, const std::string& where, double& value) {
    if (!json.is_number()) {
      return refuse(where, "number");
    }
    value = json.get<double>();
    if (!std::isfinite(value)) {
      refuse(where, "finite number");
    }
  }
  void read(const Json& json, const std::string& where, std::string& value) {
    if (!json.is_string()) {
      return refuse(where, "text");
    }
    value = json.get<std::string>();
  }
  template <std::integral Number>
  void read(const Json& json, const std::string& where, Number& value) {
    using Limits = std::numeric_limits<Number>;
    if (json.is_number_unsigned()) {
      const auto number = json.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(Limits::max())) {
        value = static_cast<Number>(number);
        return;
      }
    } else if (json.is_number_integer() && std::is_signed_v<Number>) {
      const auto number = json.get<std::int64_t>();  // negative
      if (number >= static_cast<std::int64_t>(Limits::min())) {
        value = static_cast<Number>(number);
        return;
      }
    }
    refuse(where, std::is_signed_v<Number> ? "whole number of 32 bits" : "whole number from 0 on");
  }
  template <class Value>
  void read(const Json& json, const std::string& where, std::optional<Value>& value) {
    read(json, where, value.emplace());
  }
  template <class Row>
  void read(const Json& json, const std::string& where, std::vector<Row>& rows) {
    if (!json.is_array()) {
      return refuse(where, "list");
    }
    if (json.size() > most_rows) {
      return refuse(where, "list of at most 20000 rows");
    }
    for (std::size_t i = 0; i < json.size() && fault_.empty(); ++i) {
      read(json[i], where + "[" + std::to_string(i) + "]", rows.emplace_back());
    }
  }
  template <class Row>
  requires std::is_class_v<Row>
  void read(const Json& json, const std::string& where, Row& row) {
    if (!json.is_object()) {
      return refuse(where, "object");
    }
    Reader inner(json, where + ".", fault_);
    each_field(row, inner);
  }

  const Json& object_;
  std::string where_;
  std::string& fault_;
};

Error not_a_line(const std::string& why) {
  return {ErrorCode::corrupt, std::string("this is no line of ") + stream_schema + ": " + why};
}

}  // namespace

std::string line_of(const Snapshot& snapshot) {
  Json object = {{"schema", stream_schema}};
  Writer writer;
  each_field(snapshot, writer);
  object.update(writer.object);
  // Names come from programs in any encoding: malformed UTF-8 becomes U+FFFD instead of an error.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Snapshot> read_snapshot(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) {
    return tl::unexpected<Error>(not_a_line(object.is_discarded() ? "it is not JSON" : "it is no JSON object"));
  }
  const auto schema = object.find("schema");
  if (schema == object.end() || !schema->is_string()) {
    return tl::unexpected<Error>(not_a_line("it has no schema"));
  }
  if (schema->get<std::string>() != stream_schema) {
    return tl::unexpected<Error>(not_a_line("its schema is '" + schema->get<std::string>().substr(0, 40) +
                                            "'; use the same version of crosstalk"));
  }
  Snapshot snapshot;
  std::string fault;
  Reader reader(object, "", fault);
  each_field(snapshot, reader);
  if (!fault.empty()) {
    return tl::unexpected<Error>(not_a_line(fault));
  }
  return snapshot;
}

Result<void> LineCutter::add(std::string_view bytes) {
  if (begin_ > 0) {
    bytes_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  bytes_.append(bytes);
  if (bytes_.size() > longest_line && bytes_.find('\n', searched_) == std::string::npos) {
    return tl::unexpected<Error>(not_a_line("it is longer than 16 MiB"));
  }
  return {};
}

std::optional<std::string> LineCutter::next() {
  const std::size_t end = bytes_.find('\n', std::max(begin_, searched_));
  if (end == std::string::npos) {
    searched_ = bytes_.size();
    return std::nullopt;
  }
  std::string line = bytes_.substr(begin_, end - begin_);
  begin_ = searched_ = end + 1;
  return line;
}

}  // namespace crosstalk::driver::live
