// SPDX-License-Identifier: Apache-2.0
#include "attribution/window_sum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/findings.h"
#include "attribution/gain_limits.h"

namespace crosstalk::attribution {
namespace {

template <class Value>
std::optional<Value> known_sum(const std::optional<Value>& a, const std::optional<Value>& b) {
  return a && b ? std::optional(*a + *b) : a ? a : b;
}

/// The interval about the sum of two independent figures.
std::optional<Interval> about_sum(double a, const std::optional<Interval>& of_a, double b,
                                  const std::optional<Interval>& of_b) {
  if (!of_a || !of_b) {
    return of_a ? of_a : of_b;
  }
  return Interval{std::max(0.0, a + b - std::hypot(a - of_a->low, b - of_b->low)),
                  a + b + std::hypot(of_a->high - a, of_b->high - b)};
}

double at_middle(const Interval& interval) { return (interval.low + interval.high) / 2; }

std::optional<Interval> gain_interval(const Amount& a, const Amount& b) {
  if (!a.gain_ci95 || !b.gain_ci95) {
    return a.gain_ci95 ? a.gain_ci95 : b.gain_ci95;
  }
  return about_sum(a.gain_s.value_or(at_middle(*a.gain_ci95)), a.gain_ci95, b.gain_s.value_or(at_middle(*b.gain_ci95)),
                   b.gain_ci95);
}

/// The gain of both, by that of at least half of the cost.
std::optional<double> gain_of_both(const Amount& a, const Amount& b) {
  const double cost_s = a.cost_s.value_or(0) + b.cost_s.value_or(0);
  const auto part = [&](const Amount& known) -> std::optional<double> {
    const double of_known_s = known.cost_s.value_or(0);
    return known.gain_s && of_known_s > 0 && 2 * of_known_s >= cost_s
               ? std::optional(*known.gain_s * cost_s / of_known_s)
               : std::nullopt;
  };
  if (a.gain_s && b.gain_s) {
    return *a.gain_s + *b.gain_s;
  }
  if (!a.gain_s && !b.gain_s) {
    return std::nullopt;
  }
  return part(a.gain_s ? a : b);
}

void add(Amount& sum, const Amount& more) {
  Amount both;
  if (sum.count && more.count) {
    both.count = *sum.count + *more.count;
    both.count_ci95 = about_sum(*sum.count, sum.count_ci95, *more.count, more.count_ci95);
  } else {
    both.count_unknown = sum.count_unknown.empty() ? more.count_unknown : sum.count_unknown;
  }
  both.cost_s = known_sum(sum.cost_s, more.cost_s);
  both.cost_ci95 = about_sum(sum.cost_s.value_or(0), sum.cost_ci95, more.cost_s.value_or(0), more.cost_ci95);
  both.gain_s = gain_of_both(sum, more);
  both.gain_ci95 = gain_interval(sum, more);
  both.detections = sum.detections + more.detections;
  both.seen = sum.seen + more.seen;
  const auto moves = [](const Amount& amount) { return amount.detections > 0 && !amount.one_processor; };
  both.one_processor = (sum.one_processor || more.one_processor) && !moves(sum) && !moves(more);
  sum = std::move(both);
}

void add(Matrix& sum, const Matrix& more) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cell> cells;
  for (const Matrix* matrix : {&std::as_const(sum), &more}) {
    for (const Cell& cell : *matrix) {
      const auto [found, fresh] = cells.try_emplace({cell.producer, cell.consumer}, cell);
      if (!fresh) {
        add(found->second.true_sharing, cell.true_sharing);
        add(found->second.false_sharing, cell.false_sharing);
      }
    }
  }
  sum.clear();
  for (auto& [pair, cell] : cells) {
    sum.push_back(std::move(cell));
  }
}

/// Rows by what identifies them. A row's words are those of the interval in which `rank` was greatest.
template <class Row, class KeyOf, class Rank, class Add>
class Rows {
 public:
  Rows(KeyOf key_of, Rank rank, Add add_up) : key_of_(key_of), rank_(rank), add_up_(add_up) {}

