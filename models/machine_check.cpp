// SPDX-License-Identifier: Apache-2.0
// Checks that a machine's figures are plausible and belong to this machine.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <tuple>

#include "models/machine.h"

namespace crosstalk::models {
namespace {

/// Plausible values, with some orders of magnitude to spare on each side.
struct Limits {
  double least, most;
};
constexpr Limits rate_limits = {1e5, 1e18};
constexpr Limits time_limits = {1e-12, 1e-2};
constexpr Limits frequency_limits = {1e7, 1e11};
constexpr Limits per_cycle_limits = {1e-6, 100};
constexpr Limits buffer_limits = {1, 1e5};
/// A figure this many times above the manual's promise was not measured on such a processor.
constexpr double most_of_theory = 2;

tl::unexpected<Error> nonsense(const std::string& field, const std::string& what) {
  return fail(ErrorCode::corrupt, field + ": " + what);
}

template <class... Keys>
std::string row(std::string_view table, Keys... keys) {
  std::string text(table);
  text += '[';
  const char* between = "";
  ((text += between, text += name(keys), between = ", "), ...);
  return text + ']';
}

bool within(double value, Limits limits) {  // false for a NaN
  return value >= limits.least && value <= limits.most;
}

Result<void> check_numbers(const std::string& field, const Figure& figure, Limits limits) {
  if (figure.value && !within(*figure.value, limits)) {
    return nonsense(field + ".value", "no machine has " + std::to_string(*figure.value));
  }
  if (figure.theoretical && !within(*figure.theoretical, limits)) {
    return nonsense(field + ".theoretical", "no machine has " + std::to_string(*figure.theoretical));
  }
  if (!(figure.spread >= 0) || !std::isfinite(figure.spread)) {
    return nonsense(field + ".spread", "it is a part of the best value, 0 or more");
  }
  if (figure.disturbed > figure.tries) {
    return nonsense(field + ".disturbed", "no more tries can have been disturbed than were made");
  }
  if (figure.tries > 0 && !within(figure.median, limits)) {
    return nonsense(field + ".median", "no machine has " + std::to_string(figure.median));
  }
  return {};
}

Result<void> check(const std::string& field, const Figure& figure, Limits limits) {
  if (auto numbers = check_numbers(field, figure, limits); !numbers) {
    return numbers;
  }
  if (figure.value.has_value() == !figure.refused.empty()) {
    return nonsense(field, "it needs either a value or the reason why it was refused");
  }
  if (figure.value && figure.tries == 0) {
    return nonsense(field + ".tries", "a value comes of one try at least");
  }
  if (figure.value && figure.theoretical && limits.least == rate_limits.least &&
      *figure.value > most_of_theory * *figure.theoretical) {
    return nonsense(field + ".value", "it is more than " + std::to_string(static_cast<int>(most_of_theory)) +
                                          " times what the processor can do in theory");
  }
  return {};
}

template <class... Keys>
std::string numbered_row(std::string_view table, std::uint32_t number, Keys... keys) {
  std::string text = row(table, keys...);
  text.insert(text.size() - 1, ", " + std::to_string(number));
  return text;
}

std::string name_of(const AccessRate& a) { return numbered_row("accesses", a.threads, a.level, a.width, a.mix); }
std::string name_of(const ThreadFlops& f) {
  return numbered_row("thread_flops", f.threads, f.width, f.precision, f.operation);
}
std::string name_of(const FlopLatency& f) { return row("flop_latencies", f.width, f.precision, f.operation); }
std::string name_of(const IntegerPeak& i) { return row("integers", i.width, i.element, i.operation, i.scope); }
std::string name_of(const KindLimits& k) { return row("kinds", k.kind); }
std::string name_of(const GroupRate& g) { return numbered_row("groups", g.fillers, g.level, g.width); }
std::string name_of(const RidgeRate& r) { return row("ridges", r.level, r.width, r.kind); }
std::string name_of(const SparseRoof& s) { return row("sparse_roofs", s.matrix, s.vector, s.scope); }
std::string name_of(const SparseBand& s) { return numbered_row("sparse_bands", s.row_nonzeros, s.matrix, s.scope); }

std::string pair_name(const ProcessorPair& p) {
  return "pairs[" + std::to_string(p.a) + ", " + std::to_string(p.b) + "]";
}

template <class AnyMachine, class Visit>
void visit_rooflines(AnyMachine& m, const Visit& visit) {
  for (auto& a : m.accesses) {
    visit(name_of(a), a.bytes_per_s, rate_limits);
  }
  for (auto& f : m.thread_flops) {
    visit(name_of(f), f.flops_per_s, rate_limits);
  }
  for (auto& f : m.flop_latencies) {
    visit(name_of(f), f.seconds, time_limits);
  }
  for (auto& i : m.integers) {
    visit(name_of(i), i.per_s, rate_limits);
  }
  for (auto& k : m.kinds) {
    visit(name_of(k) + ".per_cycle", k.per_cycle, per_cycle_limits);
    visit(name_of(k) + ".buffer", k.buffer, buffer_limits);
  }
  for (auto& g : m.groups) {
    visit(name_of(g), g.per_cycle, per_cycle_limits);
  }
  for (auto& r : m.ridges) {
    visit(name_of(r), r.per_cycle, per_cycle_limits);
  }
  for (auto& s : m.sparse_roofs) {
    visit(name_of(s), s.bytes_per_s, rate_limits);
  }
  for (auto& s : m.sparse_bands) {
    visit(name_of(s) + ".worst", s.worst, rate_limits);
    visit(name_of(s) + ".best", s.best, rate_limits);
  }
}

/// Calls `visit(field, figure, limits)` for every figure, with its name in the file.
template <class AnyMachine, class Visit>
void visit_figures(AnyMachine& m, const Visit& visit) {
  visit("frequency.one_core_hz", m.frequency.one_core_hz, frequency_limits);
  visit("frequency.all_cores_hz", m.frequency.all_cores_hz, frequency_limits);
  visit("frequency.after_avx2_hz", m.frequency.after_avx2_hz, frequency_limits);
  visit("frequency.after_avx512_hz", m.frequency.after_avx512_hz, frequency_limits);
  for (auto& f : m.flops) {
    visit(row("flops", f.width, f.precision, f.operation, f.scope), f.flops_per_s, rate_limits);
  }
  for (auto& b : m.bandwidths) {
    visit(row("bandwidths", b.level, b.traffic, b.scope), b.bytes_per_s, rate_limits);
  }
  for (auto& l : m.latencies) {
    visit(row("latencies", l.level), l.seconds, time_limits);
  }
  for (auto& r : m.instructions) {
    visit(row("instructions", r.instruction), r.per_s, rate_limits);
  }
  for (auto& c : m.chains) {
    visit(row("chains", c.chain), c.seconds, time_limits);
  }
  for (auto& p : m.pairs) {
    visit(pair_name(p) + ".transfer", p.transfer_s, time_limits);
    visit(pair_name(p) + ".contended_add", p.contended_add_s, time_limits);
  }
  visit_rooflines(m, visit);
}

Result<void> check_figures(const Machine& m) {
  Result<void> checked;
  visit_figures(m, [&checked](const std::string& field, const Figure& figure, Limits limits) {
    if (checked) {
      checked = check(field, figure, limits);
    }
  });
  return checked;
}

/// Checks that no two rows have one key. `key` returns a row's key, `text` its name.
template <class Row, class Key, class Text>
Result<void> check_once(const std::vector<Row>& rows, Key key, Text text) {
  std::set<decltype(key(rows.front()))> seen;
  for (const Row& each : rows) {
    if (!seen.insert(key(each)).second) {
      return nonsense(text(each), "it is given twice");
    }
  }
  return {};
}

Result<void> check_rows(const Machine& m) {
  auto checked = check_once(
      m.flops, [](const FlopPeak& f) { return std::tuple(f.width, f.precision, f.operation, f.scope); },
      [](const FlopPeak& f) { return row("flops", f.width, f.precision, f.operation, f.scope); });
  if (checked) {
    checked = check_once(
        m.bandwidths, [](const Bandwidth& b) { return std::tuple(b.level, b.traffic, b.scope); },
        [](const Bandwidth& b) { return row("bandwidths", b.level, b.traffic, b.scope); });
  }
  if (checked) {
    checked = check_once(
        m.latencies, [](const LoadLatency& l) { return l.level; },
        [](const LoadLatency& l) { return row("latencies", l.level); });
  }
  if (checked) {
    checked = check_once(
        m.instructions, [](const InstructionRate& r) { return r.instruction; },
        [](const InstructionRate& r) { return row("instructions", r.instruction); });
  }
  if (checked) {
    checked = check_once(
        m.chains, [](const ChainTime& c) { return c.chain; },
        [](const ChainTime& c) { return row("chains", c.chain); });
  }
  return checked ? check_once(
                       m.pairs, [](const ProcessorPair& p) { return std::pair(p.a, p.b); }, pair_name)
                 : checked;
}

/// The same for rows whose names are their keys.
template <class Row>
Result<void> check_named_once(const std::vector<Row>& rows) {
  const auto name_of_row = [](const Row& row) { return name_of(row); };
  return check_once(rows, name_of_row, name_of_row);
}

/// Checks a number of threads, columns or rows, which a figure is of.
template <class Row>
Result<void> check_numbers_of(const std::vector<Row>& rows, std::uint32_t Row::*number, std::uint32_t least,
                              std::uint32_t most) {
  for (const Row& each : rows) {
    if (each.*number < least || each.*number > most) {
      return nonsense(name_of(each), std::to_string(each.*number) + " is not from " + std::to_string(least) + " to " +
                                         std::to_string(most));
    }
  }
  return {};
}

Result<void> check_rooflines(const Machine& m) {
  constexpr std::uint32_t most_fillers = 4096, most_side = std::uint32_t{1} << 28;
  const auto processors = static_cast<std::uint32_t>(m.processors.size());
  Result<void> first;
  for (const Result<void>& checked :
       {check_named_once(m.accesses), check_named_once(m.thread_flops), check_named_once(m.flop_latencies),
        check_named_once(m.integers), check_named_once(m.kinds), check_named_once(m.groups), check_named_once(m.ridges),
        check_named_once(m.sparse_roofs), check_named_once(m.sparse_bands),
        check_numbers_of(m.accesses, &AccessRate::threads, 1, processors),
        check_numbers_of(m.thread_flops, &ThreadFlops::threads, 1, processors),
        check_numbers_of(m.groups, &GroupRate::fillers, 0, most_fillers),
        check_numbers_of(m.ridges, &RidgeRate::fillers, 0, most_fillers),
        check_numbers_of(m.sparse_roofs, &SparseRoof::columns, 1, most_side),
        check_numbers_of(m.sparse_bands, &SparseBand::row_nonzeros, 1, most_side),
        check_numbers_of(m.sparse_bands, &SparseBand::columns, 1, most_side),
        check_numbers_of(m.sparse_bands, &SparseBand::rows, 1, most_side)}) {
    first = first ? checked : first;
  }
  return first;
}

Result<void> check_pairs(const Machine& m) {
  std::set<std::uint32_t> known;
  for (const Processor& processor : m.processors) {
    known.insert(processor.cpu);
  }
  for (const ProcessorPair& pair : m.pairs) {
    if (pair.a >= pair.b || !known.contains(pair.a) || !known.contains(pair.b)) {
      return nonsense(pair_name(pair), "it needs two of the machine's processors, the lower number first");
    }
  }
  return {};
}

Result<void> check_topology(const Machine& m) {
  if (m.processors.empty()) {
    return nonsense("processors", "a machine has one at least");
  }
  for (std::size_t i = 1; i < m.processors.size(); ++i) {
    if (m.processors[i].cpu <= m.processors[i - 1].cpu) {
      return nonsense("processors", "their numbers must ascend");
    }
  }
  for (const Cache& cache : m.caches) {
    const std::string field = "caches[level " + std::to_string(cache.level) + "]";
    if (cache.level < 1 || cache.level > 3) {
      return nonsense(field, "levels are 1 to 3");
    }
    if (cache.bytes < 1024 || cache.bytes > (std::uint64_t{1} << 40)) {
      return nonsense(field + ".bytes", "no cache has " + std::to_string(cache.bytes));
    }
    if (cache.line_bytes < 16 || cache.line_bytes > 4096 || (cache.line_bytes & (cache.line_bytes - 1)) != 0) {
      return nonsense(field + ".line_bytes", "no line has " + std::to_string(cache.line_bytes));
    }
  }
  for (std::uint32_t level = 2; level <= 3; ++level) {
    const Cache* const closer = m.cache_of(level - 1);
    const Cache* const cache = m.cache_of(level);
    if (closer != nullptr && cache != nullptr && cache->bytes < closer->bytes) {
      return nonsense("caches[level " + std::to_string(level) + "].bytes", "it is smaller than the level before");
    }
  }
  return {};
}

Result<void> check_frequency(const Frequency& f) {
  for (const auto& [field, hz] :
       {std::pair("frequency.tsc_hz", f.tsc_hz), std::pair("frequency.nominal_max_hz", f.nominal_max_hz)}) {
    if (hz && !within(*hz, frequency_limits)) {
      return nonsense(field, "no processor has " + std::to_string(*hz));
    }
  }
  return {};
}

std::optional<double> value(const Figure* figure) { return figure != nullptr ? figure->value : std::nullopt; }

constexpr double bandwidth_tolerance = 0.5;

/// Checks relations that hold on every machine, within the errors of a disturbed measurement.
Result<void> check_relations(const Machine& m) {
  const auto l1 = value(m.latency_of(Level::l1d));
  for (const Level level : {Level::l2, Level::l3, Level::memory}) {
    const auto farther = value(m.latency_of(level));
    if (l1 && farther && *farther < *l1) {
      return nonsense(row("latencies", level), "it is shorter than that of the first level");
    }
  }
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    const auto near = value(m.peak_bandwidth(Level::l1d, scope));
    const auto far = value(m.bandwidth_of(Level::memory, Traffic::load, scope));
    if (near && far && *far * bandwidth_tolerance > *near) {
      return nonsense(row("bandwidths", Level::memory, Traffic::load, scope),
                      "it is more than that of the first level");
    }
  }
  return {};
}

void refuse(Figure& figure, const std::string& reason, Limits limits) {
  Figure kept;
  kept.method = figure.method;
  kept.refused = reason;
  if (figure.theoretical && within(*figure.theoretical, limits)) {
    kept.theoretical = figure.theoretical;
  }
  figure = kept;
}

void refuse_slower_first_level(Machine& m) {
  const auto l1 = value(m.latency_of(Level::l1d));
  for (LoadLatency& far : m.latencies) {
    if (l1 && far.level != Level::l1d && far.seconds.value && *far.seconds.value < *l1) {
      const auto near = std::find_if(m.latencies.begin(), m.latencies.end(),
                                     [](const LoadLatency& l) { return l.level == Level::l1d; });
      refuse(near->seconds, "it is longer than that of " + std::string(name(far.level)) + ": the machine is too busy",
             time_limits);
      break;
    }
  }
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    const auto near = value(m.peak_bandwidth(Level::l1d, scope));
    const auto far = value(m.bandwidth_of(Level::memory, Traffic::load, scope));
    for (Bandwidth& row : m.bandwidths) {
      if (near && far && *far * bandwidth_tolerance > *near && row.level == Level::l1d && row.scope == scope) {
        refuse(row.bytes_per_s, "it is less than that of memory: the machine is too busy", rate_limits);
      }
    }
  }
}

