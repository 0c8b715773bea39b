// SPDX-License-Identifier: Apache-2.0
#include "attribution/filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/groups.h"
#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"
#include "base/number.h"

namespace crosstalk::attribution {
namespace {

/// Equal names always match, because a name with a '[' is no valid pattern.
bool matches(const std::string& pattern, const std::string& name) {
  return pattern == name || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool matches_module(const Analysis& analysis, const std::string& pattern, const std::string& path) {
  return !path.empty() && (matches(pattern, path) || matches(pattern, base_name(path)) ||
                           matches(pattern, module_name(analysis.processes, path)));
}

/// The first of `names`, without duplicates, and the number of the others.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (!name.empty() && std::find(shown.begin(), shown.end(), name) == shown.end()) {
      shown.push_back(name);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(most, shown.size()); ++i) {
    text += (i == 0 ? "" : ", ") + shown[i];
  }
  return shown.empty() ? "none"
                       : text + (shown.size() > most ? " and " + std::to_string(shown.size() - most) + " more" : "");
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", value);
  return text;
}

Result<std::set<std::uint32_t>> chosen_threads(const Analysis& analysis, const std::string& pattern) {
  const auto index = whole_number<std::uint32_t>(pattern);
  std::set<std::uint32_t> chosen;
  std::vector<std::string> names;
  for (const ThreadSummary& thread : analysis.threads) {
    if (index ? thread.index == *index : matches(pattern, thread.name)) {
      chosen.insert(thread.index);
    }
    names.push_back(std::to_string(thread.index) + " " + thread.name);
  }
  return chosen.empty() ? fail(ErrorCode::not_found,
                               "--thread " + pattern + ": there is no such thread; there are " + some_of(names))
                        : Result<std::set<std::uint32_t>>(std::move(chosen));
}

Matrix cells_of(const Matrix& cells, const std::set<std::uint32_t>& threads) {
  Matrix result;
  std::copy_if(cells.begin(), cells.end(), std::back_inserter(result), [&threads](const Cell& cell) {
    return threads.contains(cell.producer) || threads.contains(cell.consumer);
  });
  return result;
}

/// Sums cells by pair.
class CellSums {
 public:
  void add(const Matrix& cells) {
    for (const Cell& cell : cells) {
      const auto [sum, fresh] = sums_.try_emplace({cell.producer, cell.consumer}, cell);
      if (!fresh) {
        sum->second.true_sharing = sum_amounts(sum->second.true_sharing, cell.true_sharing);
        sum->second.false_sharing = sum_amounts(sum->second.false_sharing, cell.false_sharing);
      }
    }
  }
  [[nodiscard]] Matrix take() const {
    Matrix result;
    for (const auto& [pair, cell] : sums_) {
      result.push_back(cell);
    }
    return result;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cell> sums_;
};

/// Replaces the row's cells.
template <class Row>
void set_cells(Row& row, Matrix cells) {
  row.cells = std::move(cells);
  row.true_sharing = {};
  row.false_sharing = {};
  row.cost_s = 0;
  for (const Cell& cell : row.cells) {
    row.true_sharing = sum_amounts(row.true_sharing, cell.true_sharing);
    row.false_sharing = sum_amounts(row.false_sharing, cell.false_sharing);
    row.cost_s += cell.cost();
  }
}

template <class Row>
void keep_cells(std::vector<Row>& rows, const std::set<std::uint32_t>& threads) {
  for (Row& row : rows) {
    set_cells(row, cells_of(row.cells, threads));
  }
  std::erase_if(rows, [](const Row& row) { return row.cells.empty(); });
}

struct Place {
  std::string file, function;
  std::uint32_t line = 0;
  auto operator<=>(const Place&) const = default;
};
Place producer_of(const LinePair& pair) { return {pair.producer_file, pair.producer_function, pair.producer_line}; }
Place consumer_of(const LinePair& pair) { return {pair.consumer_file, pair.consumer_function, pair.consumer_line}; }

void list_only(Analysis& analysis, const std::set<std::uint32_t>& threads) {
  for (ThreadSummary& thread : analysis.threads) {
    thread.listed = thread.listed && threads.contains(thread.index);
  }
}

void keep_thread_times(Analysis& analysis, const std::set<std::uint32_t>& threads) {
  list_only(analysis, threads);
  for (LoopRow& loop : analysis.loops) {
    std::erase_if(loop.threads, [&](const LoopThread& thread) { return !threads.contains(thread.thread); });
    const double all_s = loop.cpu_s;
    loop.cpu_s = loop.self_s = loop.kernel_s = 0;
    for (const LoopThread& thread : loop.threads) {
      loop.cpu_s += thread.cpu_s;
      loop.self_s += thread.self_s;
      loop.kernel_s += thread.kernel_s;
    }
    const double part = all_s > 0 ? loop.cpu_s / all_s : 0;
    loop.share *= part;
    loop.share_ci95 = {loop.share_ci95.low * part, loop.share_ci95.high * part};
  }
  std::erase_if(analysis.loops, [](const LoopRow& loop) { return loop.threads.empty(); });
  analysis.functions.clear();  // their time is not known by thread
  analysis.kernel.clear();
  analysis.code_lines.clear();
}

void keep_threads(Analysis& analysis, const std::set<std::uint32_t>& threads) {
  Communication& communication = analysis.communication;
  communication.cells = cells_of(communication.cells, threads);
  communication.invalidations = cells_of(communication.invalidations, threads);
  communication.cores.clear();  // not known by thread
  keep_cells(communication.lines, threads);
  keep_cells(communication.line_pairs, threads);
  keep_cells(communication.objects, threads);
  std::erase_if(communication.sampled_uses, [&](const SampledUse& use) {
    return std::none_of(use.threads.begin(), use.threads.end(),
                        [&](std::uint32_t thread) { return threads.contains(thread); });
  });
  keep_thread_times(analysis, threads);
}

/// Recomputes everything that communicates from the remaining pairs of lines.
void follow_pairs(Analysis& analysis) {
  Communication& communication = analysis.communication;
  CellSums all;
  std::map<std::pair<Place, Role>, CellSums> ends;
  std::set<std::string> objects;
  for (const LinePair& pair : communication.line_pairs) {
    all.add(pair.cells);
    ends[{producer_of(pair), Role::producer}].add(pair.cells);
    ends[{consumer_of(pair), Role::consumer}].add(pair.cells);
    objects.insert(pair.object);
  }
  communication.cells = all.take();
  communication.invalidations.clear();  // not known by object
  communication.cores.clear();
  for (LineRow& row : communication.lines) {
    const auto end = ends.find({Place{row.file, row.function, row.line}, row.role});
    set_cells(row, end == ends.end() ? Matrix{} : end->second.take());
  }
  std::erase_if(communication.lines, [](const LineRow& row) { return row.cells.empty(); });
  std::erase_if(communication.objects, [&](const ObjectRow& row) { return !objects.contains(row.name); });
  std::set<std::uint32_t> threads;
  for (const Cell& cell : communication.cells) {
    threads.insert({cell.producer, cell.consumer});
  }
  list_only(analysis, threads);
}

/// Keeps the code of the remaining pairs.
void keep_code_of_pairs(Analysis& analysis) {
  std::set<Place> places;
  for (const LinePair& pair : analysis.communication.line_pairs) {
    places.insert({producer_of(pair), consumer_of(pair)});
  }
  const auto in = [&places](const std::string& file, std::uint32_t begin, std::uint32_t end) {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) {
      return place.file == file && begin <= place.line && place.line <= end;
    });
  };
  std::erase_if(analysis.loops, [&](const LoopRow& row) { return !in(row.file, row.line_begin, row.line_end); });
  std::erase_if(analysis.code_lines, [&](const CodeLineRow& row) { return !in(row.file, row.line, row.line); });
  analysis.kernel.clear();
  std::erase_if(analysis.functions, [&places](const FunctionRow& row) {
    return std::none_of(places.begin(), places.end(), [&](const Place& p) { return p.function == row.function; });
  });
}