  void add(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      const auto [found, fresh] = at_.try_emplace(key_of_(row), sums_.size());
      if (fresh) {
        sums_.push_back(row);
        greatest_.push_back(rank_(row));
        continue;
      }
      Row& sum = sums_[found->second];
      double& greatest = greatest_[found->second];
      if (rank_(row) > greatest) {
        greatest = rank_(row);
        Row other = std::exchange(sum, row);
        add_up_(sum, other);
      } else {
        add_up_(sum, row);
      }
    }
  }
  /// The sums, greatest first, at most `most`.
  [[nodiscard]] std::vector<Row> take(std::size_t most) {
    std::stable_sort(sums_.begin(), sums_.end(), [this](const Row& a, const Row& b) { return rank_(a) > rank_(b); });
    if (sums_.size() > most) {
      sums_.erase(sums_.begin() + static_cast<std::ptrdiff_t>(most), sums_.end());
    }
    return std::move(sums_);
  }

 private:
  KeyOf key_of_;
  Rank rank_;
  Add add_up_;
  std::map<std::invoke_result_t<KeyOf, const Row&>, std::size_t> at_;
  std::vector<Row> sums_;
  std::vector<double> greatest_;
};

/// Adds up the rows that `rows_of` returns of each interval.
template <class RowsOf, class KeyOf, class Rank, class Add>
auto summed(std::span<const Analysis* const> intervals, std::size_t most, RowsOf rows_of, KeyOf key_of, Rank rank,
            Add add_up) {
  using Row = typename std::decay_t<decltype(rows_of(*intervals.front()))>::value_type;
  Rows<Row, KeyOf, Rank, Add> rows(key_of, rank, add_up);
  for (const Analysis* interval : intervals) {
    rows.add(rows_of(*interval));
  }
  return rows.take(most);
}

double cost_of(const auto& row) { return row.cost_s; }

template <class Row>
void add_exchange(Row& sum, const Row& more) {
  add(sum.cells, more.cells);
  sum.cost_s += more.cost_s;
  add(sum.true_sharing, more.true_sharing);
  add(sum.false_sharing, more.false_sharing);
}

void add_offsets(std::vector<OffsetRow>& sum, const std::vector<OffsetRow>& more) {
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, std::size_t> at;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    at[{sum[i].thread, sum[i].offset, sum[i].bytes}] = i;
  }
  for (const OffsetRow& row : more) {
    const auto [found, fresh] = at.try_emplace({row.thread, row.offset, row.bytes}, sum.size());
    if (fresh) {
      sum.push_back(row);
    } else {
      sum[found->second].loads += row.loads;
      sum[found->second].stores += row.stores;
    }
  }
}

void add_fields(std::vector<SyncField>& sum, const std::vector<SyncField>& more) {
  for (const SyncField& field : more) {
    const auto same = std::find_if(sum.begin(), sum.end(), [&](const SyncField& known) {
      return known.field == field.field && known.kind == field.kind;
    });
    if (same == sum.end()) {
      sum.push_back(field);
    } else {
      same->cost_s += field.cost_s;
    }
  }
  std::stable_sort(sum.begin(), sum.end(), [](const SyncField& a, const SyncField& b) { return a.cost_s > b.cost_s; });
}

std::vector<LineRow> lines_of(std::span<const Analysis* const> intervals, std::size_t most) {
  return summed(
      intervals, most, [](const Analysis& a) { return a.communication.lines; },
      [](const LineRow& r) { return std::tuple(r.file, r.line, r.function, r.role, r.through, r.module); },
      cost_of<LineRow>, add_exchange<LineRow>);
}

std::vector<LinePair> pairs_of(std::span<const Analysis* const> intervals, std::size_t most) {
  return summed(
      intervals, most, [](const Analysis& a) { return a.communication.line_pairs; },
      [](const LinePair& r) {
        return std::tuple(r.producer_file, r.producer_line, r.producer_function, r.producer_through, r.consumer_file,
                          r.consumer_line, r.consumer_function, r.consumer_through, r.object);
      },
      cost_of<LinePair>, add_exchange<LinePair>);
}

