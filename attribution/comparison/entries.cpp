// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/entries.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

constexpr char separator = '\x1f';  // within keys: no real name contains it

std::string key_of(const Place& place) {
  return place.file + separator + std::to_string(place.line) + separator + place.function;
}

Place in(const PlaceMap* places, const Place& place) { return places == nullptr ? place : places->in_after(place); }

/// Limits the figure to the program's CPU time.
Figure limited(Figure figure, double most) {
  if (figure.ci95 && most > 0) {
    figure.ci95 = Interval{std::clamp(figure.ci95->low, 0.0, most), std::clamp(figure.ci95->high, 0.0, most)};
  }
  if (figure.value && most > 0) {
    figure.value = std::min(*figure.value, most);
  }
  return figure;
}

Figure counted(const Amount& amount) { return {amount.count, amount.count ? amount.count_ci95 : std::nullopt}; }

void add(Costs& to, const Costs& costs, double cpu_s) {
  to.cost = limited(sum_of(to.cost, costs.cost), cpu_s);
  to.gain = limited(sum_of(to.gain, costs.gain), to.cost.ci95 ? std::min(cpu_s, to.cost.ci95->high) : cpu_s);
  to.count = sum_of(to.count, costs.count);
  to.seen += costs.seen;
}

void add(Entries& entries, const std::string& key, Entry entry, double cpu_s) {
  entry.heaviest_s = entry.costs.cost.value.value_or(0);
  const auto [at, fresh] = entries.try_emplace(key, entry);
  if (fresh) {
    return;
  }
  Entry& into = at->second;
  Costs sum = into.costs;
  add(sum, entry.costs, cpu_s);
  if (entry.heaviest_s > into.heaviest_s) {
    into = std::move(entry);
  }
  into.costs = sum;
}

std::uint64_t seen_in(const Matrix& cells) {
  std::uint64_t seen = 0;
  for (const Cell& cell : cells) {
    seen += cell.true_sharing.seen + cell.false_sharing.seen;
  }
  return seen;
}

/// Finds the places with the object's costliest exchange.
void find_ends(const Analysis& analysis, const std::string& object, Subject& subject) {
  for (const LinePair& pair : analysis.communication.line_pairs) {
    if (pair.object == object) {
      subject.producer_at = {pair.producer_file, pair.producer_line, pair.producer_function};
      subject.consumer_at = {pair.consumer_file, pair.consumer_line, pair.consumer_function};
      return;
    }
  }
}

/// The name of an allocation site if the object is one. Each run separates its blocks differently, so they are compared
/// together.
const std::string& name_of(const ObjectRow& object) { return object.site.empty() ? object.name : object.site; }

/// Removes numbers, because lines, elements and threads are renumbered when the program changes.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !text.ends_with('#')) {
      text += digit ? '#' : c;
    }
  }
  return text;
}

/// Entries without a counterpart so far.
class Unpaired {
 public:
  explicit Unpaired(const Entries& entries) {
    for (const auto& [key, entry] : entries) {
      left_.insert(&entry);
    }
  }
  [[nodiscard]] const std::set<const Entry*>& left() const { return left_; }
  void take(const Entry* entry) { left_.erase(entry); }
  /// Groups them by key; leaves out entries with an empty one.
  [[nodiscard]] std::map<std::string, std::vector<const Entry*>> by(
      const std::function<std::string(const Entry&)>& key) const {
    std::map<std::string, std::vector<const Entry*>> found;
    for (const Entry* entry : left_) {
      if (std::string name = key(*entry); !name.empty()) {
        found[std::move(name)].push_back(entry);
      }
    }
    return found;
  }

 private:
  std::set<const Entry*> left_;
};

/// Pairs entries whose key is unique on both sides.
void pair_alone(Unpaired& before, Unpaired& after, const std::function<std::string(const Entry&)>& key,
                std::vector<Pairing>& pairs) {
  const auto candidates = after.by(key);
  for (const auto& [name, entries] : before.by(key)) {
    const auto found = candidates.find(name);
    if (entries.size() == 1 && found != candidates.end() && found->second.size() == 1) {
      pairs.push_back({entries.front(), found->second.front()});
      before.take(entries.front());
      after.take(found->second.front());
    }
  }
}