std::string said(const std::string& text) { return "'" + text + "'"; }
std::string said(std::uint64_t number) { return std::to_string(number); }
std::string said(bool yes) { return yes ? "true" : "false"; }

/// "identity.name is 'A', and this machine's is 'B'"; empty: they agree.
template <class T>
std::string difference(const char* field, const T& theirs, const T& ours) {
  return theirs == ours ? "" : std::string(field) + " is " + said(theirs) + ", and this machine's is " + said(ours);
}

std::string cache_difference(const Machine& file, const Machine& here) {
  for (std::uint32_t level = 1; level <= 3; ++level) {
    const Cache* const theirs = file.cache_of(level);
    const Cache* const ours = here.cache_of(level);
    const std::string field = "caches[level " + std::to_string(level) + "].bytes";
    const auto bytes = [](const Cache* cache) { return cache != nullptr ? cache->bytes : 0; };
    if (bytes(theirs) != bytes(ours)) {
      return difference(field.c_str(), bytes(theirs), bytes(ours));
    }
  }
  return file.caches == here.caches ? "" : "caches differ from this machine's in who shares them";
}

std::string first_difference(const Machine& file, const Machine& here) {
  const Identity& theirs = file.identity;
  const Identity& ours = here.identity;
  const auto count = [](const Machine& m) { return static_cast<std::uint64_t>(m.processors.size()); };
  for (const std::string& text : {difference("identity.vendor", theirs.vendor, ours.vendor),
                                  difference<std::uint64_t>("identity.family", theirs.family, ours.family),
                                  difference<std::uint64_t>("identity.model", theirs.model, ours.model),
                                  difference<std::uint64_t>("identity.stepping", theirs.stepping, ours.stepping),
                                  difference("identity.name", theirs.name, ours.name),
                                  difference("identity.virtual_machine", theirs.virtual_machine, ours.virtual_machine),
                                  difference<std::uint64_t>("the number of processors", count(file), count(here))}) {
    if (!text.empty()) {
      return text;
    }
  }
  if (file.processors != here.processors) {
    return "processors differ from this machine's in number, core, package or node";
  }
  return cache_difference(file, here);
}

}  // namespace