std::vector<ObjectRow> objects_of(std::span<const Analysis* const> intervals, std::size_t most) {
  return summed(
      intervals, most, [](const Analysis& a) { return a.communication.objects; },
      [](const ObjectRow& r) { return std::pair(r.name, r.kind); }, cost_of<ObjectRow>,
      [](ObjectRow& sum, const ObjectRow& more) {
        add_exchange(sum, more);
        add_offsets(sum.offsets, more.offsets);
        add_fields(sum.sync_fields, more.sync_fields);
      });
}

std::vector<SampledUse> uses_of(std::span<const Analysis* const> intervals) {
  return summed(
      intervals, SIZE_MAX, [](const Analysis& a) { return a.communication.sampled_uses; },
      [](const SampledUse& use) { return use.object; }, [](const SampledUse& use) { return use.time_s; },
      [](SampledUse& sum, const SampledUse& more) {
        sum.threads.insert(more.threads.begin(), more.threads.end());
        sum.time_s += more.time_s;
        sum.samples += more.samples;
      });
}

/// The limit that holds if no interval saw any.
void keep_greatest(std::optional<Unseen>& limits, const std::optional<Unseen>& more) {
  if (!limits || !more) {
    limits = limits ? limits : more;
    return;
  }
  const auto keep = [](UnseenCost& cost, const UnseenCost& other) {
    cost.true_s = std::max(cost.true_s, other.true_s);
    cost.false_s = std::max(cost.false_s, other.false_s);
  };
  keep(limits->cost, more->cost);
  for (const UnseenOfConsumer& row : more->consumers) {
    const auto same = std::find_if(limits->consumers.begin(), limits->consumers.end(),
                                   [&](const UnseenOfConsumer& known) { return known.consumer == row.consumer; });
    if (same == limits->consumers.end()) {
      limits->consumers.push_back(row);
    } else {
      keep(same->cost, row.cost);
    }
  }
}

/// The words are those of the interval with the greatest limit, or of one without a limit: then the sum has none.
void add(Undetected& sum, const Undetected& more, double& greatest_s) {
  const auto both = sum.at_most_s && more.at_most_s ? std::optional(*sum.at_most_s + *more.at_most_s) : std::nullopt;
  const bool met = sum.met || more.met;
  if (sum.at_most_s && (!more.at_most_s || *more.at_most_s >= greatest_s)) {
    sum = more;
    greatest_s = more.at_most_s.value_or(0);
  }
  sum.at_most_s = both;
  sum.met = met;
}

Communication communication_of(std::span<const Analysis* const> intervals, std::size_t most) {
  Communication sum;
  double greatest_s = intervals.front()->communication.undetected.at_most_s.value_or(0);
  for (const Analysis* interval : intervals) {
    const Communication& one = interval->communication;
    add(sum.cells, one.cells);
    if (interval == intervals.front()) {
      sum.true_sharing = one.true_sharing;
      sum.false_sharing = one.false_sharing;
      sum.undetected = one.undetected;
    } else {
      add(sum.true_sharing, one.true_sharing);
      add(sum.false_sharing, one.false_sharing);
      add(sum.undetected, one.undetected, greatest_s);
    }
    keep_greatest(sum.unseen, one.unseen);
  }
  sum.lines = lines_of(intervals, most);
  sum.line_pairs = pairs_of(intervals, most);
  sum.objects = objects_of(intervals, most);
  sum.sampled_uses = uses_of(intervals);
  return sum;
}

/// The weight of an interval's shares: its part of all CPU time.
class Weights {
 public:
  explicit Weights(std::span<const Analysis* const> intervals) {
    const bool by_time = std::all_of(intervals.begin(), intervals.end(),
                                     [](const Analysis* interval) { return cpu_time_known(*interval); });
    for (const Analysis* interval : intervals) {
      parts_.push_back(by_time ? interval->cpu_s : static_cast<double>(interval->sampling.samples));
      all_ += parts_.back();
    }
  }
  [[nodiscard]] double operator[](std::size_t interval) const { return all_ > 0 ? parts_[interval] / all_ : 0; }

 private:
  std::vector<double> parts_;
  double all_ = 0;
};

