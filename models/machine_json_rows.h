// SPDX-License-Identifier: Apache-2.0
// The members of a machine file, each once, for its writer and its reader.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/machine_json_parts.h"

namespace crosstalk::models::machine_json {

template <class Given, class Row>
concept Like = std::same_as<std::remove_const_t<Given>, Row>;

// Calls a method of `c` for each member of `row`, in the order of the file: column() for a value, figure() for a figure
// with its unit, whose members are the row's own if it has no name, object() and list() for rows within.

void each_member(auto& c, Like<Identity> auto& row) {
  c.column("vendor", row.vendor);
  c.column("family", row.family);
  c.column("model", row.model);
  c.column("stepping", row.stepping);
  c.column("name", row.name);
  c.column("virtual_machine", row.virtual_machine);
}

void each_member(auto& c, Like<Processor> auto& row) {
  c.column("cpu", row.cpu);
  c.column("core", row.core);
  c.column("package", row.package);
  c.column("node", row.node);
}

void each_member(auto& c, Like<Cache> auto& row) {
  c.column("level", row.level);
  c.column("bytes", row.bytes);
  c.column("line_bytes", row.line_bytes);
  c.column("ways", row.ways);
  c.column("cpus", row.cpus);
}

void each_member(auto& c, Like<Frequency> auto& row) {
  c.column("tsc_hz", row.tsc_hz);
  c.column("nominal_max_hz", row.nominal_max_hz);
  c.figure("one_core", row.one_core_hz, hertz);
  c.figure("all_cores", row.all_cores_hz, hertz);
  c.figure("after_avx2", row.after_avx2_hz, hertz);
  c.figure("after_avx512", row.after_avx512_hz, hertz);
}

void each_member(auto& c, Like<FlopPeak> auto& row) {
  c.column("width", row.width);
  c.column("precision", row.precision);
  c.column("operation", row.operation);
  c.column("scope", row.scope);
  c.figure(row.flops_per_s, flops_per_second);
}

void each_member(auto& c, Like<Bandwidth> auto& row) {
  c.column("level", row.level);
  c.column("traffic", row.traffic);
  c.column("scope", row.scope);
  c.figure(row.bytes_per_s, bytes_per_second);
}

void each_member(auto& c, Like<LoadLatency> auto& row) {
  c.column("level", row.level);
  c.figure(row.seconds, seconds);
}

void each_member(auto& c, Like<InstructionRate> auto& row) {
  c.column("instruction", row.instruction);
  c.figure(row.per_s, instructions_per_second);
}

void each_member(auto& c, Like<ChainTime> auto& row) {
  c.column("chain", row.chain);
  c.figure(row.seconds, seconds);
}

void each_member(auto& c, Like<ProcessorPair> auto& row) {
  c.column("a", row.a);
  c.column("b", row.b);
  c.figure("transfer", row.transfer_s, seconds);
  c.figure("contended_add", row.contended_add_s, seconds);
}

void each_member(auto& c, Like<AccessRate> auto& row) {
  c.column("level", row.level);
  c.column("width", row.width);
  c.column("loads_to_stores", row.mix);
  c.column("threads", row.threads);
  c.figure(row.bytes_per_s, bytes_per_second);
}

void each_member(auto& c, Like<ThreadFlops> auto& row) {
  c.column("width", row.width);
  c.column("precision", row.precision);
  c.column("operation", row.operation);
  c.column("threads", row.threads);
  c.figure(row.flops_per_s, flops_per_second);
}

void each_member(auto& c, Like<FlopLatency> auto& row) {
  c.column("width", row.width);
  c.column("precision", row.precision);
  c.column("operation", row.operation);
  c.figure(row.seconds, seconds);
}

void each_member(auto& c, Like<IntegerPeak> auto& row) {
  c.column("width", row.width);
  c.column("element", row.element);
  c.column("operation", row.operation);
  c.column("scope", row.scope);
  c.figure(row.per_s, operations_per_second);
}

void each_member(auto& c, Like<KindLimits> auto& row) {
  c.column("kind", row.kind);
  c.figure("per_cycle", row.per_cycle, instructions_per_cycle);
  c.figure("buffer", row.buffer, instructions_count);
}

void each_member(auto& c, Like<GroupRate> auto& row) {
  c.column("level", row.level);
  c.column("width", row.width);
  c.column("fillers", row.fillers);
  c.figure(row.per_cycle, instructions_per_cycle);
}

void each_member(auto& c, Like<RidgeRate> auto& row) {
  c.column("level", row.level);
  c.column("width", row.width);
  c.column("kind", row.kind);
  c.column("fillers", row.fillers);
  c.figure(row.per_cycle, instructions_per_cycle);
}

void each_member(auto& c, Like<SparseRoof> auto& row) {
  c.column("matrix", row.matrix);
  c.column("vector", row.vector);
  c.column("scope", row.scope);
  c.column("columns", row.columns);
  c.figure(row.bytes_per_s, bytes_per_second);
}

void each_member(auto& c, Like<SparseBand> auto& row) {
  c.column("matrix", row.matrix);
  c.column("row_nonzeros", row.row_nonzeros);
  c.column("scope", row.scope);
  c.column("columns", row.columns);
  c.column("rows", row.rows);
  c.figure("worst", row.worst, flops_per_second);
  c.figure("best", row.best, flops_per_second);
}

/// newer_list(): files of an older crosstalk lack it.
void each_member(auto& c, Like<Machine> auto& m) {
  c.column("version", m.version);
  c.column("measured_at", m.measured_at);
  c.text_or_null("extended_at", m.extended_at);
  c.column("measuring_s", m.measuring_s);
  c.column("quick", m.quick);
  c.column("host", m.host);
  c.column("kernel", m.kernel);
  c.column("memory_bytes", m.memory_bytes);
  c.column("page_bytes", m.page_bytes);
  c.object("identity", m.identity);
  c.column("notes", m.notes);
  c.list("processors", m.processors);
  c.list("caches", m.caches);
  c.object("frequency", m.frequency);
  c.list("flops", m.flops);
  c.list("bandwidths", m.bandwidths);
  c.list("latencies", m.latencies);
  c.list("instructions", m.instructions);
  c.list("chains", m.chains);
  c.list("pairs", m.pairs);
  c.newer_list("accesses", m.accesses);
  c.newer_list("thread_flops", m.thread_flops);
  c.newer_list("flop_latencies", m.flop_latencies);
  c.newer_list("integers", m.integers);
  c.newer_list("kinds", m.kinds);
  c.newer_list("groups", m.groups);
  c.newer_list("ridges", m.ridges);
  c.newer_list("sparse_roofs", m.sparse_roofs);
  c.newer_list("sparse_bands", m.sparse_bands);
}

class RowWriter {
 public:
  template <class Row>
  [[nodiscard]] static Json object_of(const Row& row) {
    RowWriter writer;
    each_member(writer, row);
    return std::move(writer.row_);
  }

