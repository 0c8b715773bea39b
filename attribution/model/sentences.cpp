// SPDX-License-Identifier: Apache-2.0
#include "attribution/model/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {

std::string number(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

long whole_percent(double share) { return std::lround(std::clamp(share, 0.0, 1.0) * 100); }

const ThreadSummary* summary_of(const Analysis& analysis, std::uint32_t thread) {
  const auto found = std::find_if(analysis.threads.begin(), analysis.threads.end(),
                                  [&](const ThreadSummary& t) { return t.index == thread; });
  return found == analysis.threads.end() ? nullptr : &*found;
}

/// The name that all threads share; empty if they differ, or if it is only the program's own.
std::string common_name(const Analysis& analysis, const std::set<std::uint32_t>& threads) {
  constexpr std::size_t kernel_keeps = 15;  // characters of a name
  std::string common;
  for (const std::uint32_t thread : threads) {
    const ThreadSummary* summary = summary_of(analysis, thread);
    if (summary == nullptr || summary->name.empty() || (!common.empty() && summary->name != common)) {
      return {};
    }
    common = summary->name;
  }
  const auto is_program = [&](const profile::ProcessRow& process) {
    return base_name(process.executable).substr(0, kernel_keeps) == common ||
           program_name(process).substr(0, kernel_keeps) == common;
  };
  return std::any_of(analysis.processes.begin(), analysis.processes.end(), is_program) ? std::string() : common;
}

/// "fib() at w.js:2" of a name that a language's run time gave code that it compiled: V8's "JS:*fib /src/w.js:2:13" or
/// CPython's "py::fib:/src/w.py". Empty: it is another name.
std::string script_function(std::string_view name) {
  constexpr std::array<std::string_view, 6> tags = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "py::"};
  const auto* const tag =
      std::find_if(tags.begin(), tags.end(), [name](std::string_view each) { return name.starts_with(each); });
  if (tag == tags.end()) {
    return {};
  }
  const bool python = *tag == "py::";
  name.remove_prefix(tag->size());
  name.remove_prefix(
      !python && !name.empty() && std::string_view("*~^+").find(name.front()) != std::string_view::npos ? 1 : 0);
  const std::size_t at = name.find(python ? ':' : ' ');
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view place = name.substr(at + 1);
  if (const std::size_t column = place.rfind(':'); !python && column != std::string_view::npos) {
    place = place.substr(0, column);
  }
  const std::string function = at == 0 ? "(anonymous)" : std::string(name.substr(0, at)) + "()";
  return place.empty() ? function : function + " at " + base_name(std::string(place));
}

}  // namespace

std::string percent(double share) {
  const double p = std::clamp(share, 0.0, 1.0) * 100;
  return p > 0 && p < 1 ? "less than 1 %" : number(p, "%.0f %%");
}

std::string percent_range(const Interval& shares) {
  const long low = whole_percent(shares.low);
  const long high = whole_percent(shares.high);
  if (high == 0) {
    return shares.high > 0 ? "less than 1 %" : "0 %";
  }
  if (low == 0) {
    return "up to " + std::to_string(high) + " %";
  }
  return low == high ? "about " + std::to_string(high) + " %"
                     : std::to_string(low) + " to " + std::to_string(high) + " %";
}

std::string seconds_in_words(double s) { return s < 0.9995 ? number(s * 1000, "%.3g ms") : number(s, "%.3g s"); }

std::string size_in_words(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  if (bytes < mib) {
    return count_of(bytes, "byte", "bytes");
  }
  const bool gib = bytes >= 1024 * mib;
  const double value = static_cast<double>(bytes) / static_cast<double>(gib ? 1024 * mib : mib);
  return number(value, value == std::floor(value) ? "%.0f" : "%.1f") + (gib ? " GiB" : " MiB");
}