/// The intervals' rows of code with shares of the whole window.
template <class Row>
std::vector<std::vector<Row>> in_window(std::span<const Analysis* const> intervals, const Weights& weights,
                                        std::vector<Row> Analysis::*rows) {
  std::vector<std::vector<Row>> scaled;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    scaled.push_back(intervals[i]->*rows);
    for (Row& row : scaled.back()) {
      row.share *= weights[i];
      if constexpr (requires { row.share_ci95; }) {
        row.share_ci95 = {row.share_ci95.low * weights[i], row.share_ci95.high * weights[i]};
      }
    }
  }
  return scaled;
}

template <class Row, class KeyOf, class Add>
std::vector<Row> code_of(std::span<const Analysis* const> intervals, const Weights& weights,
                         std::vector<Row> Analysis::*rows, std::size_t most, KeyOf key_of, Add add_up) {
  const auto share = [](const Row& row) { return row.share; };
  Rows<Row, KeyOf, decltype(share), Add> sums(key_of, share, add_up);
  for (const std::vector<Row>& one : in_window(intervals, weights, rows)) {
    sums.add(one);
  }
  return sums.take(most);
}

void add_threads(std::vector<LoopThread>& sum, const std::vector<LoopThread>& more) {
  for (const LoopThread& thread : more) {
    const auto same =
        std::find_if(sum.begin(), sum.end(), [&](const LoopThread& known) { return known.thread == thread.thread; });
    if (same == sum.end()) {
      sum.push_back(thread);
      continue;
    }
    same->cpu_s += thread.cpu_s;
    same->self_s += thread.self_s;
    same->waiting_s += thread.waiting_s;
    same->kernel_s += thread.kernel_s;
    same->iterations_per_s.reset();
    same->iterations_ci95.reset();
  }
}

void add_loop(LoopRow& sum, const LoopRow& more) {
  sum.share_ci95 = *about_sum(sum.share, sum.share_ci95, more.share, more.share_ci95);
  sum.share += more.share;
  sum.cpu_s += more.cpu_s;
  sum.self_s += more.self_s;
  sum.kernel_s += more.kernel_s;
  sum.samples += more.samples;
  sum.figures = sum.figures ? sum.figures : more.figures;
  add_threads(sum.threads, more.threads);
}

/// By (function, file, line), shares of the greatest interval.
void add_callers(std::vector<CallerRow>& sum, const std::vector<CallerRow>& more) { sum = sum.empty() ? more : sum; }

void sum_code(std::span<const Analysis* const> intervals, std::size_t most, Analysis& sum) {
  const Weights weights(intervals);
  sum.loops = code_of(
      intervals, weights, &Analysis::loops, SIZE_MAX, [](const LoopRow& row) { return row.id; }, add_loop);
  for (LoopRow& loop : sum.loops) {
    loop.rates = {};
    loop.waited = std::nullopt;
  }
  sum.functions = code_of(
      intervals, weights, &Analysis::functions, most,
      [](const FunctionRow& row) { return std::tuple(row.module, row.function, row.file, row.line); },
      [](FunctionRow& all, const FunctionRow& more) {
        all.self_s += more.self_s;
        all.share += more.share;
        all.samples += more.samples;
        all.kernel_s += more.kernel_s;
        add_callers(all.callers, more.callers);
      });
  sum.kernel = code_of(
      intervals, weights, &Analysis::kernel, most, [](const KernelRow& row) { return row.name; },
      [](KernelRow& all, const KernelRow& more) {
        all.self_s += more.self_s;
        all.share += more.share;
        all.samples += more.samples;
        add_callers(all.callers, more.callers);
      });
  sum.code_lines = code_of(
      intervals, weights, &Analysis::code_lines, most,
      [](const CodeLineRow& row) { return std::tuple(row.file, row.line, row.function); },
      [](CodeLineRow& all, const CodeLineRow& more) {
        all.self_s += more.self_s;
        all.share += more.share;
      });
}

void add_thread(ThreadSummary& sum, const ThreadSummary& more) {
  const double before_s = sum.cpu_s.value_or(0);
  const double more_s = more.cpu_s.value_or(0);
  if (sum.kernel_share && more.kernel_share && before_s + more_s > 0) {
    sum.kernel_share = (*sum.kernel_share * before_s + *more.kernel_share * more_s) / (before_s + more_s);
  } else {
    sum.kernel_share = sum.kernel_share ? sum.kernel_share : more.kernel_share;
  }
  sum.cpu_s = known_sum(sum.cpu_s, more.cpu_s);
  sum.communication_s = known_sum(sum.communication_s, more.communication_s);
  sum.samples += more.samples;
  sum.name = more.name;  // a thread may take another
  sum.brief = more.brief;
}

