// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>

#include "attribution/objects/program_view.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_objects = 5;
constexpr double least_share = 0.005;  // of all CPU time, for an object to be worth a sentence
constexpr std::uint64_t few_detections = 10;
constexpr std::uint64_t few_samples = 100;
constexpr std::uint64_t few_watches = 20;
constexpr double line_bytes = 64;

std::string number(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string percent(double share) {
  const double p = std::clamp(share, 0.0, 1.0) * 100;
  return p > 0 && p < 1 ? "less than 1 %" : number(p, "%.0f %%");
}

std::string seconds(double s) { return s < 0.9995 ? number(s * 1000, "%.3g ms") : number(s, "%.3g s"); }

const char* kind_name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::global:
      return "global";
    case ObjectKind::heap:
      return "heap";
    case ObjectKind::stack:
      return "stack";
    case ObjectKind::tls:
      return "thread-local";
    case ObjectKind::shared:
      return "shared";
    case ObjectKind::unknown:
      break;
  }
  return "";
}

struct Exchange {
  std::set<std::uint32_t> threads, producers, consumers;
  double true_cost = 0, false_cost = 0, true_detections = 0, false_detections = 0;
  std::uint64_t seen = 0;
  [[nodiscard]] double false_share() const {
    const double cost = true_cost + false_cost;
    const double all = true_detections + false_detections;
    return cost > 0 ? false_cost / cost : all > 0 ? false_detections / all : 0;
  }
};

Exchange exchange_of(const Matrix& cells) {
  Exchange e;
  for (const Cell& cell : cells) {
    e.producers.insert(cell.producer);
    e.consumers.insert(cell.consumer);
    e.threads.insert({cell.producer, cell.consumer});
    e.true_cost += cell.true_sharing.cost_s.value_or(0);
    e.false_cost += cell.false_sharing.cost_s.value_or(0);
    e.true_detections += cell.true_sharing.detections;
    e.false_detections += cell.false_sharing.detections;
    e.seen += cell.true_sharing.seen + cell.false_sharing.seen;
  }
  return e;
}

/// "Threads 0 and 1 exchange", "Thread 0 passes to thread 1", "4 threads (0, 1, 2, 3) exchange".
std::string who(const Exchange& e) {
  if (e.producers.size() == 1 && e.consumers.size() == 1) {
    return "Thread " + std::to_string(*e.producers.begin()) + " passes to thread " +
           std::to_string(*e.consumers.begin());
  }
  if (e.threads.size() == 2) {
    return "Threads " + std::to_string(*e.threads.begin()) + " and " + std::to_string(*e.threads.rbegin()) +
           " exchange";
  }
  constexpr std::size_t listed = 4;
  std::string list;
  std::size_t n = 0;
  for (const std::uint32_t thread : e.threads) {
    if (n++ < listed) {
      list += (list.empty() ? "" : ", ") + std::to_string(thread);
    }
  }
  list += e.threads.size() > listed ? ", ..." : "";
  return std::to_string(e.threads.size()) + " threads (" + list + ") exchange";
}

std::string what(const ObjectRow& object) {
  std::string name = object.name;
  if (!object.field.empty()) {
    name += (object.field.front() == '[' ? "" : ".") + object.field;
  }
  std::string about = kind_name(object.kind);
  if (object.size) {
    about += (about.empty() ? "" : ", ") + std::to_string(*object.size) + " bytes";
  }
  const bool one = object.size && static_cast<double>(*object.size) <= line_bytes;
  return std::string(one ? "the cache line" : "cache lines") + " of `" + name + "`" +
         (about.empty() ? "" : " (" + about + ")");
}

double cpu_of(const Analysis& analysis, const std::set<std::uint32_t>& threads) {
  double sum = 0;
  for (const ThreadSummary& thread : analysis.threads) {
    if (threads.contains(thread.index)) {
      sum += thread.cpu_s.value_or(0);
    }
  }
  return sum;
}

/// A function's name for a sentence: long template arguments and parameters are left out.
std::string in_short(const std::string& function) {
  constexpr std::size_t longest = 60;
  if (function.size() <= longest) {
    return call_name(function);
  }
  std::string text;
  std::size_t depth = 0;
  char opener = 0;
  for (const char c : function) {
    const bool opens = c == '<' || c == '(';
    const bool closes = c == '>' || c == ')';
    if (opens && depth++ == 0) {
      opener = c;
      text += c;
    } else if (closes && depth > 0 && --depth == 0) {
      text += opener == '<' ? "...>" : ")";
    } else if (depth == 0) {
      text += c;
    }
  }
  return call_name(text);
}

std::string at(const std::string& function, const std::string& file, std::uint32_t line) {
  std::string text = in_short(function);
  if (!file.empty() && line != 0) {
    text += (text.empty() ? "" : " at ") + base_name(file) + ":" + std::to_string(line);
  }
  return text;
}

/// " (worker() at a.cpp:30)": where the costliest exchange of the object is consumed, and produced if elsewhere.
std::string where(const Analysis& analysis, const std::string& object) {
  for (const LinePair& pair : analysis.communication.line_pairs) {
    if (pair.object != object) {
      continue;
    }
    const std::string consumer = at(pair.consumer_function, pair.consumer_file, pair.consumer_line);
    const std::string producer = at(pair.producer_function, pair.producer_file, pair.producer_line);
    if (consumer.empty()) {
      return {};
    }
    if (consumer == producer || producer.empty()) {
      return " (" + consumer + ")";
    }
    return std::string(" (stored by ").append(producer).append(", accessed by ").append(consumer).append(")");
  }
  return {};
}