/// The name as reports show it, without file-local scopes.
std::string shown_name(std::string name) {
  constexpr std::string_view file_local = "(anonymous namespace)::";
  for (std::size_t at = name.find(file_local); at != std::string::npos; at = name.find(file_local)) {
    name.erase(at, file_local.size());
  }
  return name;
}

/// True if the pattern matches the object's name, its shown name, or its name with the field as in findings.
bool matches_object(const std::string& pattern, const ObjectRow& row) {
  const std::string shown = shown_name(row.name);
  return matches(pattern, row.name) || matches(pattern, shown) || matches(pattern, shown_name(object_in_words(row)));
}

Result<void> keep_object(Analysis& analysis, const std::string& pattern) {
  std::vector<std::string> names;
  std::set<std::string> chosen;
  for (const ObjectRow& row : analysis.communication.objects) {
    names.push_back(shown_name(row.name));
    if (matches_object(pattern, row)) {
      chosen.insert(row.name);
    }
  }
  if (chosen.empty()) {
    return fail(ErrorCode::not_found,
                "--object " + pattern + ": no communicating object is called so; there are: " + some_of(names));
  }
  std::erase_if(analysis.communication.line_pairs, [&](const LinePair& pair) { return !chosen.contains(pair.object); });
  std::erase_if(analysis.communication.objects, [&](const ObjectRow& row) { return !chosen.contains(row.name); });
  std::erase_if(analysis.communication.sampled_uses,
                [&](const SampledUse& use) { return !chosen.contains(use.object); });
  follow_pairs(analysis);
  keep_code_of_pairs(analysis);
  return {};
}

