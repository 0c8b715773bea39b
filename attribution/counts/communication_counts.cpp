// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/communication_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "attribution/counts/count_evidence.h"
#include "base/concurrently.h"

namespace crosstalk::attribution {
namespace {

constexpr double z95 = 1.959963984540054;
constexpr double most_odd = 0.2;      // of exchanges a step, by which odd cycles may change the mean
constexpr double most_unseen = 0.25;  // of the time from the first to the last exchange, that no counter was read in
constexpr double least_of_witness = 0.5;    // of the cycles, for a word to speak against another
constexpr double most_contradiction = 0.3;  // of the count, by such a word
constexpr double most_disagreement = 0.1;   // of the count, by another counter
constexpr double most_detour = 0.05;        // of a counter's steps
constexpr double most_in_one_gap = 0.25;    // of a counter's steps, unless the gap is as long
constexpr double least_exchanging = 0.75;   // of watches that lasted for several cycles
constexpr double long_enough = 4;           // cycles
constexpr std::size_t least_long_watches = 5;
constexpr double least_slowness = 20;  // times the cost of a cycle's traps, for an exchange to go by time
constexpr double traps_a_cycle = 4;    // first access and first store of two threads
constexpr double least_quickness = 8;  // usual cycles that fit into a watch: it sees the slow ones as well
constexpr double longest_silence = 4;  // mean times between two samples: one in e^4 is longer

/// A figure with half of its 95 % interval as a part of it; or the reason if there is none.
struct Figure {
  double value = 0, error = 0;
  std::string unknown;
};
Figure unknown(std::string why) { return {0, 0, std::move(why)}; }

/// The upper end of Wilson's 95 % interval of `k` in `n`.
double wilson_upper(double k, double n) {
  const double z2 = z95 * z95;
  const double p = k / n;
  return std::min(1.0, (p + z2 / (2 * n) + z95 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n));
}

/// The period in which a group exchanged, as far as its samples and a counter's readings tell.
struct Span {
  std::uint64_t begin_ns = 0, end_ns = 0;
  double usual_ns = 0;                 // mean time between two samples
  double before_ns = 0, after_ns = 0;  // to be added, as samples come by chance: as much while the thread is there
  bool sampled = false;                // else the watches stand for samples, which other instructions have got
  [[nodiscard]] double length_ns() const { return static_cast<double>(end_ns - begin_ns) + before_ns + after_ns; }
};

/// `consumer` may be nullptr: not known.
Span span_of(const ExchangeGroup& group, const profile::ThreadRow* consumer, std::uint64_t begin_ns,
             std::uint64_t end_ns) {
  Span span{begin_ns, end_ns};
  for (const SeenAt& at : group.seen) {
    span.begin_ns = std::min(span.begin_ns, at.seen->consumer.time_ns);
    span.end_ns = std::max(span.end_ns, at.seen->consumer.time_ns);
  }
  span.sampled = group.samples > 1;
  if (span.sampled) {
    span.begin_ns = std::min(span.begin_ns, group.first_ns);
    span.end_ns = std::max(span.end_ns, group.last_ns);
    span.usual_ns = static_cast<double>(group.last_ns - group.first_ns) / static_cast<double>(group.samples - 1);
  } else {
    span.usual_ns = static_cast<double>(span.end_ns - span.begin_ns) / static_cast<double>(group.watches.size());
  }
  span.before_ns = span.after_ns = span.usual_ns;
  if (consumer != nullptr && consumer->begin_ns != 0 && consumer->begin_ns <= span.begin_ns) {
    span.before_ns = std::min(span.before_ns, static_cast<double>(span.begin_ns - consumer->begin_ns));
  }
  if (consumer != nullptr && consumer->end_ns >= span.end_ns) {
    span.after_ns = std::min(span.after_ns, static_cast<double>(consumer->end_ns - span.end_ns));
  }
  return span;
}

template <typename Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The number of cycles that are unlike the seen ones. A watch ends after a few runs of owners, so cycles of many runs
/// are not seen to their end; leaving them out would make an irregular program look regular. It counts:
/// - takings after which the thread did not take the line again, in as many runs as most cycles have;
/// - takings after which it took the line only elsewhere, in runs for two cycles, to go there and to come back;
/// - of those elsewhere with fewer runs, the same part as of those with enough, and all if none had enough.
std::uint64_t unlike_cycles(std::span<const Ending> endings, std::uint32_t usual_runs) {
  std::uint64_t given_up = 0;
  std::uint64_t enough = 0;
  std::uint64_t gone = 0;
  std::uint64_t cut_off = 0;
  for (const Ending& ending : endings) {
    const bool elsewhere = ending.kind == Ending::Kind::elsewhere;
    given_up += ending.kind == Ending::Kind::last && ending.runs >= usual_runs ? 1 : 0;
    if (ending.runs >= 2 * usual_runs) {
      ++enough;
      gone += elsewhere ? 1 : 0;
    } else {
      cut_off += elsewhere ? 1 : 0;
    }
  }
  return given_up + gone + cut_off * (gone + 1) / (enough + 1);
}

/// Results from similar cycles: of all threads in one role at one instruction.
struct Law {
  Followed all;
  double usual_ns = 0;                // of a cycle
  std::vector<ExchangeClock> clocks;  // good enough for a witness

