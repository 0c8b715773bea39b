// SPDX-License-Identifier: Apache-2.0
#include "models/machine_json.h"

#include <utility>

#include "models/machine_json_parts.h"

namespace crosstalk::models {
namespace {

using namespace machine_json;

// ---- writing -----------------------------------------------------------------------------------------------

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

void read_head(Reader& r, const Json& file, Machine& m) {
  m.version = r.text(file, "", "version");
  m.measured_at = r.text(file, "", "measured_at");
  m.extended_at = file.contains("extended_at") && !file["extended_at"].is_null() ? r.text(file, "", "extended_at") : "";
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
               {"extended_at", m.extended_at.empty() ? Json(nullptr) : Json(m.extended_at)},
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
  add_rooflines(m, file);
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
  read_rooflines(reader, file, machine);
  if (reader.error()) {
    return tl::unexpected<Error>(*reader.error());
  }
  if (const auto valid = validate(machine); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  return machine;
}

}  // namespace crosstalk::models