std::string sharing(double false_share) {
  if (false_share >= 0.995) {
    return "all of it false sharing";
  }
  return false_share <= 0.005 ? "all of it true sharing" : percent(false_share) + " false sharing";
}

std::string advice(const Exchange& e, const ObjectRow& object) {
  constexpr double mostly = 0.5;
  if (e.false_share() > mostly) {
    return object.kind == ObjectKind::stack || object.kind == ObjectKind::unknown
               ? "Keep what different threads use at least 64 bytes apart."
               : "Give each thread's part its own 64-byte line.";
  }
  if (e.producers.size() == 1 && !e.consumers.empty() && !e.consumers.contains(*e.producers.begin())) {
    return "Store to it less often, or only when its value changes.";
  }
  return "The data itself is shared: update it less often, in batches, or in a copy per thread.";
}

Finding object_finding(const Analysis& analysis, const ObjectRow& object) {
  const Exchange e = exchange_of(object.cells);
  std::string text = who(e) + " " + what(object) + ": " + sharing(e.false_share());
  const double cpu = cpu_of(analysis, e.threads);
  if (object.cost_s > 0) {
    const std::string amount = cpu > 0 ? percent(object.cost_s / cpu) + " of their time" : seconds(object.cost_s);
    text += (amount.starts_with("less") ? ", costs " : ", costs about ") + amount;
  }
  text += where(analysis, object.name) + ". " + advice(e, object);
  if (e.seen < few_detections) {
    text += " This rests on " + std::to_string(e.seen) + (e.seen == 1 ? " sighting" : " sightings") +
            " only: record for longer to be sure.";
  }
  return {text, object.cost_s};
}

/// Where the time goes; empty without samples.
std::string hottest(const Analysis& analysis) {
  if (!analysis.loops.empty()) {
    const LoopRow& loop = analysis.loops.front();
    std::string place = in_short(loop.function);
    if (!loop.file.empty() && loop.line_begin != 0) {
      place += " at " + base_name(loop.file) + ":" + std::to_string(loop.line_begin);
      place += loop.line_end > loop.line_begin ? "-" + std::to_string(loop.line_end) : "";
    }
    return "The hottest loop, in " + (place.empty() ? base_name(loop.module) : place) + ", takes " +
           percent(loop.share) + " of the CPU time.";
  }
  if (!analysis.functions.empty()) {
    const FunctionRow& function = analysis.functions.front();
    const std::string place =
        in_short(function.function) + (function.module.empty() ? "" : " of " + base_name(function.module));
    return "The hottest function, " + place + ", takes " + percent(function.share) + " of the CPU time.";
  }
  return {};
}

/// The part of the CPU time that nothing here can explain; empty where it is small.
std::string in_the_kernel(const Analysis& analysis) {
  constexpr double worth_saying = 0.3;
  double kernel_s = 0;
  for (const ThreadSummary& thread : analysis.threads) {
    kernel_s += thread.kernel_share * thread.cpu_s.value_or(0);
  }
  const double share = analysis.cpu_s > 0 ? kernel_s / analysis.cpu_s : 0;
  return share < worth_saying ? std::string()
                              : "The kernel takes " + percent(share) +
                                    " of the CPU time, in system calls, page faults and switches: no data address is "
                                    "known there.";
}

std::string count_of(std::uint64_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

/// No communication was seen: say what that rests on.
std::string nothing_seen(const Analysis& analysis) {
  const SamplingSummary& s = analysis.sampling;
  if (s.samples == 0) {
    return "No samples were taken, so nothing can be said.";
  }
  const auto running = std::count_if(analysis.threads.begin(), analysis.threads.end(),
                                     [](const ThreadSummary& thread) { return thread.samples > 0; });
  if (running < 2) {
    return "Only one thread used CPU time, so there is no communication between threads (" +
           count_of(s.samples, "sample", "samples") + ").";
  }
  if (s.armed == 0) {
    return "No line was watched in " + count_of(s.samples, "sample", "samples") +
           ", so nothing can be said about communication.";
  }
  std::string text = "No communication between threads was seen in " + count_of(s.samples, "sample", "samples") +
                     " and " + count_of(s.armed, "watched line", "watched lines") + ".";
  if (s.samples < few_samples || s.armed < few_watches) {
    text += " That is too little to rule it out: record for longer.";
  }
  return text;
}

}  // namespace

std::vector<Finding> findings_of(const Analysis& analysis) {
  std::vector<Finding> findings;
  for (const ObjectRow& object : analysis.communication.objects) {
    const bool worth = findings.empty() || object.cost_s >= least_share * analysis.cpu_s;
    if (worth && findings.size() < max_objects && !object.cells.empty()) {
      findings.push_back(object_finding(analysis, object));
    }
  }
  if (findings.empty()) {
    findings.push_back({nothing_seen(analysis), 0});
  }
  for (const std::string& text : {in_the_kernel(analysis), hottest(analysis)}) {
    if (!text.empty()) {
      findings.push_back({text, 0});
    }
  }
  return findings;
}

}  // namespace crosstalk::attribution