std::string group_of(const Analysis& analysis, const std::set<std::string>& programs, std::uint32_t thread) {
  const auto found = std::find_if(analysis.threads.begin(), analysis.threads.end(),
                                  [thread](const ThreadSummary& t) { return t.index == thread; });
  if (found == analysis.threads.end() || found->name.empty() || programs.contains(found->name)) {
    return program_threads;
  }
  return without_number(found->name);
}

}  // namespace

std::string without_number(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string::npos) {
    return name;
  }
  const std::size_t end = name.find_last_not_of("0123456789-_#:/. ");
  return last + 1 == name.size() || end == std::string::npos ? name : name.substr(0, end + 1);
}

CodeSeen code_seen(const Analysis& analysis) {
  CodeSeen seen;
  const auto add = [&](const std::string& file, std::uint32_t line, const std::string& function) {
    if (line != 0) {
      seen.lines.push_back({file, line, function});
    }
  };
  for (const LinePair& pair : analysis.communication.line_pairs) {
    add(pair.producer_file, pair.producer_line, pair.producer_function);
    add(pair.consumer_file, pair.consumer_line, pair.consumer_function);
  }
  for (const CodeLineRow& line : analysis.code_lines) {
    add(line.file, line.line, line.function);
  }
  for (const LoopRow& loop : analysis.loops) {
    seen.loops.push_back({{loop.file, loop.line_begin, loop.function}, loop.line_end, loop.depth});
  }
  for (const ObjectRow& object : analysis.communication.objects) {
    if (!object.allocation_path.empty()) {
      const symbolizer::Frame& frame = object.allocation_path.front();
      add(frame.source.file, frame.source.line, frame.function);
    }
  }
  return seen;
}

Costs costs_of(const Amount& true_sharing, const Amount& false_sharing, double cpu_s) {
  Costs costs;
  costs.seen = true_sharing.seen + false_sharing.seen;
  if (true_sharing.count || false_sharing.count) {
    const bool of_true = true_sharing.count || true_sharing.seen > 0;
    const bool of_false = false_sharing.count || false_sharing.seen > 0;
    costs.count = !of_false  ? counted(true_sharing)
                  : !of_true ? counted(false_sharing)
                             : sum_of(counted(true_sharing), counted(false_sharing));
  }
  if (!true_sharing.cost_s && !false_sharing.cost_s) {
    return costs;
  }
  const Sum sum = attribution::sum_of(true_sharing, false_sharing);
  costs.cost = limited({sum.cost_s, sum.cost_ci95}, cpu_s);
  costs.gain = limited({sum.gain_s, sum.gain_ci95}, cpu_s);
  return costs;
}

Costs unseen_costs(const Analysis& analysis) {
  const auto& unseen = analysis.communication.unseen;
  const auto& undetected_s = analysis.communication.undetected.at_most_s;
  Costs costs;
  if (unseen || undetected_s) {
    const double unseen_s = unseen ? unseen->cost.true_s + unseen->cost.false_s : 0;
    const double most = std::min(analysis.cpu_s, std::max(unseen_s, undetected_s.value_or(0)));
    costs.cost = {unseen ? std::optional(0.0) : std::nullopt, Interval{0, most}};
    costs.gain = costs.cost;
  }
  return costs;
}