  /// Returns the index of its first cycle.
  std::size_t add(Followed&& followed) {
    const std::size_t first = all.cycles.size();
    if (first == 0 && all.endings.empty()) {
      all = std::move(followed);
      return first;
    }
    all.cycles.insert(all.cycles.end(), followed.cycles.begin(), followed.cycles.end());
    all.endings.insert(all.endings.end(), followed.endings.begin(), followed.endings.end());
    return first;
  }
  void settle() {
    if (all.cycles.empty()) {
      return;
    }
    std::vector<double> ns;
    std::vector<std::uint32_t> runs;
    for (const Cycle& cycle : all.cycles) {
      ns.push_back(static_cast<double>(cycle.length_ns()));
      runs.push_back(cycle.runs);
    }
    usual_ns = median(std::move(ns));
    clocks = exchange_clocks(all.cycles, least_of_witness, unlike_cycles(all.endings, median(std::move(runs))));
  }
};

/// A thread at an instruction, and its role for the group's consumer.
struct Clockwork {
  std::uint32_t thread = 0;
  std::uint64_t ip = 0;  // behind the access
  bool consumes = false;
  std::span<const Cycle> own;  // of this group and thread
  const Law* law = nullptr;    // of all groups' threads in this role at this instruction
};

/// The consumer, then the producers by number.
std::vector<std::uint32_t> threads_of(const ExchangeGroup& group) {
  std::set<std::uint32_t> producers;
  auto latest = producers.end();
  for (const SeenAt& at : group.seen) {
    if (latest == producers.end() || *latest != at.seen->producer.thread.value) {
      latest = producers.insert(at.seen->producer.thread.value).first;
    }
  }
  std::vector<std::uint32_t> threads{group.consumer};
  threads.insert(threads.end(), producers.begin(), producers.end());
  return threads;
}

class Counter {
 public:
  Counter(const CountInputs& in, std::span<const ExchangeGroup> groups);

  [[nodiscard]] Figure count(std::size_t group) const;