std::vector<std::string> modules_of(const Analysis& analysis) {
  std::vector<std::string> paths;
  for (const LoopRow& row : analysis.loops) {
    paths.push_back(row.module);
  }
  for (const FunctionRow& row : analysis.functions) {
    paths.push_back(row.module);
  }
  for (const LinePair& pair : analysis.communication.line_pairs) {
    paths.insert(paths.end(), {pair.producer_module, pair.consumer_module});
  }
  return paths;
}

Result<void> keep_module(Analysis& analysis, const std::string& pattern) {
  const std::vector<std::string> paths = modules_of(analysis);
  const auto fits = [&](const std::string& path) { return matches_module(analysis, pattern, path); };
  if (std::none_of(paths.begin(), paths.end(), fits)) {
    std::vector<std::string> names;
    std::transform(paths.begin(), paths.end(), std::back_inserter(names),
                   [&](const std::string& path) { return module_name(analysis.processes, path); });
    return fail(ErrorCode::not_found,
                "--module " + pattern + ": no sampled module is called so; there are: " + some_of(names));
  }
  std::erase_if(analysis.communication.line_pairs,
                [&](const LinePair& pair) { return !fits(pair.producer_module) && !fits(pair.consumer_module); });
  const std::vector<ThreadSummary> threads = analysis.threads;  // any may run a module's code
  follow_pairs(analysis);
  analysis.threads = threads;
  std::erase_if(analysis.loops, [&](const LoopRow& row) { return !fits(row.module); });
  std::erase_if(analysis.functions, [&](const FunctionRow& row) { return !fits(row.module); });
  analysis.code_lines.clear();  // their modules are not known
  return {};
}

/// Findings about unseen communication belong to no row, so a filter keeps them.
bool is_about_blindness(const Finding& finding) { return finding.kind == "blind"; }