Entries line_entries(const Analysis& analysis, const PlaceMap* places) {
  std::map<std::string, std::string> names;
  for (const ObjectRow& object : analysis.communication.objects) {
    names[object.name] = name_of(object);
  }
  Entries entries;
  for (const LinePair& pair : analysis.communication.line_pairs) {
    Entry entry;
    const auto name = names.find(pair.object);
    entry.subject.name = name == names.end() ? pair.object : name->second;
    entry.subject.producer_at = {pair.producer_file, pair.producer_line, pair.producer_function};
    entry.subject.consumer_at = {pair.consumer_file, pair.consumer_line, pair.consumer_function};
    entry.costs = costs_of(pair.true_sharing, pair.false_sharing, analysis.cpu_s);
    entry.costs.seen = seen_in(pair.cells);
    const std::string key =
        key_of(in(places, entry.subject.producer_at)) + separator + key_of(in(places, entry.subject.consumer_at));
    add(entries, key, std::move(entry), analysis.cpu_s);
  }
  return entries;
}

Entries object_entries(const Analysis& analysis, const PlaceMap* places) {
  Entries entries;
  for (const ObjectRow& object : analysis.communication.objects) {
    Entry entry;
    entry.kind = object.kind;
    entry.subject.name = name_of(object);
    entry.subject.sharing = object.sharing.kind;
    find_ends(analysis, object.name, entry.subject);
    entry.costs = costs_of(object.true_sharing, object.false_sharing, analysis.cpu_s);
    entry.costs.seen = seen_in(object.cells);
    if (!object.allocation_path.empty()) {
      const symbolizer::Frame& frame = object.allocation_path.front();
      entry.allocated = in(places, {frame.source.file, frame.source.line, frame.function});
    }
    // Addresses are valid for one run only.
    const bool nameless = object.kind == ObjectKind::unknown;
    if (nameless) {
      entry.subject.name = "memory that has no name";
    }
    const std::string key =
        std::to_string(static_cast<int>(object.kind)) + separator + (nameless ? "" : entry.subject.name);
    add(entries, key, std::move(entry), analysis.cpu_s);
  }
  return entries;
}

Entries thread_entries(const Analysis& analysis) {
  constexpr std::size_t kernel_keeps = 15;  // characters of a name
  std::set<std::string> programs;
  for (const profile::ProcessRow& process : analysis.processes) {
    programs.insert(base_name(process.executable).substr(0, kernel_keeps));
    programs.insert(program_name(process).substr(0, kernel_keeps));
  }
  Entries entries;
  for (const Cell& cell : analysis.communication.cells) {
    Entry entry;
    entry.subject.producer = group_of(analysis, programs, cell.producer);
    entry.subject.name = group_of(analysis, programs, cell.consumer);
    entry.costs = costs_of(cell.true_sharing, cell.false_sharing, analysis.cpu_s);
    add(entries, entry.subject.producer + separator + entry.subject.name, entry, analysis.cpu_s);
  }
  return entries;
}

std::vector<Pairing> pair_by_key(const Entries& before, const Entries& after) {
  std::vector<Pairing> pairs;
  for (const auto& [key, entry] : before) {
    const auto found = after.find(key);
    pairs.push_back({&entry, found == after.end() ? nullptr : &found->second});
  }
  for (const auto& [key, entry] : after) {
    if (!before.contains(key)) {
      pairs.push_back({nullptr, &entry});
    }
  }
  return pairs;
}

std::vector<Pairing> pair_objects(const Entries& before, const Entries& after) {
  std::vector<Pairing> pairs;
  Unpaired was(before);
  Unpaired is(after);
  for (const Pairing& pair : pair_by_key(before, after)) {
    if (pair.before != nullptr && pair.after != nullptr) {
      pairs.push_back(pair);
      was.take(pair.before);
      is.take(pair.after);
    }
  }
  pair_alone(
      was, is, [](const Entry& e) { return e.allocated.function.empty() ? "" : key_of(e.allocated); }, pairs);
  pair_alone(
      was, is,
      [](const Entry& e) { return std::to_string(static_cast<int>(e.kind)) + without_numbers(e.subject.name); }, pairs);
  for (const Entry* entry : was.left()) {
    pairs.push_back({entry, nullptr});
  }
  for (const Entry* entry : is.left()) {
    pairs.push_back({nullptr, entry});
  }
  return pairs;
}

}  // namespace crosstalk::attribution::comparison
