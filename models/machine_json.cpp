// SPDX-License-Identifier: Apache-2.0
#include "models/machine_json.h"

#include "models/machine_json_rows.h"

namespace crosstalk::models {
namespace {

using namespace machine_json;

std::string compact(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Writes each member or element on one line, whatever its size, so that a figure is a line.
void append_lines(std::string& text, const Json& value) {
  const bool object = value.is_object();
  const char* between = "\n    ";
  text += object ? "{" : "[";
  for (const auto& [key, inner] : value.items()) {
    text += between + (object ? compact(key) + ": " : std::string()) + compact(inner);
    between = ",\n    ";
  }
  text += value.empty() ? "" : "\n  ";
  text += object ? "}" : "]";
}

}  // namespace

std::string to_json(const Machine& m) {
  Json file = {{"schema", machine_schema}};
  file.update(RowWriter::object_of(m));
  std::string text = "{";
  const char* between = "\n  ";
  for (const auto& [key, value] : file.items()) {
    text += between + compact(key) + ": ";
    value.is_structured() ? append_lines(text, value) : void(text += compact(value));
    between = ",\n  ";
  }
  return text + "\n}\n";
}

Result<Machine> parse_machine(std::string_view text) {
  const Json file = Json::parse(text, nullptr, false);
  if (file.is_discarded() || !file.is_object()) {
    return fail(ErrorCode::corrupt, "it is no JSON object");
  }
  Reader reader;
  const std::string schema = reader.text(file, "", "schema");
  if (!reader.error() && schema != machine_schema) {
    return fail(ErrorCode::unsupported, "schema is '" + schema.substr(0, 40) + "', and this crosstalk reads '" +
                                            std::string(machine_schema) + "'");
  }
  Machine machine;
  const std::string top;
  RowReader members(reader, file, top);
  each_member(members, machine);
  if (reader.error()) {
    return tl::unexpected<Error>(*reader.error());
  }
  if (const auto valid = validate(machine); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  return machine;
}

}  // namespace crosstalk::models