  template <class Value>
  void column(const char* key, const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      row_[key] = name(value);
    } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
      row_[key] = optional(value);
    } else {
      row_[key] = value;
    }
  }
  void text_or_null(const char* key, const std::string& text) { row_[key] = text.empty() ? Json(nullptr) : Json(text); }
  void figure(const Figure& figure, const char* unit) { row_ = with(std::move(row_), figure, unit); }
  void figure(const char* key, const Figure& figure, const char* unit) {
    row_[key] = with(Json::object(), figure, unit);
  }
  template <class Row>
  void object(const char* key, const Row& row) {
    row_[key] = object_of(row);
  }
  template <class Row>
  void list(const char* key, const std::vector<Row>& rows) {
    Json& list = row_[key] = Json::array();
    for (const Row& row : rows) {
      list.push_back(object_of(row));
    }
  }
  template <class Row>
  void newer_list(const char* key, const std::vector<Row>& rows) {
    list(key, rows);
  }

 private:
  Json row_ = Json::object();
};

class RowReader {
 public:
  /// All of them outlive this.
  RowReader(Reader& reader, const Json& row, const std::string& path) : reader_(reader), row_(row), path_(path) {}

  template <class Value>
  void column(const char* key, Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      value = reader_.one_of<Value>(row_, path_, key);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = reader_.text(row_, path_, key);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = reader_.yes(row_, path_, key);
    } else if constexpr (std::is_same_v<Value, double>) {
      value = reader_.number(row_, path_, key);
    } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
      value = reader_.number_or_null(row_, path_, key);
    } else {
      value = reader_.whole<Value>(row_, path_, key);
    }
  }
  void column(const char* key, std::vector<std::uint32_t>& values) { values = reader_.wholes(row_, path_, key); }
  void column(const char* key, std::vector<std::string>& texts) {
    reader_.each(row_, key, [&](const Json& text, const std::string& path) {
      text.is_string() ? texts.push_back(text.get<std::string>()) : void(reader_.wrong(path, "it is no text"));
    });
  }
  void text_or_null(const char* key, std::string& text) {
    text = row_.contains(key) && !row_[key].is_null() ? reader_.text(row_, path_, key) : "";
  }
  void figure(Figure& figure, const char* unit) { figure = reader_.figure(row_, path_, unit); }
  void figure(const char* key, Figure& figure, const char* unit) {
    figure = reader_.figure_member(row_, path_, key, unit);
  }
  template <class Row>
  void object(const char* key, Row& row) {
    if (const Json* const found = reader_.member(row_, path_, key)) {
      const std::string path = Reader::join(path_, key);
      RowReader inner(reader_, *found, path);
      each_member(inner, row);
    }
  }
  template <class Row>
  void list(const char* key, std::vector<Row>& rows) {
    reader_.each(row_, key, [&](const Json& element, const std::string& path) {
      RowReader inner(reader_, element, path);
      each_member(inner, rows.emplace_back());
    });
  }
  template <class Row>
  void newer_list(const char* key, std::vector<Row>& rows) {
    if (row_.contains(key)) {
      list(key, rows);
    }
  }

 private:
  Reader& reader_;
  const Json& row_;
  const std::string& path_;
};

}  // namespace crosstalk::models::machine_json
