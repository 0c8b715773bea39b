// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/metrics.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace crosstalk::service {
namespace {

using Json = nlohmann::json;
using Label = std::pair<const char*, std::string>;

// Fields of a report. Absent and null ones, and those of another type, count as unknown.
const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}
double number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}
/// A number that is added to a counter, which must not fall.
double amount(const Json& object, const char* key) { return std::max(0.0, number(object, key)); }
std::int64_t index_in(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : -1;
}
std::string text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}
const Json& list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const Json& value = member(object, key);
  return value.is_array() ? value : none;
}

CommunicationSeconds seconds_in(const Json& row) {
  const Json& interval = list(row, "gain_ci95");
  const double gain = amount(row, "gain_s");
  const bool has_limit = interval.size() == 2 && interval[1].is_number();
  return {amount(row, "cost_s"), gain, std::max(gain, has_limit ? interval[1].get<double>() : 0)};
}

void add_to(CommunicationSeconds& sum, const CommunicationSeconds& more) {
  sum.cost += more.cost;
  sum.gain += more.gain;
  sum.gain_limit += more.gain_limit;
}
void add_to(double& sum, double more) { sum += more; }

void read_communication(const Json& report, IntervalFigures& figures) {
  const Json& communication = member(report, "communication");
  const Json& totals = member(communication, "totals");
  for (const char* const kind : {"true_sharing", "false_sharing"}) {
    const Json& row = member(totals, kind);
    figures.communication_known = figures.communication_known || member(row, "cost_s").is_number();
    add_to(figures.all, seconds_in(row));
  }
  std::map<std::int64_t, std::string> names;
  for (const Json& thread : list(report, "threads")) {
    names[index_in(thread, "index")] = text(thread, "name");
  }
  for (const Json& cell : list(communication, "cells")) {
    const auto name = [&](const char* key) { return names[index_in(cell, key)]; };
    CommunicationSeconds& pair = figures.pairs[{name("producer"), name("consumer")}];
    for (const char* const kind : {"true", "false"}) {
      add_to(pair, seconds_in(member(cell, kind)));
    }
  }
  for (const Json& object : list(report, "objects")) {
    add_to(figures.objects[text(object, "name")], seconds_in(object));
  }
}

template <class Key, class Value, class Amount>
void merge(const std::map<Key, Value>& from, std::map<Key, Value>& into, std::size_t rows, const Key& other,
           Amount amount) {
  std::vector<std::pair<Key, Value>> ordered(from.begin(), from.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const auto& a, const auto& b) { return amount(a.second) > amount(b.second); });
  for (const auto& [key, value] : ordered) {
    const bool has_own = into.contains(key) || into.size() < rows + (into.contains(other) ? 1U : 0U);
    add_to(into[has_own ? key : other], value);
  }
}

/// A metric family's text.
class Family {
 public:
  Family(std::string name, const char* type, const char* unit, const char* help, std::string& out)
      : name_(std::move(name)), suffix_(suffix_of(type)), out_(out) {
    out_ += "# TYPE " + name_ + " " + type + "\n";
    if (*unit != 0) {
      out_ += "# UNIT " + name_ + " " + unit + "\n";
    }
    out_ += "# HELP " + name_ + " " + help + "\n";
  }
  void put(const std::vector<Label>& labels, double value) {
    out_ += name_ + suffix_;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      out_ += (i == 0 ? "{" : ",") + std::string(labels[i].first) + "=\"" + escaped(labels[i].second) + "\"";
    }
    out_ += (labels.empty() ? " " : "} ") + fmt::format("{}", value) + "\n";
  }

 private:
  static const char* suffix_of(std::string_view type) {
    return type == "counter" ? "_total" : type == "info" ? "_info" : "";
  }
  static std::string escaped(const std::string& label) {
    std::string result;
    for (const char c : label) {
      if (c == '\\' || c == '"') {
        result += '\\';
      }
      result += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return result;
  }

  std::string name_, suffix_;
  std::string& out_;
};

}  // namespace

Result<IntervalFigures> figures_of(const std::string& json) {
  const Json report = Json::parse(json, nullptr, false);
  if (!text(report, "schema").starts_with("crosstalk.report/")) {
    return fail(ErrorCode::corrupt, "the report of an interval is no JSON of crosstalk report");
  }
  IntervalFigures figures;
  figures.recorded_s = amount(report, "duration_s");
  figures.cpu_s = amount(report, "cpu_s");
  const Json& sampling = member(report, "sampling");
  figures.overhead_s = amount(member(sampling, "overhead"), "fraction") * figures.cpu_s;
  figures.lost = static_cast<std::uint64_t>(std::min(1e15, amount(sampling, "lost")));
  figures.source = text(sampling, "source");
  figures.method = text(sampling, "method");
  read_communication(report, figures);
  for (const Json& loop : list(report, "loops")) {
    const std::string file = text(loop, "file");
    const std::string lines =
        file.empty() ? "" : fmt::format("{}:{:.0f}-{:.0f}", file, number(loop, "line_begin"), number(loop, "line_end"));
    figures.loops[{text(loop, "function"), lines}] += amount(loop, "self_s");
  }
  return figures;
}

