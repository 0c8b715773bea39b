// SPDX-License-Identifier: Apache-2.0
#include "driver/live/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <tuple>

#include "base/number.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver::live {
namespace {

/// `part` of `all`, at most 1: an estimate may exceed what it is of.
std::optional<double> share(const std::optional<double>& part, const std::optional<double>& all) {
  return part && all && *all > 0 ? std::optional(std::clamp(*part / *all, 0.0, 1.0)) : std::nullopt;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool mentions(const Row& row, const std::string& filter) {
  if (filter.empty()) {
    return true;
  }
  const std::string wanted = lower(filter);
  return std::ranges::any_of(std::array{row.name, row.about, row.kind, row.place.file, row.source},
                             [&](const std::string& text) { return lower(text).find(wanted) != std::string::npos; });
}

/// The part of a row that falls into the scope.
struct Within {
  bool any = true;
  double part = 1;  // of the row's cost
  std::uint64_t seen = 0;
};

bool is_of(const Scope& scope, std::uint32_t producer, std::uint32_t consumer) {
  return (!scope.pair || (scope.pair->first == producer && scope.pair->second == consumer)) &&
         (!scope.thread || *scope.thread == producer || *scope.thread == consumer);
}

Within within(const Scope& scope, const Exchange& exchange, const std::vector<PairShare>& pairs) {
  if (!scope.pair && !scope.thread) {
    return {true, 1, exchange.seen};
  }
  Within found{false, 0, 0};
  for (const PairShare& pair : pairs) {
    if (is_of(scope, pair.producer, pair.consumer)) {
      found.any = true;
      found.part += exchange.cost_s.value_or(0) > 0 ? pair.cost_s.value_or(0) / *exchange.cost_s : 0;
      found.seen += pair.seen;
    }
  }
  found.part = std::clamp(found.part, 0.0, 1.0);
  return found;
}

std::optional<double> times(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

/// Fills in costs, as far as they are of the scope.
void put_exchange(const Snapshot& snapshot, const Exchange& exchange, const Within& found, Row& row) {
  row.cost = part_of(snapshot, exchange.cost_s, exchange.latest_cost_s);
  row.cost = {times(row.cost.favoured, found.part), times(row.cost.now, found.part)};
  const std::optional<double>& gain_s = exchange.gain_s ? exchange.gain_s : exchange.gain_most_s;
  if (gain_s && exchange.cost_s.value_or(0) > 0) {
    row.gain = times(row.cost.favoured, std::clamp(*gain_s / *exchange.cost_s, 0.0, 1.0));
    row.gain_is_limit = !exchange.gain_s;
  }
  row.seen = found.seen;
  row.present = exchange.latest_seen > 0 || row.cost.now.value_or(0) > 0;
}

std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::vector<Row> object_rows(const Snapshot& snapshot, const Scope& scope) {
  std::vector<Row> rows;
  for (const ObjectRow& object : snapshot.objects) {
    const Within found = within(scope, object.exchange, object.pairs);
    if (!found.any || (!scope.object.empty() && scope.object != object.name)) {
      continue;
    }
    Row row;
    row.key = object.name;
    put_exchange(snapshot, object.exchange, found, row);
    row.kind = words_of(object.sharing);
    row.is_false_sharing = object.sharing == "false_sharing";
    row.name = object.label.empty() ? object.name : object.label;
    row.about = object.kind;
    row.place = object.lines.empty() ? PlaceRow{} : object.lines.front();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// True if the object has the line among those that exchange it.
bool exchanges(const Snapshot& snapshot, const std::string& object, const LineRow& line) {
  return std::ranges::any_of(snapshot.objects, [&](const ObjectRow& row) {
    return row.name == object && std::ranges::any_of(row.lines, [&](const PlaceRow& place) {
             return place.file == line.file && place.line == line.line && place.function == line.function;
           });
  });
}

std::vector<Row> line_rows(const Snapshot& snapshot, const Scope& scope) {
  std::vector<Row> rows;
  for (const LineRow& line : snapshot.lines) {
    const Within found = within(scope, line.exchange, line.pairs);
    if (!found.any ||
        (!scope.object.empty() && line.object != scope.object && !exchanges(snapshot, scope.object, line))) {
      continue;
    }
    Row row;
    row.place = {line.file, line.line, line.function};
    row.key = fmt::format("{}:{} {} {} {}", line.file, line.line, line.role, line.function, line.through);
    put_exchange(snapshot, line.exchange, found, row);
    row.kind = line.role == "producer" ? "stores" : "waits";
    row.name = line.function + (line.through.empty() ? std::string() : " in " + line.through);
    row.source = source_label(row.place);
    row.about = line.object;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The part of the loop's time in the thread; 1 for all threads.
double part_in(const LoopRow& loop, const std::optional<std::uint32_t>& thread) {
  if (!thread) {
    return 1;
  }
  const auto found = std::ranges::find_if(loop.threads, [&](const ThreadTime& time) { return time.thread == *thread; });
  return found == loop.threads.end() || loop.cpu_s.value_or(0) <= 0 ? 0
                                                                    : std::clamp(found->cpu_s / *loop.cpu_s, 0.0, 1.0);
}

std::vector<Row> loop_rows(const Snapshot& snapshot, const Scope& scope) {
  std::vector<Row> rows;
  const std::optional<std::uint32_t> thread = scope.pair ? std::optional(scope.pair->second) : scope.thread;
  for (const LoopRow& loop : snapshot.loops) {
    const double part = part_in(loop, thread);
    if (part <= 0) {
      continue;
    }
    Row row;
    row.key = std::to_string(loop.id);
    row.cost = part_of(snapshot, loop.cpu_s, loop.latest_cpu_s);
    if (!loop.cpu_s) {
      row.cost.favoured = loop.share;
    }
    row.cost = {times(row.cost.favoured, part), times(row.cost.now, part)};
    if (loop.self_s && loop.cpu_s.value_or(0) > 0) {
      row.own = times(row.cost.favoured, std::clamp(*loop.self_s / *loop.cpu_s, 0.0, 1.0));
    }
    row.present = row.cost.now.value_or(1) > 0;
    row.kind = words_of(loop.busy_class);
    row.place = {loop.file, loop.line_begin, loop.function};
    row.name = loop.function;
    row.source = source_label(row.place);
    row.source += !row.source.empty() && loop.line_end > loop.line_begin ? fmt::format("-{}", loop.line_end) : "";
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> thread_rows(const Snapshot& snapshot, const Scope& scope) {
  std::vector<Row> rows;
  for (const ThreadRow& thread : snapshot.threads) {
    const bool of_pair = !scope.pair || scope.pair->first == thread.index || scope.pair->second == thread.index;
    if (!of_pair || (scope.thread && *scope.thread != thread.index)) {
      continue;
    }
    Row row;
    row.key = std::to_string(thread.index);
    row.thread = thread.index;
    row.cost = part_of(snapshot, thread.cpu_s, thread.latest_cpu_s);
    row.gain = share(thread.communication_s, thread.cpu_s);
    row.present = thread.latest_cpu_s.value_or(0) > 0;
    row.kind = std::to_string(thread.tid);
    row.name = thread_label(snapshot, thread.index);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> finding_rows(const Snapshot& snapshot, const Scope& scope) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < snapshot.findings.size(); ++i) {
    const FindingRow& finding = snapshot.findings[i];
    if (!scope.object.empty() && finding.object != scope.object) {
      continue;
    }
    Row row;
    row.key = finding.object.empty() ? finding.kind + std::to_string(i) : finding.object;
    row.cost.favoured = share(finding.cost_s, snapshot.cpu_s);
    row.gain = share(finding.gain_s ? finding.gain_s : finding.gain_most_s, snapshot.cpu_s);
    row.gain_is_limit = !finding.gain_s;
    row.kind = words_of(finding.kind);
    row.name = finding.sentence;
    rows.push_back(std::move(row));
  }
  return rows;
}

void sort_rows(std::vector<Row>& rows, Table table, Sort sort) {
  if (table == Table::findings && sort == Sort::cost) {
    return;  // they come in the order of their importance
  }
  const auto figure = [sort](const Row& row) {
    const std::optional<double>& value = sort == Sort::now    ? row.cost.now
                                         : sort == Sort::gain ? row.gain
                                                              : row.cost.favoured;
    return std::pair(value.value_or(0), row.seen);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return sort == Sort::name ? a.name < b.name : figure(a) > figure(b);
  });
}

}  // namespace

bool has_column(Table table, Sort sort) {
  switch (table) {
    case Table::loops:
      return sort != Sort::gain;
    case Table::findings:
      return sort == Sort::cost || sort == Sort::gain;
    case Table::objects:
    case Table::lines:
    case Table::threads:
      break;
  }
  return true;
}

Part part_of(const Snapshot& snapshot, const std::optional<double>& window_s, const std::optional<double>& latest_s) {
  const std::optional<double> whole = share(window_s, snapshot.cpu_s);
  const std::optional<double> now = share(latest_s, snapshot.latest_cpu_s);
  return {whole && now ? std::optional((*whole + *now) / 2) : whole, now};
}

std::vector<Row> rows_of(const Snapshot& snapshot, Table table, const Scope& scope, const std::string& filter,
                         Sort sort) {
  std::vector<Row> rows;
  switch (table) {
    case Table::objects:
      rows = object_rows(snapshot, scope);
      break;
    case Table::lines:
      rows = line_rows(snapshot, scope);
      break;
    case Table::loops:
      rows = loop_rows(snapshot, scope);
      break;
    case Table::threads:
      rows = thread_rows(snapshot, scope);
      break;
    case Table::findings:
      rows = finding_rows(snapshot, scope);
      break;
  }
  std::erase_if(rows, [&](const Row& row) { return !mentions(row, filter); });
  sort_rows(rows, table, has_column(table, sort) ? sort : Sort::cost);
  return rows;
}

std::vector<const ThreadRow*> matrix_threads(const Snapshot& snapshot, const Scope& scope) {
  std::set<std::uint32_t> talking;
  for (const CellRow& cell : snapshot.cells) {
    if (is_of(scope, cell.producer, cell.consumer)) {
      talking.insert({cell.producer, cell.consumer});
    }
  }
  std::vector<const ThreadRow*> threads;
  double greatest = 0;
  for (const ThreadRow& thread : snapshot.threads) {
    if (scope.all() || talking.contains(thread.index) || scope.thread == thread.index) {
      threads.push_back(&thread);
      greatest = std::max(greatest, thread.cpu_s.value_or(0));
    }
  }
  const auto rank = [&](const ThreadRow* thread) {
    return std::tuple(!talking.contains(thread->index), -heat_level(thread->cpu_s.value_or(0), greatest),
                      thread->index);
  };
  std::stable_sort(threads.begin(), threads.end(),
                   [&](const ThreadRow* a, const ThreadRow* b) { return rank(a) < rank(b); });
  return threads;
}

std::string thread_label(const Snapshot& snapshot, std::uint32_t thread) {
  const auto found = std::ranges::find_if(snapshot.threads, [&](const ThreadRow& row) { return row.index == thread; });
  const bool named = found != snapshot.threads.end() && !found->name.empty();
  return std::to_string(thread) + (named ? " " + found->name : "");
}

std::string source_label(const PlaceRow& place) {
  const std::string name = place.file.substr(place.file.rfind('/') + 1);
  return name.empty() || place.line == 0 ? name : fmt::format("{}:{}", name, place.line);
}

std::optional<std::uint32_t> thread_named(const Snapshot& snapshot, const std::string& text) {
  const auto number = whole_number<std::uint32_t>(text);
  const auto found = [&](auto fits) -> std::optional<std::uint32_t> {
    const auto thread = std::ranges::find_if(snapshot.threads, fits);
    return thread == snapshot.threads.end() ? std::nullopt : std::optional(thread->index);
  };
  if (text.empty()) {
    return std::nullopt;
  }
  if (number) {
    const auto by_index = found([&](const ThreadRow& row) { return row.index == *number; });
    return by_index ? by_index
                    : found([&](const ThreadRow& row) { return row.tid == static_cast<std::int64_t>(*number); });
  }
  return found([&](const ThreadRow& row) { return lower(row.name).starts_with(lower(text)); });
}

}  // namespace crosstalk::driver::live