void sum_threads(std::span<const Analysis* const> intervals, Analysis& sum) {
  std::map<std::uint32_t, ThreadSummary> threads;
  for (const Analysis* interval : intervals) {
    for (const ThreadSummary& thread : interval->threads) {
      const auto [found, fresh] = threads.try_emplace(thread.index, thread);
      if (!fresh) {
        add_thread(found->second, thread);
      }
    }
  }
  for (auto& [index, thread] : threads) {
    thread.waits.reset();
    sum.threads.push_back(std::move(thread));
  }
}

void sum_sampling(std::span<const Analysis* const> intervals, Analysis& sum) {
  sum.sampling = intervals.back()->sampling;
  double spent_s = 0;
  double of_s = 0;
  for (const Analysis* interval : intervals) {
    const SamplingSummary& one = interval->sampling;
    if (interval != intervals.back()) {
      sum.sampling.samples += one.samples;
      sum.sampling.lost += one.lost;
      sum.sampling.armed += one.armed;
      sum.sampling.traps += one.traps;
      sum.sampling.with_address += one.with_address;
      sum.sampling.user_mode += one.user_mode;
      sum.sampling.handlers_s += one.handlers_s;
      sum.sampling.switches_s += one.switches_s;
      sum.sampling.stand_ins_s += one.stand_ins_s;
      sum.sampling.unknown_writers += one.unknown_writers;
    }
    if (one.overhead_fraction) {
      spent_s += *one.overhead_fraction * interval->cpu_s;
      of_s += interval->cpu_s;
    }
  }
  sum.sampling.events.clear();
  sum.sampling.overhead_fraction = of_s > 0 ? std::optional(spent_s / of_s) : std::nullopt;
}

/// Each kind once, in the words of the last interval that has it, in the order of their first time.
void gather_warnings(std::span<const Analysis* const> intervals, Analysis& sum) {
  for (const Analysis* interval : intervals) {
    for (const Warning& warning : interval->warnings) {
      const auto same = std::find_if(sum.warnings.begin(), sum.warnings.end(), [&](const Warning& known) {
        return known.code == warning.code && (known.code != "missing_symbols" || known.message == warning.message);
      });
      if (same == sum.warnings.end()) {
        sum.warnings.push_back(warning);
      } else {
        *same = warning;
      }
    }
  }
  if (sum.sampling.samples > 0) {
    std::erase_if(sum.warnings, [](const Warning& warning) { return warning.code == "no_samples"; });
  }
}

}  // namespace

Analysis sum_of_intervals(std::span<const Analysis* const> intervals, std::size_t max_rows) {
  const Analysis& last = *intervals.back();
  Analysis sum;
  sum.session = last.session;
  sum.session.begin_ns = intervals.front()->session.begin_ns;
  sum.processes = last.processes;
  sum.sight = last.sight;
  sum.build_id = last.build_id;
  sum.shares_of = last.shares_of;
  sum.program_missing = last.program_missing;
  sum.left_alone = last.left_alone;
  for (const Analysis* interval : intervals) {
    sum.session.recorder_cpu_ns += interval == &last ? 0 : interval->session.recorder_cpu_ns;
    if (interval != &last && interval->session.unobserved_cpu_ns) {
      sum.session.unobserved_cpu_ns = sum.session.unobserved_cpu_ns.value_or(0) + *interval->session.unobserved_cpu_ns;
    }
    sum.duration_s += interval->duration_s;
    sum.cpu_s += interval->cpu_s;
  }
  sum_threads(intervals, sum);
  sum.communication = communication_of(intervals, max_rows);
  limit_gains(sum.communication, sum.threads);
  limit_unseen(sum.communication, sum.threads);
  sum_code(intervals, max_rows, sum);
  sum_sampling(intervals, sum);
  gather_warnings(intervals, sum);
  sum.findings = findings_of(sum);
  return sum;
}

}  // namespace crosstalk::attribution
