// SPDX-License-Identifier: Apache-2.0
#include "profile/schema.h"

namespace crosstalk::profile::schema {
namespace {

std::string names_of(std::span<const Column> columns) {
  std::string names;
  for (const Column& column : columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.name);
  }
  return names;
}

std::string definition(const Table& table, std::span<const Column> columns) {
  std::string parts;
  for (const Column& column : columns) {
    const bool is_id = table.id == std::string_view(column.name);
    parts += (parts.empty() ? "" : ", ") + std::string(column.name) + ' ' + column.type +
             (is_id             ? " PRIMARY KEY"
              : column.nullable ? ""
                                : " NOT NULL");
  }
  const std::string constraint = table.constraint;
  return std::string("CREATE TABLE ") + table.name + '(' + parts + (constraint.empty() ? "" : ", ") + constraint +
         ") " + table.options + ';';
}

template <class... Rows>
std::string definitions(RowKinds<Rows...> /*of*/) {
  return (definition(table_of<Rows>, columns_of<Rows>()) + ...);
}

}  // namespace

std::string create_tables() {
  return "CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID;" + definitions(StoredRows{});
}

std::string put_statement(const Table& table, std::size_t columns) {
  std::string values = "?";
  for (std::size_t column = 1; column < columns; ++column) {
    values += ",?";
  }
  return std::string(table.replaces ? "INSERT OR REPLACE" : "INSERT") + " INTO " + table.name + " VALUES(" + values +
         ") " + table.conflict;
}

std::string get_statement(const Table& table, std::span<const Column> columns) {
  const std::string order = table.order;
  return "SELECT " + names_of(columns) + " FROM " + table.name + (order.empty() ? "" : " ORDER BY ") + order;
}

std::string get_samples(SampleParts parts, bool measured) {
  const std::vector<Column> columns = columns_of<SampleRow>(parts);
  if (!measured) {
    return get_statement(table_of<SampleRow>, columns);
  }
  ColumnNames rest;
  SampleMeasurement row;
  visit_rest(rest, row);
  return "SELECT " + names_of(columns) + ", " + names_of(rest.all()) +
         " FROM sample LEFT JOIN sample_measurement ON sample_measurement.sample = sample.rowid ORDER BY sample.rowid";
}

}  // namespace crosstalk::profile::schema
