// SPDX-License-Identifier: Apache-2.0
#include "driver/live/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "attribution/advice.h"
#include "attribution/busy/loop_figures.h"
#include "attribution/model/sentences.h"
#include "attribution/objects/sharing_kind.h"
#include "driver/words/names.h"

namespace crosstalk::driver::live {
namespace {

using attribution::Amount;
using attribution::Analysis;
using attribution::Matrix;

std::optional<double> cost_of(const Amount& of_true, const Amount& of_false) {
  return of_true.cost_s || of_false.cost_s ? std::optional(of_true.cost_s.value_or(0) + of_false.cost_s.value_or(0))
                                           : std::nullopt;
}

/// Fills in `gain_s`, or `gain_most_s` where it is not known.
template <class Row>
void put_gain(Row& row, const attribution::Sum& sum) {
  if (const auto gain = said_gain(sum)) {
    (gain->at_most ? row.gain_most_s : row.gain_s) = gain->seconds;
  }
}

Exchange measured_exchange(const Amount& of_true, const Amount& of_false, const attribution::Sum& gaining) {
  Exchange exchange;
  exchange.cost_s = cost_of(of_true, of_false);
  put_gain(exchange, gaining);
  exchange.seen = of_true.seen + of_false.seen;
  return exchange;
}

Exchange measured_exchange(const Amount& of_true, const Amount& of_false) {
  return measured_exchange(of_true, of_false, attribution::sum_of(of_true, of_false));
}

/// Adds the figures of the latest refresh. `row`: null if it has no such row.
template <class Row>
void add_latest(Exchange& exchange, const Row* row, bool costs_known) {
  if (row != nullptr) {
    exchange.latest_cost_s = cost_of(row->true_sharing, row->false_sharing);
    exchange.latest_seen = row->true_sharing.seen + row->false_sharing.seen;
  } else if (costs_known) {
    exchange.latest_cost_s = 0;
  }
}

/// The rows of the latest refresh by what identifies them.
template <class Row, class KeyOf>
class Latest {
 public:
  Latest(const std::vector<Row>& rows, KeyOf key_of) : key_of_(key_of) {
    for (const Row& row : rows) {
      rows_[key_of(row)] = &row;
    }
  }
  [[nodiscard]] const Row* like(const Row& row) const {
    const auto found = rows_.find(key_of_(row));
    return found == rows_.end() ? nullptr : found->second;
  }