 private:
  [[nodiscard]] const profile::ThreadRow* row(std::uint32_t thread) const {
    return thread < in_.threads.size() ? &in_.threads[thread] : nullptr;
  }
  using Role = std::pair<std::uint64_t, bool>;  // ip, consumes
  struct Own {                                  // cycles of a group's thread at an instruction
    std::uint32_t thread = 0;
    std::uint64_t ip = 0;
    std::size_t first = 0, cycles = 0;  // among those of its law
  };
  [[nodiscard]] std::vector<Clockwork> clockworks_of(std::size_t group) const;
  [[nodiscard]] Figure by_counter(const ExchangeGroup& group, const Clockwork& work) const;
  [[nodiscard]] Figure by_clock(const ExchangeGroup& group, std::uint32_t thread, const ExchangeClock& clock,
                                const std::optional<Advance>& way) const;
  [[nodiscard]] const std::optional<Advance>& way(const Clockwork& work, const ExchangeClock& clock) const;
  [[nodiscard]] Figure by_time(const ExchangeGroup& group, const Clockwork& work) const;
  [[nodiscard]] Figure by_either(const ExchangeGroup& group, const Clockwork& work) const;
  [[nodiscard]] bool exchanges_all_along(const ExchangeGroup& group, const Clockwork& work) const;