void Metrics::add(const std::string& service, const IntervalFigures& interval) {
  Service& into = services_[service];
  IntervalFigures& sums = into.sums;
  ++into.intervals;
  into.blind += interval.communication_known ? 0 : 1;
  sums.recorded_s += interval.recorded_s;
  sums.cpu_s += interval.cpu_s;
  sums.overhead_s += interval.overhead_s;
  sums.lost += interval.lost;
  sums.source = interval.source;
  sums.method = interval.method;
  add_to(sums.all, interval.all);
  const auto cost = [](const CommunicationSeconds& row) { return row.cost; };
  const auto itself = [](double own) { return own; };
  const std::pair<std::string, std::string> others{"other", "other"};
  merge(interval.objects, sums.objects, rows_, std::string("other"), cost);
  merge(interval.pairs, sums.pairs, rows_, others, cost);
  merge(interval.loops, sums.loops, rows_, others, itself);
}

void Metrics::put_services(std::string& out) const {
  const auto put = [&](const char* name, const char* unit, const char* help, auto of) {
    Family family(name, "counter", unit, help, out);
    for (const auto& [service, figures] : services_) {
      family.put({{"service", service}}, static_cast<double>(of(figures)));
    }
  };
  put("crosstalk_intervals", "", "Intervals that were recorded and read.", [](const auto& s) { return s.intervals; });
  put("crosstalk_interval_failures", "", "Intervals without a readable profile.",
      [](const auto& s) { return s.failures; });
  put("crosstalk_blind_intervals", "", "Intervals in which communication could not be seen: its cost is unknown.",
      [](const auto& s) { return s.blind; });
  put("crosstalk_recorded_seconds", "seconds", "Time that the intervals cover.",
      [](const auto& s) { return s.sums.recorded_s; });
  put("crosstalk_cpu_seconds", "seconds", "CPU time of the threads.", [](const auto& s) { return s.sums.cpu_s; });
  put("crosstalk_overhead_seconds", "seconds", "CPU time of the threads that observing took.",
      [](const auto& s) { return s.sums.overhead_s; });
  put("crosstalk_lost_records", "", "Records that were lost to full rings.", [](const auto& s) { return s.sums.lost; });
  Family info("crosstalk_recording", "info", "", "The latest interval's source of samples and method.", out);
  for (const auto& [service, figures] : services_) {
    info.put({{"service", service}, {"source", figures.sums.source}, {"method", figures.sums.method}}, 1);
  }
}

/// `rows`: (sums) -> rows, each with labels and seconds.
template <class Rows>
void Metrics::put_communication(const std::string& stem, Rows rows, std::string& out) const {
  const auto put = [&](const char* name, const char* help, double CommunicationSeconds::*of) {
    Family family(stem + name, "counter", "seconds", help, out);
    for (const auto& [service, figures] : services_) {
      for (const auto& [labels, seconds] : rows(figures.sums)) {
        std::vector<Label> all = {{"service", service}};
        all.insert(all.end(), labels.begin(), labels.end());
        family.put(all, seconds.*of);
      }
    }
  };
  put("_cost_seconds", "Thread time in communicating accesses, as far as they were seen: blind intervals add nothing.",
      &CommunicationSeconds::cost);
  put("_gain_seconds", "The part of the cost that would be saved if the lines stayed in one cache, where known.",
      &CommunicationSeconds::gain);
  put("_gain_limit_seconds", "The upper end of the gain's 95 % interval.", &CommunicationSeconds::gain_limit);
}

void Metrics::put_rows(std::string& out) const {
  using Row = std::pair<std::vector<Label>, CommunicationSeconds>;
  const auto all = [](const IntervalFigures& sums) { return std::vector<Row>{{{}, sums.all}}; };
  const auto objects = [](const IntervalFigures& sums) {
    std::vector<Row> rows;
    for (const auto& [name, seconds] : sums.objects) {
      rows.push_back({{{"object", name}}, seconds});
    }
    return rows;
  };
  const auto pairs = [](const IntervalFigures& sums) {
    std::vector<Row> rows;
    for (const auto& [names, seconds] : sums.pairs) {
      rows.push_back({{{"producer", names.first}, {"consumer", names.second}}, seconds});
    }
    return rows;
  };
  put_communication("crosstalk_communication", all, out);
  put_communication("crosstalk_object", objects, out);
  put_communication("crosstalk_pair", pairs, out);
  Family loops("crosstalk_loop_cpu_seconds", "counter", "seconds", "CPU time of a loop's own code.", out);
  for (const auto& [service, figures] : services_) {
    for (const auto& [place, seconds] : figures.sums.loops) {
      loops.put({{"service", service}, {"function", place.first}, {"lines", place.second}}, seconds);
    }
  }
}

std::string Metrics::text(const DaemonFigures& daemon) const {
  std::string out;
  put_services(out);
  put_rows(out);
  Family watched("crosstalk_watched", "gauge", "", "1 while a recording of the service runs.", out);
  for (const auto& [service, now] : daemon.watched) {
    watched.put({{"service", service}}, now ? 1 : 0);
  }
  const auto put = [&](const char* name, const char* type, const char* unit, const char* help, auto value) {
    Family(name, type, unit, help, out).put({}, static_cast<double>(value));
  };
  put("crosstalk_sessions", "gauge", "", "Sessions of clients that run.", daemon.sessions);
  put("crosstalk_sessions_begun", "counter", "", "Sessions of clients since the start.", daemon.sessions_begun);
  put("crosstalk_refusals", "counter", "", "Requests that were refused.", daemon.refusals);
  put("crosstalk_profiles", "gauge", "", "Profiles in the state directory.", daemon.profiles);
  put("crosstalk_profile_bytes", "gauge", "bytes", "Size of the profiles.", daemon.profile_bytes);
  return out + "# EOF\n";
}

}  // namespace crosstalk::service