Result<void> validate(const Machine& machine) {
  auto checked = check_topology(machine);
  if (checked) {
    checked = check_frequency(machine.frequency);
  }
  if (checked) {
    checked = check_rows(machine);
  }
  if (checked) {
    checked = check_rooflines(machine);
  }
  if (checked) {
    checked = check_pairs(machine);
  }
  if (checked) {
    checked = check_figures(machine);
  }
  return checked ? check_relations(machine) : checked;
}

std::size_t count_refused(const Machine& machine) {
  std::size_t count = 0;
  visit_figures(
      machine, [&count](const std::string&, const Figure& figure, Limits) { count += figure.refused.empty() ? 0 : 1; });
  return count;
}

bool lacks_figures(const Machine& machine) {
  return machine.accesses.empty() || machine.flop_latencies.empty() || machine.integers.empty() ||
         machine.kinds.empty() || machine.groups.empty() || machine.ridges.empty() || machine.sparse_roofs.empty() ||
         machine.sparse_bands.empty();
}

void refuse_nonsense(Machine& machine) {
  for (std::optional<double>* const hz : {&machine.frequency.tsc_hz, &machine.frequency.nominal_max_hz}) {
    if (*hz && !within(**hz, frequency_limits)) {
      hz->reset();
    }
  }
  visit_figures(machine, [](const std::string& field, Figure& figure, Limits limits) {
    if (const auto checked = check(field, figure, limits); !checked) {
      refuse(figure, checked.error().message, limits);
    }
  });
  refuse_slower_first_level(machine);
}

Result<void> check_same_machine(const Machine& file, const Machine& here) {
  const std::string text = first_difference(file, here);
  if (!text.empty()) {
    return fail(ErrorCode::unsupported, "these are figures of another machine: " + text);
  }
  return {};
}

}  // namespace crosstalk::models