  const CountInputs& in_;
  std::span<const ExchangeGroup> groups_;
  const TrapIndex& traps_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> watches_of_;  // by the thread that opened them
  std::vector<std::vector<Own>> own_;                               // by group: its consumer's, then its producers'
  std::map<Role, Law> laws_;
  using Reading = std::tuple<std::uint32_t, std::uint64_t, std::size_t, std::int64_t>;  // thread, ip, word, step
  mutable std::map<Reading, std::optional<Advance>> ways_;
};

Counter::Counter(const CountInputs& in, std::span<const ExchangeGroup> groups)
    : in_(in), groups_(groups), traps_(in.traps) {
  for (std::uint32_t w = 0; w < in.watches.size(); ++w) {
    watches_of_[in.watches[w].thread.value].push_back(w);
  }
  using OfThreads = std::vector<std::pair<std::uint32_t, CyclesByIp>>;
  std::vector<OfThreads> found(groups.size());
  concurrently_for_each(groups.size(), [&](std::size_t i) {
    const GroupExchanges exchanges(groups[i], in.timelines);
    for (const std::uint32_t thread : threads_of(groups[i])) {
      found[i].emplace_back(thread, cycles_of(exchanges, thread, traps_, in.watches));
    }
  });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<Own>& own = own_.emplace_back();
    for (auto& [thread, by_ip] : std::exchange(found[i], {})) {
      for (auto& [ip, followed] : by_ip) {
        const std::size_t cycles = followed.cycles.size();
        own.push_back({thread, ip, laws_[{ip, thread == groups[i].consumer}].add(std::move(followed)), cycles});
      }
    }
  }
  std::vector<Law*> laws;
  for (auto& [role, law] : laws_) {
    laws.push_back(&law);
  }
  concurrently_for_each(laws.size(), [&](std::size_t i) { laws[i]->settle(); });
}

/// The consumer's first, then those with the most cycles.
std::vector<Clockwork> Counter::clockworks_of(std::size_t group) const {
  std::vector<Clockwork> works;
  for (const Own& own : own_[group]) {
    const bool consumes = own.thread == groups_[group].consumer;
    const Law& law = laws_.at({own.ip, consumes});
    if (own.cycles > 0) {
      works.push_back({own.thread, own.ip, consumes, std::span(law.all.cycles).subspan(own.first, own.cycles), &law});
    }
  }
  std::stable_sort(works.begin(), works.end(), [](const Clockwork& a, const Clockwork& b) {
    return std::pair(!a.consumes, b.own.size()) < std::pair(!b.consumes, a.own.size());
  });
  return works;
}

/// True if the group exchanges all the time. Cycles are seen only during exchanges: watches of the same lines that saw
/// none for as long as several cycles show that exchanges come and go, while a counter continues.
bool Counter::exchanges_all_along(const ExchangeGroup& group, const Clockwork& work) const {
  const double least_ns = long_enough * work.law->usual_ns;
  const auto found = watches_of_.find(group.consumer);
  double lasted = 0;
  double exchanging = 0;
  for (const std::uint32_t w :
       found != watches_of_.end() ? std::span(found->second) : std::span<const std::uint32_t>()) {
    const profile::WatchRow& watch = in_.watches[w];
    if (!group.lines.holds(watch.line) || watch.close_ns < watch.time_ns) {
      continue;
    }
    const auto& communications = in_.timelines[w].communications;
    const bool any = std::any_of(communications.begin(), communications.end(),
                                 [](const SeenCommunication& seen) { return !seen.expected(); });
    if (any || static_cast<double>(watch.close_ns - watch.time_ns) >= least_ns) {
      lasted += 1;
      exchanging += any ? 1 : 0;
    }
  }
  return lasted < least_long_watches || exchanging >= least_exchanging * lasted;
}

/// The advance of a counter, found once: groups of one thread often share it.
const std::optional<Advance>& Counter::way(const Clockwork& work, const ExchangeClock& clock) const {
  const auto [it, fresh] = ways_.try_emplace({work.thread, work.ip, clock.word, clock.step});
  if (fresh) {
    const std::vector<Standing> own = traps_.standings(work.thread, work.ip);
    const std::vector<std::vector<Standing>> elsewhere = traps_.elsewhere(work.thread, work.ip);
    const std::vector<std::span<const Standing>> others(elsewhere.begin(), elsewhere.end());
    it->second = advance_of(clock, with_agreeing(clock, own, others));
  }
  return it->second;
}

/// Steps of a counter before its first reading.
struct Before {
  double steps = 0, error = 0;
  double ns = 0;  // of the span
};

/// If a counter counts up from 0, its first value gives the earlier steps; a random value would hardly be as small.
/// These steps went with exchanges if samples show that the group has exchanged since the thread began. With hardly any
/// samples they may or may not have.
Before before(const Advance& way, const Span& span, const profile::ThreadRow* thread) {
  const bool from_zero = way.before >= 0 && way.before <= way.steps;
  if (!from_zero || thread == nullptr || thread->begin_ns > span.begin_ns) {
    return {};
  }
  const auto silent_ns = static_cast<double>(span.begin_ns - thread->begin_ns);
  const double ns = static_cast<double>(way.begin_ns - span.begin_ns) + span.before_ns;
  if (silent_ns <= longest_silence * span.usual_ns) {
    return {way.before, 0, ns};
  }
  return span.sampled ? Before{} : Before{way.before / 2, way.before / 2, ns};
}

Figure Counter::by_clock(const ExchangeGroup& group, std::uint32_t thread, const ExchangeClock& clock,
                         const std::optional<Advance>& way) const {
  if (!way || way->end_ns <= way->begin_ns || !(way->steps > 0)) {
    return unknown("the program's counter that advances with each exchange was read only once");
  }
  const Span span = span_of(group, row(group.consumer), way->begin_ns, way->end_ns);
  const double seen_ns = static_cast<double>(way->end_ns - way->begin_ns) - way->lost_ns;
  const Before early = before(*way, span, row(thread));
  const double unseen_ns = span.length_ns() - early.ns - seen_ns;
  if (std::abs(clock.exchanges / clock.usual - 1) > most_odd) {
    return unknown("no counter of the program advances by the same step at nearly each exchange");
  }
  if (unseen_ns > most_unseen * seen_ns) {
    return unknown("the program's counter that advances with each exchange was read in too small a part of the time");
  }
  // Readings of another variable in between would add a false advance with each return to the counter.
  if (way->lost_ns > 0 && std::abs(way->steps - way->net) > most_detour * way->steps) {
    return unknown("the program's counter that advances with each exchange restarts, or is not always a counter");
  }
  if (way->widest > most_in_one_gap && way->widest > 2 * way->widest_time) {
    return unknown("the program's counter that advances with each exchange jumps");
  }
  const double unseen = way->steps * unseen_ns / seen_ns;
  const double steps = early.steps + way->steps + unseen;
  // The unseen steps may be none, or twice as many, and more if the counter advances unevenly.
  const double margin = way->steps / seen_ns * (span.after_ns + (early.ns > 0 ? 0 : span.before_ns)) / 2;
  const double missed =
      std::hypot(unseen + margin, early.error, z95 * std::sqrt(way->unevenness * std::max(unseen_ns, 0.0)));
  const double irregular =
      wilson_upper(static_cast<double>(clock.cycles - clock.alike), static_cast<double>(clock.cycles));
  // An odd cycle may be the program's, or an exchange that was missed while watchpoints were moved. The mean fits the
  // first case, the usual value the second.
  const double between = (clock.usual + clock.exchanges) / 2;
  const double off = std::abs(clock.usual - clock.exchanges) / 2 / between;
  return {steps * between, std::hypot(irregular + off, missed / steps), ""};
}

/// Rejects all counters if their counts differ. A word that counts a thread's waiting may advance regularly only while
/// it is watched.
Figure Counter::by_counter(const ExchangeGroup& group, const Clockwork& work) const {
  Figure first =
      unknown("no counter in registers or on the stack goes on by the same step from one exchange to the next");
  bool any = false;
  std::optional<Figure> found;
  for (const ExchangeClock& clock : work.law->clocks) {
    if (!is_alike(clock, least_alike)) {
      continue;
    }
    Figure figure = by_clock(group, work.thread, clock, way(work, clock));
    if (!figure.unknown.empty()) {
      first = any ? first : figure;
      any = true;
    } else if (!found) {
      found = figure;
    } else if (std::abs(figure.value - found->value) > most_disagreement * found->value) {
      return unknown("counters that go on with the exchanges while they are watched disagree");
    }
  }
  if (!found) {
    return first;
  }
  for (const ExchangeClock& witness : work.law->clocks) {
    const auto& steps = way(work, witness);
    if (steps && steps->lost_ns == 0 &&
        std::abs(steps->steps * witness.usual - found->value) > most_contradiction * found->value) {
      return unknown("counters that go on with the exchanges while they are watched disagree");
    }
  }
  return *found;
}

/// If an exchange takes far longer than its traps, time advances it nearly as if it were not watched.
Figure Counter::by_time(const ExchangeGroup& group, const Clockwork& work) const {
  const double traps_ns = traps_a_cycle * in_.trap_cost_ns;
  const double usual_ns = work.law->usual_ns;
  if (work.own.size() < least_cycles || !(traps_ns > 0) || usual_ns < least_slowness * traps_ns) {
    return unknown("exchanges are no slower than traps, and no counter goes on with them");
  }
  std::uint64_t horizon_ns = 0;
  for (const std::uint32_t w : group.watches) {
    horizon_ns = std::max(horizon_ns, in_.watches[w].horizon_ns);
  }
  if (usual_ns * least_quickness > static_cast<double>(horizon_ns)) {
    return unknown("exchanges are too slow to be followed from one to the next");
  }
  const auto own_ns = [traps_ns](const Cycle& cycle) { return static_cast<double>(cycle.length_ns()) - traps_ns; };
  double ns = 0;
  double exchanges = 0;
  for (const Cycle& cycle : work.own) {
    ns += own_ns(cycle);
    exchanges += cycle.exchanges;
  }
  if (!(ns > 0) || !(exchanges > 0)) {
    return unknown("no exchange was followed to the next");
  }
  const double rate = exchanges / ns;
  double squares = 0;
  for (const Cycle& cycle : work.own) {
    squares += std::pow(cycle.exchanges - rate * own_ns(cycle), 2);
  }
  const auto n = static_cast<double>(work.own.size());
  const double spread = z95 * std::sqrt(squares * n / (n - 1)) / exchanges;
  const Span span =
      span_of(group, row(group.consumer), work.own.front().begin().time_ns(), work.own.back().end().time_ns());
  // The delay by a trap is known only to about its own length.
  return {rate * span.length_ns(),
          std::hypot(spread, (span.before_ns + span.after_ns) / span.length_ns()) + traps_ns * n / ns, ""};
}

Figure Counter::by_either(const ExchangeGroup& group, const Clockwork& work) const {
  if (!exchanges_all_along(group, work)) {
    return unknown("the lines are exchanged at times only");
  }
  Figure figure = by_counter(group, work);
  if (!figure.unknown.empty()) {
    Figure slow = by_time(group, work);
    return slow.unknown.empty() ? slow : figure;
  }
  return figure;
}

Figure Counter::count(std::size_t index) const {
  const ExchangeGroup& group = groups_[index];
  if (!group.lines.even) {
    return unknown("how many lines are exchanged cannot be told from those that were sampled");
  }
  Figure best = unknown("too few exchanges were followed from one to the next; at least " +
                        std::to_string(least_cycles) + " are needed");
  bool any = false;
  for (const Clockwork& work : clockworks_of(index)) {
    if (work.law->all.cycles.size() < least_cycles) {
      continue;
    }
    Figure figure = by_either(group, work);
    if (figure.unknown.empty()) {
      const double error = std::hypot(figure.error, group.lines.error);
      return error <= most_count_error ? Figure{figure.value * group.lines.lines, error, ""} : unknown(too_little_seen);
    }
    best = any ? best : figure;
    any = true;
  }
  return best;
}

}  // namespace

