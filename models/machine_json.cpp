// SPDX-License-Identifier: Apache-2.0
#include "models/machine_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace crosstalk::models {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* hertz = "Hz";
constexpr const char* seconds = "s";
constexpr const char* bytes_per_second = "bytes/s";
constexpr const char* flops_per_second = "flops/s";
constexpr const char* instructions_per_second = "instructions/s";

// ---- writing -----------------------------------------------------------------------------------------------

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Adds the members of a figure to those of its row.
Json with(Json row, const Figure& figure, const char* unit) {
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

Json identity_json(const Identity& i) {
  return {{"vendor", i.vendor},     {"family", i.family}, {"model", i.model},
          {"stepping", i.stepping}, {"name", i.name},     {"virtual_machine", i.virtual_machine}};
}

Json frequency_json(const Frequency& f) {
  return {{"tsc_hz", optional(f.tsc_hz)},
          {"nominal_max_hz", optional(f.nominal_max_hz)},
          {"one_core", with(Json::object(), f.one_core_hz, hertz)},
          {"all_cores", with(Json::object(), f.all_cores_hz, hertz)},
          {"after_avx2", with(Json::object(), f.after_avx2_hz, hertz)},
          {"after_avx512", with(Json::object(), f.after_avx512_hz, hertz)}};
}

Json topology_json(const std::vector<Processor>& processors) {
  Json rows = Json::array();
  for (const Processor& p : processors) {
    rows.push_back({{"cpu", p.cpu}, {"core", p.core}, {"package", p.package}, {"node", p.node}});
  }
  return rows;
}

Json caches_json(const std::vector<Cache>& caches) {
  Json rows = Json::array();
  for (const Cache& c : caches) {
    rows.push_back(
        {{"level", c.level}, {"bytes", c.bytes}, {"line_bytes", c.line_bytes}, {"ways", c.ways}, {"cpus", c.cpus}});
  }
  return rows;
}

void add_tables(const Machine& m, Json& file) {
  Json& flops = file["flops"] = Json::array();
  for (const FlopPeak& f : m.flops) {
    const Json key = {{"width", name(f.width)},
                      {"precision", name(f.precision)},
                      {"operation", name(f.operation)},
                      {"scope", name(f.scope)}};
    flops.push_back(with(key, f.flops_per_s, flops_per_second));
  }
  Json& bandwidths = file["bandwidths"] = Json::array();
  for (const Bandwidth& b : m.bandwidths) {
    const Json key = {{"level", name(b.level)}, {"traffic", name(b.traffic)}, {"scope", name(b.scope)}};
    bandwidths.push_back(with(key, b.bytes_per_s, bytes_per_second));
  }
  Json& latencies = file["latencies"] = Json::array();
  for (const LoadLatency& l : m.latencies) {
    latencies.push_back(with(Json::object({{"level", name(l.level)}}), l.seconds, seconds));
  }
  Json& instructions = file["instructions"] = Json::array();
  for (const InstructionRate& r : m.instructions) {
    instructions.push_back(
        with(Json::object({{"instruction", name(r.instruction)}}), r.per_s, instructions_per_second));
  }
  Json& chains = file["chains"] = Json::array();
  for (const ChainTime& c : m.chains) {
    chains.push_back(with(Json::object({{"chain", name(c.chain)}}), c.seconds, seconds));
  }
  Json& pairs = file["pairs"] = Json::array();
  for (const ProcessorPair& p : m.pairs) {
    pairs.push_back({{"a", p.a},
                     {"b", p.b},
                     {"transfer", with(Json::object(), p.transfer_s, seconds)},
                     {"contended_add", with(Json::object(), p.contended_add_s, seconds)}});
  }
}

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

// ---- reading -----------------------------------------------------------------------------------------------

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

 private:
  static std::string join(const std::string& path, const char* key) { return path.empty() ? key : path + "." + key; }

  std::optional<Error> error_;
};

void read_head(Reader& r, const Json& file, Machine& m) {
  m.version = r.text(file, "", "version");
  m.measured_at = r.text(file, "", "measured_at");
  m.measuring_s = r.number(file, "", "measuring_s");
  m.quick = r.yes(file, "", "quick");
  m.host = r.text(file, "", "host");
  m.kernel = r.text(file, "", "kernel");
  m.memory_bytes = r.whole<std::uint64_t>(file, "", "memory_bytes");
  m.page_bytes = r.whole<std::uint64_t>(file, "", "page_bytes");
  if (const Json* const identity = r.member(file, "", "identity")) {
    m.identity.vendor = r.text(*identity, "identity", "vendor");
    m.identity.family = r.whole<std::uint32_t>(*identity, "identity", "family");
    m.identity.model = r.whole<std::uint32_t>(*identity, "identity", "model");
    m.identity.stepping = r.whole<std::uint32_t>(*identity, "identity", "stepping");
    m.identity.name = r.text(*identity, "identity", "name");
    m.identity.virtual_machine = r.yes(*identity, "identity", "virtual_machine");
  }
  r.each(file, "notes", [&](const Json& note, const std::string& path) {
    note.is_string() ? m.notes.push_back(note.get<std::string>()) : void(r.wrong(path, "it is no text"));
  });
}