void keep_costs(Analysis& analysis, double least_s) {
  Communication& communication = analysis.communication;
  const auto by_cost = [least_s](const auto& row) { return row.cost_s < least_s; };
  const auto by_cell = [least_s](const Cell& cell) { return cell.cost() < least_s; };
  const auto by_time = [least_s](const auto& row) { return row.self_s < least_s; };
  std::erase_if(communication.cells, by_cell);
  std::erase_if(communication.cores, by_cell);
  communication.invalidations.clear();  // have no cost
  std::erase_if(communication.lines, by_cost);
  std::erase_if(communication.line_pairs, by_cost);
  std::erase_if(communication.objects, by_cost);
  std::erase_if(analysis.findings,
                [&](const Finding& finding) { return by_cost(finding) && !is_about_blindness(finding); });
  std::erase_if(analysis.loops, [least_s](const LoopRow& row) { return row.cpu_s < least_s; });
  std::erase_if(analysis.functions, by_time);
  std::erase_if(analysis.code_lines, by_time);
  for (ThreadSummary& thread : analysis.threads) {
    thread.listed = thread.listed && thread.communication_s.value_or(0) >= least_s;
  }
}

/// Keeps findings on the remaining objects. Those on the whole program do not answer the user's question.
void keep_findings(Analysis& analysis) {
  std::set<std::string> objects;
  for (const ObjectRow& row : analysis.communication.objects) {
    objects.insert(row.name);
  }
  std::erase_if(analysis.findings, [&objects](const Finding& finding) {
    return !is_about_blindness(finding) && (finding.object.empty() || !objects.contains(finding.object));
  });
}

/// The greatest figure that --min-cost compares.
double greatest_cost(const Analysis& analysis) {
  double greatest = 0;
  for (const Cell& cell : analysis.communication.cells) {
    greatest = std::max(greatest, cell.cost());
  }
  for (const ObjectRow& row : analysis.communication.objects) {
    greatest = std::max(greatest, row.cost_s);
  }
  for (const LoopRow& row : analysis.loops) {
    greatest = std::max(greatest, row.cpu_s);
  }
  for (const FunctionRow& row : analysis.functions) {
    greatest = std::max(greatest, row.self_s);
  }
  return greatest;
}

bool is_empty(const Analysis& analysis) {
  return analysis.communication.cells.empty() && analysis.communication.objects.empty() && analysis.loops.empty() &&
         analysis.functions.empty();
}

template <class Row>
void limit(std::vector<Row>& rows, std::size_t most) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.cost_s > b.cost_s; });
  rows.resize(std::min(rows.size(), most));
}

}  // namespace

std::string Filter::text() const {
  std::string text;
  for (const auto& [option, value] :
       {std::pair{"--thread ", thread}, std::pair{"--object ", object}, std::pair{"--module ", module},
        std::pair{"--min-cost ", min_cost ? min_cost->text : std::string()}}) {
    text += value.empty() ? "" : (text.empty() ? "" : " ") + (option + value);
  }
  return text;
}

Result<Analysis> filtered(Analysis analysis, const Filter& filter, std::size_t max_rows) {
  Result<void> kept;
  if (!filter.object.empty()) {
    kept = keep_object(analysis, filter.object);
  }
  if (kept && !filter.module.empty()) {
    kept = keep_module(analysis, filter.module);
  }
  if (!kept) {
    return tl::unexpected<Error>(kept.error());
  }
  if (!filter.thread.empty()) {
    const auto threads = chosen_threads(analysis, filter.thread);
    if (!threads) {
      return tl::unexpected<Error>(threads.error());
    }
    keep_threads(analysis, *threads);
  }
  if (filter.restricts_code()) {
    keep_findings(analysis);
  }
  const double greatest = greatest_cost(analysis);
  if (filter.min_cost) {
    keep_costs(analysis, filter.min_cost->value * (filter.min_cost->of_cpu ? analysis.cpu_s : 1));
  }
  if (is_empty(analysis)) {
    return fail(ErrorCode::not_found, filter.text() + ": nothing is left" +
                                          (filter.min_cost ? "; the most that anything costs is " + seconds(greatest)
                                                           : std::string("; nothing fits all of it")));
  }
  if (analysis.findings.empty()) {
    analysis.findings.push_back({"No finding fits the filter.", 0, "none"});
  }
  limit(analysis.communication.lines, max_rows);
  limit(analysis.communication.line_pairs, max_rows);
  limit(analysis.communication.objects, max_rows);
  analysis.filter = filter.text();
  return analysis;
}

}  // namespace crosstalk::attribution