void CountTable::make_places(std::span<const OwnershipTimeline> timelines) {
  timelines_ = timelines;
  begins_.clear();
  std::size_t all = 0;
  for (const OwnershipTimeline& timeline : timelines) {
    begins_.push_back(static_cast<std::uint32_t>(all));
    all += timeline.communications.size();
  }
  places_.assign(all, Place{});
}

std::size_t CountTable::index_of(std::uint32_t watch, const SeenCommunication* seen) const {
  if (watch >= timelines_.size()) {
    return SIZE_MAX;
  }
  const auto& communications = timelines_[watch].communications;
  const bool is_own = std::less_equal<>()(communications.data(), seen) &&
                      std::less<>()(seen, communications.data() + communications.size());
  return is_own ? begins_[watch] + static_cast<std::size_t>(seen - communications.data()) : SIZE_MAX;
}

void CountTable::put(std::uint32_t watch, const SeenCommunication* seen, Place place) {
  if (const std::size_t index = index_of(watch, seen); index != SIZE_MAX) {
    places_[index] = place;
  }
}

CountTable::Place CountTable::place(std::uint32_t watch, const SeenCommunication* seen) const {
  const std::size_t index = index_of(watch, seen);
  return index != SIZE_MAX ? places_[index] : Place{};
}

CountTable count_communications(const CountInputs& inputs) {
  const std::vector<ExchangeGroup> groups = exchange_groups(inputs.watches, inputs.timelines, inputs.samples);
  const Counter counter(inputs, groups);
  CountTable table;
  table.make_places(inputs.timelines);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ExchangeGroup& group = groups[i];
    Figure figure = counter.count(i);
    CountGroup row;
    if (figure.unknown.empty()) {
      row.count = figure.value;
      row.error = figure.error;
    }
    row.unknown = std::move(figure.unknown);
    row.all_lines = group.lines.lines;
    std::map<std::uint64_t, std::uint32_t> index;
    for (const auto& [address, line] : counted_lines(group)) {
      index.emplace(address, static_cast<std::uint32_t>(row.lines.size()));
      row.lines.push_back(line);
    }
    auto latest = index.end();
    for (const SeenAt& at : group.seen) {
      if (latest == index.end() || latest->first != at.seen->consumer.line) {
        latest = index.find(at.seen->consumer.line);
      }
      table.put(at.watch, at.seen, {static_cast<std::uint32_t>(table.groups.size()), latest->second});
    }
    table.groups.push_back(std::move(row));
  }
  return table;
}

}  // namespace crosstalk::attribution