void read_topology(Reader& r, const Json& file, Machine& m) {
  r.each(file, "processors", [&](const Json& row, const std::string& path) {
    m.processors.push_back({r.whole<std::uint32_t>(row, path, "cpu"), r.whole<std::uint32_t>(row, path, "core"),
                            r.whole<std::uint32_t>(row, path, "package"), r.whole<std::uint32_t>(row, path, "node")});
  });
  r.each(file, "caches", [&](const Json& row, const std::string& path) {
    Cache cache;
    cache.level = r.whole<std::uint32_t>(row, path, "level");
    cache.bytes = r.whole<std::uint64_t>(row, path, "bytes");
    cache.line_bytes = r.whole<std::uint32_t>(row, path, "line_bytes");
    cache.ways = r.whole<std::uint32_t>(row, path, "ways");
    const Json* const cpus = r.member(row, path, "cpus");
    if (cpus != nullptr && !cpus->is_array()) {
      r.wrong(path + ".cpus", "it is no list");
    } else if (cpus != nullptr) {
      for (const Json& cpu : *cpus) {
        cache.cpus.push_back(r.whole_of<std::uint32_t>(cpu, path + ".cpus"));
      }
    }
    m.caches.push_back(std::move(cache));
  });
}

void read_frequency(Reader& r, const Json& file, Frequency& f) {
  const Json* const row = r.member(file, "", "frequency");
  if (row == nullptr) {
    return;
  }
  f.tsc_hz = r.number_or_null(*row, "frequency", "tsc_hz");
  f.nominal_max_hz = r.number_or_null(*row, "frequency", "nominal_max_hz");
  f.one_core_hz = r.figure_member(*row, "frequency", "one_core", hertz);
  f.all_cores_hz = r.figure_member(*row, "frequency", "all_cores", hertz);
  f.after_avx2_hz = r.figure_member(*row, "frequency", "after_avx2", hertz);
  f.after_avx512_hz = r.figure_member(*row, "frequency", "after_avx512", hertz);
}

void read_tables(Reader& r, const Json& file, Machine& m) {
  r.each(file, "flops", [&](const Json& row, const std::string& path) {
    m.flops.push_back({r.one_of<Width>(row, path, "width"), r.one_of<Precision>(row, path, "precision"),
                       r.one_of<Operation>(row, path, "operation"), r.one_of<Scope>(row, path, "scope"),
                       r.figure(row, path, flops_per_second)});
  });
  r.each(file, "bandwidths", [&](const Json& row, const std::string& path) {
    m.bandwidths.push_back({r.one_of<Level>(row, path, "level"), r.one_of<Traffic>(row, path, "traffic"),
                            r.one_of<Scope>(row, path, "scope"), r.figure(row, path, bytes_per_second)});
  });
  r.each(file, "latencies", [&](const Json& row, const std::string& path) {
    m.latencies.push_back({r.one_of<Level>(row, path, "level"), r.figure(row, path, seconds)});
  });
  r.each(file, "instructions", [&](const Json& row, const std::string& path) {
    m.instructions.push_back(
        {r.one_of<Instruction>(row, path, "instruction"), r.figure(row, path, instructions_per_second)});
  });
  r.each(file, "chains", [&](const Json& row, const std::string& path) {
    m.chains.push_back({r.one_of<Chain>(row, path, "chain"), r.figure(row, path, seconds)});
  });
  r.each(file, "pairs", [&](const Json& row, const std::string& path) {
    m.pairs.push_back({r.whole<std::uint32_t>(row, path, "a"), r.whole<std::uint32_t>(row, path, "b"),
                       r.figure_member(row, path, "transfer", seconds),
                       r.figure_member(row, path, "contended_add", seconds)});
  });
}

}  // namespace

std::string to_json(const Machine& m) {
  Json file = {{"schema", machine_schema},
               {"version", m.version},
               {"measured_at", m.measured_at},
               {"measuring_s", m.measuring_s},
               {"quick", m.quick},
               {"host", m.host},
               {"kernel", m.kernel},
               {"memory_bytes", m.memory_bytes},
               {"page_bytes", m.page_bytes},
               {"identity", identity_json(m.identity)},
               {"notes", m.notes},
               {"processors", topology_json(m.processors)},
               {"caches", caches_json(m.caches)},
               {"frequency", frequency_json(m.frequency)}};
  add_tables(m, file);
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
  read_head(reader, file, machine);
  read_topology(reader, file, machine);
  read_frequency(reader, file, machine.frequency);
  read_tables(reader, file, machine);
  if (reader.error()) {
    return tl::unexpected<Error>(*reader.error());
  }
  if (const auto valid = validate(machine); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  return machine;
}

}  // namespace crosstalk::models