 private:
  KeyOf key_of_;
  std::map<std::invoke_result_t<KeyOf, const Row&>, const Row*> rows_;
};

bool has_some_cost(const Analysis& analysis) {
  return analysis.communication.true_sharing.cost_s || analysis.communication.false_sharing.cost_s;
}

/// False if too little was watched in the refresh to know costs.
bool costs_known(const Analysis& analysis) {
  return has_some_cost(analysis) ||
         std::none_of(analysis.warnings.begin(), analysis.warnings.end(),
                      [](const attribution::Warning& warning) { return warning.code == "too_few_events"; });
}

/// A warning of one refresh may not hold for the window.
std::string message_of(const attribution::Warning& warning, const Analysis& window) {
  return warning.code == "too_few_events" && has_some_cost(window)
             ? "the costs of some refreshes are unknown: too few lines were watched in them. They are in no figure"
             : warning.message;
}

std::vector<PairShare> costliest_pairs(const Matrix& cells) {
  std::vector<PairShare> pairs;
  for (const attribution::Cell& cell : cells) {
    pairs.push_back({cell.producer, cell.consumer, cost_of(cell.true_sharing, cell.false_sharing),
                     cell.true_sharing.seen + cell.false_sharing.seen});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const PairShare& a, const PairShare& b) {
    return std::pair(a.cost_s.value_or(0), a.seen) > std::pair(b.cost_s.value_or(0), b.seen);
  });
  pairs.resize(std::min(pairs.size(), most_pairs));
  return pairs;
}

/// Leaves the first `most` rows by `before`, in order. Returns how many there were.
template <class Row, class Before, class InOrder>
std::size_t cut(std::vector<Row>& rows, std::size_t most, Before before, InOrder in_order) {
  const std::size_t all = rows.size();
  if (all > most) {
    std::stable_sort(rows.begin(), rows.end(), before);
    rows.resize(most);
    std::sort(rows.begin(), rows.end(), in_order);
  }
  return all;
}

void fill_cells(const Analysis& window, const Analysis& latest, bool known, Snapshot& snapshot) {
  const Latest before(latest.communication.cells,
                      [](const attribution::Cell& cell) { return std::pair(cell.producer, cell.consumer); });
  for (const attribution::Cell& cell : window.communication.cells) {
    CellRow row{cell.producer, cell.consumer, cell.true_sharing.cost_s, cell.false_sharing.cost_s,
                measured_exchange(cell.true_sharing, cell.false_sharing)};
    add_latest(row.exchange, before.like(cell), known);
    snapshot.cells.push_back(row);
  }
  const auto costlier = [](const CellRow& a, const CellRow& b) {
    return std::pair(a.exchange.cost_s.value_or(0), a.exchange.seen) >
           std::pair(b.exchange.cost_s.value_or(0), b.exchange.seen);
  };
  const auto in_order = [](const CellRow& a, const CellRow& b) {
    return std::pair(a.producer, a.consumer) < std::pair(b.producer, b.consumer);
  };
  if (const std::size_t all = cut(snapshot.cells, most_cells, costlier, in_order); all > most_cells) {
    snapshot.warnings.push_back(
        {"rows_left_out",
         fmt::format("the matrix has the {} costliest of {} pairs of threads that communicate", most_cells, all)});
  }
}

/// The costliest object that a line exchanges, by (file, line, function).
std::map<std::tuple<std::string, std::uint32_t, std::string>, std::string> objects_by_line(const Analysis& window) {
  std::map<std::tuple<std::string, std::uint32_t, std::string>, std::string> objects;
  for (const attribution::LinePair& pair : window.communication.line_pairs) {  // costliest first
    objects.try_emplace({pair.producer_file, pair.producer_line, pair.producer_function}, pair.object);
    objects.try_emplace({pair.consumer_file, pair.consumer_line, pair.consumer_function}, pair.object);
  }
  return objects;
}

void fill_lines(const Analysis& window, const Analysis& latest, bool known, Snapshot& snapshot) {
  const Latest before(latest.communication.lines, [](const attribution::LineRow& row) {
    return std::tuple(row.file, row.line, row.function, row.role, row.through, row.module);
  });
  const auto objects = objects_by_line(window);
  for (const attribution::LineRow& line : window.communication.lines) {
    if (snapshot.lines.size() == most_exchange_rows) {
      break;
    }
    LineRow row;
    row.file = line.caller_known ? line.file : "";
    row.line = line.caller_known ? line.line : 0;
    row.function = line.function;
    row.through = line.through;
    row.module = line.module;
    row.role = role_name(line.role);
    const auto object = objects.find({line.file, line.line, line.function});
    row.object = object == objects.end() ? "" : object->second;
    row.exchange = measured_exchange(line.true_sharing, line.false_sharing);
    add_latest(row.exchange, before.like(line), known);
    row.pairs = costliest_pairs(line.cells);
    snapshot.lines.push_back(std::move(row));
  }
}

/// The lines that exchange an object, costliest first.
std::vector<PlaceRow> exchanging_places(const Analysis& window, const std::string& object) {
  std::vector<PlaceRow> places;
  const auto add = [&](const std::string& file, std::uint32_t line, const std::string& function) {
    const bool there = std::any_of(places.begin(), places.end(), [&](const PlaceRow& place) {
      return place.file == file && place.line == line && place.function == function;
    });
    if (!there && places.size() < most_pairs) {
      places.push_back({file, line, function});
    }
  };
  for (const attribution::LinePair& pair : window.communication.line_pairs) {
    if (pair.object == object) {
      add(pair.consumer_file, pair.consumer_line, pair.consumer_function);
      add(pair.producer_file, pair.producer_line, pair.producer_function);
    }
  }
  return places;
}

void fill_objects(const Analysis& window, const Analysis& latest, bool known, Snapshot& snapshot) {
  const Latest before(latest.communication.objects,
                      [](const attribution::ObjectRow& row) { return std::pair(row.name, row.kind); });
  for (const attribution::ObjectRow& object : window.communication.objects) {
    if (object.cells.empty()) {
      continue;
    }
    if (snapshot.objects.size() == most_exchange_rows) {
      break;
    }
    ObjectRow row;
    row.name = object.name;
    row.label = attribution::object_in_words(object);
    row.kind = object_kind_name(object.kind);
    row.sharing = attribution::sharing_kind_name(object.sharing.kind);
    row.exchange = measured_exchange(object.true_sharing, object.false_sharing, attribution::advised_gain(object));
    add_latest(row.exchange, before.like(object), known);
    row.lines = exchanging_places(window, object.name);
    row.pairs = costliest_pairs(object.cells);
    snapshot.objects.push_back(std::move(row));
  }
}

void fill_loops(const Analysis& window, const Analysis& latest, bool times_known, Snapshot& snapshot) {
  const Latest before(latest.loops, [](const attribution::LoopRow& row) { return row.id; });
  for (const attribution::LoopRow& loop : window.loops) {
    if (snapshot.loops.size() == most_loops) {
      break;
    }
    LoopRow row;
    row.id = loop.id;
    row.function = loop.function;
    row.file = loop.file;
    row.line_begin = loop.line_begin;
    row.line_end = loop.line_end;
    row.depth = loop.depth;
    row.share = loop.share;
    row.samples = loop.samples;
    if (times_known) {
      row.self_s = loop.self_s;
      row.cpu_s = loop.cpu_s;
      const attribution::LoopRow* now = before.like(loop);
      row.latest_cpu_s = now != nullptr ? now->cpu_s : 0;
    }
    if (loop.figures && loop.figures->busy_class.which) {
      row.busy_class = busy_class_name(*loop.figures->busy_class.which);
    }
    for (const attribution::LoopThread& thread : loop.threads) {
      row.threads.push_back({thread.thread, thread.cpu_s});
    }
    std::stable_sort(row.threads.begin(), row.threads.end(),
                     [](const ThreadTime& a, const ThreadTime& b) { return a.cpu_s > b.cpu_s; });
    row.threads.resize(std::min(row.threads.size(), most_pairs));
    snapshot.loops.push_back(std::move(row));
  }
}

void fill_threads(const Analysis& window, const Analysis& latest, Snapshot& snapshot) {
  const Latest before(latest.threads, [](const attribution::ThreadSummary& row) { return row.index; });
  for (const attribution::ThreadSummary& thread : window.threads) {
    const attribution::ThreadSummary* now = before.like(thread);
    snapshot.threads.push_back({thread.index, thread.pid, thread.tid, thread.name, thread.cpu_s,
                                now != nullptr ? now->cpu_s : std::optional(0.0), thread.communication_s});
  }
  const auto busier = [](const ThreadRow& a, const ThreadRow& b) { return a.cpu_s.value_or(0) > b.cpu_s.value_or(0); };
  const auto in_order = [](const ThreadRow& a, const ThreadRow& b) { return a.index < b.index; };
  if (const std::size_t all = cut(snapshot.threads, most_threads, busier, in_order); all > most_threads) {
    snapshot.warnings.push_back(
        {"rows_left_out", fmt::format("the {} of {} threads that used most time are listed", most_threads, all)});
  }
}

void fill_findings(const Analysis& window, Snapshot& snapshot) {
  for (const attribution::Finding& finding : window.findings) {
    FindingRow row{finding.sentence, finding.kind,  {}, {}, {}, finding.object, finding.producer,
                   finding.consumer, finding.advice};
    if (finding.cost_s > 0) {
      row.cost_s = finding.cost_s;
      put_gain(row, {finding.cost_s, {}, finding.gain_s, finding.gain_ci95});
    }
    snapshot.findings.push_back(std::move(row));
  }
}

void fill_code(const Analysis& window, bool times_known, Snapshot& snapshot) {
  for (const attribution::CodeLineRow& row : window.code_lines) {
    if (snapshot.code.size() == most_code_rows) {
      break;
    }
    snapshot.code.push_back({row.file, row.line, row.function, times_known ? std::optional(row.self_s) : std::nullopt});
  }
}

std::string watching_of(const Analysis& window) {
  const auto busy = static_cast<std::uint64_t>(
      std::count_if(window.threads.begin(), window.threads.end(),
                    [](const attribution::ThreadSummary& thread) { return thread.samples > 0; }));
  const attribution::SamplingSummary& sampling = window.sampling;
  const bool probed = profile::are_lines_probed(window.session);
  std::string text =
      fmt::format("{} of {} sampled: {}", busy, attribution::count_of(window.threads.size(), "thread", "threads"),
                  attribution::count_of(sampling.samples, "sample", "samples"));
  text += probed ? ", " + attribution::count_of(sampling.armed, "probe", "probes")
                 : ", " + attribution::count_of(sampling.armed, "watch", "watches") + ", " +
                       attribution::count_of(sampling.traps, "trap", "traps");
  if (window.sight.sees == attribution::WatchSight::Sees::nothing) {
    text += "; communication cannot be seen: " + window.sight.because;
  }
  return text;
}

void fill_head(const Analysis& window, const Analysis& latest, const Circumstances& circumstances, bool times_known,
               Snapshot& snapshot) {
  snapshot.sequence = circumstances.sequence;
  snapshot.time_unix_s = circumstances.time_unix_s;
  snapshot.window_s = window.duration_s;
  snapshot.latest_s = latest.duration_s;
  snapshot.refresh_s = circumstances.refresh_s;
  snapshot.command = window.session.command;
  for (const profile::ProcessRow& process : latest.processes) {
    if (snapshot.pids.size() < most_threads &&
        std::find(snapshot.pids.begin(), snapshot.pids.end(), process.pid) == snapshot.pids.end()) {
      snapshot.pids.push_back(process.pid);
    }
  }
  if (times_known) {
    snapshot.cpu_s = window.cpu_s;
    snapshot.latest_cpu_s = latest.cpu_s;
    snapshot.processors = window.duration_s > 0 ? std::optional(window.cpu_s / window.duration_s) : std::nullopt;
    snapshot.latest_processors = latest.duration_s > 0 ? std::optional(latest.cpu_s / latest.duration_s) : std::nullopt;
  }
  snapshot.source = window.sampling.source;
  snapshot.method = window.sampling.method;
  snapshot.watching = watching_of(window);
  snapshot.overhead = {window.sampling.overhead_fraction, static_cast<double>(window.session.recorder_cpu_ns) * 1e-9,
                       window.session.config.budget, circumstances.producer_cpu_s};
  snapshot.losses = {window.sampling.lost, circumstances.unread_threads};
  for (const attribution::Warning& warning : window.warnings) {
    snapshot.warnings.push_back({warning.code, message_of(warning, window)});
  }
}

}  // namespace

Snapshot snapshot_of(const Analysis& window, const Analysis& latest, const Circumstances& circumstances) {
  Snapshot snapshot;
  const bool times_known = attribution::cpu_time_known(window);
  const bool known = costs_known(latest);
  fill_head(window, latest, circumstances, times_known, snapshot);
  fill_threads(window, latest, snapshot);
  fill_cells(window, latest, known, snapshot);
  fill_lines(window, latest, known, snapshot);
  fill_objects(window, latest, known, snapshot);
  fill_loops(window, latest, times_known, snapshot);
  fill_findings(window, snapshot);
  fill_code(window, times_known, snapshot);
  return snapshot;
}

}  // namespace crosstalk::driver::live