std::string count_of(std::uint64_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

std::string in_short(std::string function) {
  constexpr std::string_view nameless = "(anonymous namespace)::";
  constexpr std::size_t longest = 60;
  if (std::string script = script_function(function); !script.empty()) {
    return script;
  }
  for (std::size_t at = function.find(nameless); at != std::string::npos; at = function.find(nameless, at)) {
    function.erase(at, nameless.size());
  }
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

std::string place_in_words(const std::string& function, const std::string& file, std::uint32_t line) {
  const std::string text = in_short(function);
  const std::string at = source_name(file, line);
  return text + (text.empty() || at.empty() ? "" : " at ") + at;
}

std::string object_in_words(const ObjectRow& object) {
  if (object.field.empty()) {
    return object.name;
  }
  const bool index = object.field.front() == '[';
  const std::string field = (index ? "" : ".") + object.field;
  if (object.place.empty() || object.name.size() <= object.place.size()) {
    return object.name + field;
  }
  std::string type = object.name.substr(0, object.name.size() - object.place.size() - 1);
  if (const std::size_t count = type.rfind('['); index && type.ends_with(']') && count != std::string::npos) {
    type.resize(count);
  }
  return type + field + " " + object.place;
}

std::string threads_in_words(const Analysis& analysis, const std::set<std::uint32_t>& threads) {
  constexpr std::size_t listed = 4;
  const std::string name = common_name(analysis, threads);
  const std::string named = name.empty() ? "" : " (" + name + ")";
  if (threads.size() == 1) {
    return "thread " + std::to_string(*threads.begin()) + named;
  }
  if (threads.size() == 2) {
    return "threads " + std::to_string(*threads.begin()) + " and " + std::to_string(*threads.rbegin()) + named;
  }
  std::string list;
  std::size_t n = 0;
  for (const std::uint32_t thread : threads) {
    if (n++ < listed) {
      list += (list.empty() ? "" : ", ") + std::to_string(thread);
    }
  }
  return std::to_string(threads.size()) + " threads (" + list + (threads.size() > listed ? ", ..." : "") +
         (name.empty() ? "" : "; " + name) + ")";
}

namespace {

/// The number of processes that are watched from outside, if that takes most of the budget by itself and hardly any
/// line was looked at; else 0.
std::size_t processes_that_take_the_budget(const Analysis& analysis) {
  constexpr double most = 0.7;
  constexpr std::uint64_t hardly_any = 50;  // one line in so many samples
  const auto outside = static_cast<std::size_t>(std::ranges::count_if(
      analysis.processes, [](const auto& process) { return process.observation == profile::Observation::outside; }));
  const double took_s = static_cast<double>(analysis.session.recorder_cpu_ns) * 1e-9 +
                        analysis.sampling.overhead_fraction.value_or(0) * analysis.cpu_s;
  const double budget_s = analysis.session.config.budget * analysis.cpu_s;
  return analysis.sampling.armed * hardly_any < analysis.sampling.samples && took_s > most * budget_s ? outside : 0;
}

/// True if most probes from outside were given up because the thread ran on.
bool are_probes_given_up(const Analysis& analysis) {
  return analysis.session.skipped_probes.went_on > 4 * analysis.sampling.armed;
}

}  // namespace

std::string to_see_more(const Analysis& analysis) {
  if (!analysis.left_alone.empty()) {
    return "record it from outside (--observer, or -p without --inject)";
  }
  if (are_probes_given_up(analysis)) {
    return "let the recorder use the program's processors with a priority like the program's (taskset, chrt, nice)";
  }
  if (const std::size_t processes = processes_that_take_the_budget(analysis); processes != 0) {
    return "record with a higher --budget: watching " + count_of(processes, "process", "processes") +
           " from outside uses up the present one";
  }
  constexpr double usual_budget = 0.03;
  if (analysis.session.config.budget > 0 && analysis.session.config.budget < usual_budget) {
    return "record with a higher --budget, or for longer";
  }
  if (!analysis.session.exit_status) {
    return "record for longer";
  }
  const bool by_ticks = std::ranges::any_of(analysis.sampling.events, [](const SamplingSummary::Event& event) {
    return event.name == "posix-cpu-timer";  // no finer than the kernel's tick
  });
  return std::string("let the program run for longer, or record it with ") +
         (by_ticks ? "--event task-clock and " : "") + "a shorter --period";
}

std::string begun(std::string sentence) {
  if (!sentence.empty()) {
    sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  }
  return sentence;
}

}  // namespace crosstalk::attribution
