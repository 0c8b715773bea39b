// SPDX-License-Identifier: Apache-2.0
#include "attribution/overview.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "attribution/samples/brief_threads.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_share_of_a_warning = 0.05;  // of samples or time; less is not worth a warning

std::string clock_name(profile::ClockKind clock, const std::string& source) {
  switch (clock) {
    case profile::ClockKind::posix:
      return "posix-cpu-timer";
    case profile::ClockKind::perf:
      return "perf-task-clock";
    case profile::ClockKind::automatic:
      break;
  }
  return source;
}

std::string unit_name(profile::WeightUnit unit) {
  switch (unit) {
    case profile::WeightUnit::accesses:
      return "accesses";
    case profile::WeightUnit::micro_ops:
      return "micro_ops";
    case profile::WeightUnit::cycles:
      return "cycles";
    case profile::WeightUnit::occurrences:
      return "occurrences";
    case profile::WeightUnit::ns:
      break;
  }
  return "ns";
}

std::string exact_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

/// Adds named events first, also those without samples: nothing was seen of them.
void add_measured(const SampleCounts& counts, std::vector<SamplingSummary::Event>& result) {
  const std::size_t first = result.size();
  for (const profile::EventRow& row : counts.events) {
    result.push_back(
        {row.name, row.period, unit_name(row.unit), 0, profile::name_of(row.source), row.least_latency_cycles});
  }
  for (const auto& [kind, samples] : counts.measured) {
    const auto& [event, source, unit] = kind;
    if (event.value != 0 && event.value <= counts.events.size()) {
      result[first + event.value - 1].samples += samples;
    } else {
      result.push_back({profile::name_of(source), 0, unit_name(unit), samples, profile::name_of(source)});
    }
  }
}

std::vector<SamplingSummary::Event> events_of(const profile::Session& session,
                                              std::span<const profile::ThreadRow> threads,
                                              std::span<const ThreadTotal> totals, const SampleCounts& counts) {
  std::map<std::string, SamplingSummary::Event> events;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i].samples == totals[i].measured) {
      continue;
    }
    SamplingSummary::Event& event = events[clock_name(threads[i].clock, session.source)];
    event.samples += totals[i].samples - totals[i].measured;
    // Governed threads may have stretched their period; the shortest in use is the one requested and achieved.
    const std::uint64_t period = threads[i].period_us != 0 ? std::uint64_t{threads[i].period_us} * 1000 : 0;
    event.period = event.period == 0 || (period != 0 && period < event.period) ? period : event.period;
  }
  std::vector<SamplingSummary::Event> result;
  for (auto& [name, event] : events) {
    event.name = name;
    event.unit = "ns";
    event.source = "clock";
    event.period = event.period != 0 ? event.period : session.config.period_ns;
    result.push_back(event);
  }
  add_measured(counts, result);
  return result;
}

/// The remedy if functions that stand in for others take most of the cost of observation. `left_out`: small heap blocks
/// were, without --heap-threshold.
const char* remedy_for_stand_ins(const profile::Session& session, const SamplingSummary& sampling, bool left_out) {
  constexpr std::uint64_t advised_threshold = 4096;
  if (sampling.stand_ins_s <= sampling.handlers_s + sampling.switches_s) {
    return "";
  }
  if (session.config.measure_waits != 0) {
    return ", most of it in wrappers of functions, probably those of locks and conditions; record without --waits";
  }
  return left_out || session.config.heap_threshold >= advised_threshold
             ? ", most of it in wrappers of malloc() and other functions: a few nanoseconds a call, also for small "
               "blocks, which are not listed"
             : ", most of it in keeping a list of heap blocks: --heap-threshold 4096 leaves small ones unnamed and "
               "costs less";
}

void warn_of_recording(const profile::Session& session, const SamplingSummary& sampling, bool left_out,
                       std::vector<Warning>& out) {
  if (!session.complete) {
    out.push_back({"incomplete_profile",
                   "the recorder did not end in an orderly way: what happened after its last write is missing"});
  }
  if (sampling.lost > 0) {
    out.push_back({"lost_samples", count_of(sampling.lost, "record was", "records were") +
                                       " lost because a ring was full: the recorder got too little CPU time; "
                                       "record with a longer --period"});
  }
  // Without a sample it was the start of the library: the program was too short, which is said elsewhere.
  if (sampling.overhead_fraction && session.config.budget > 0 && sampling.samples > 0 &&
      *sampling.overhead_fraction > session.config.budget * 1.1) {
    out.push_back({"over_budget", "observing took " + exact_percent(*sampling.overhead_fraction) +
                                      " of the threads' CPU time, more than the budget of " +
                                      exact_percent(session.config.budget) +
                                      remedy_for_stand_ins(session, sampling, left_out)});
  }
}

constexpr std::string_view blocks_left_out = "small_blocks_unnamed";
constexpr std::string_view records_lost = "records_lost";

/// The message with the largest block size. Each process reports each time that it leaves out larger blocks than
/// before, so the largest one covers all. Null: none.
const profile::MessageRow* most_left_out(std::span<const profile::MessageRow> messages) {
  const auto bytes = [](const profile::MessageRow& message) {  // the first number of the text
    const std::size_t at = message.text.find_first_of("0123456789");
    return at == std::string::npos ? 0 : std::strtoull(message.text.c_str() + at, nullptr, 10);
  };
  const profile::MessageRow* widest = nullptr;
  for (const profile::MessageRow& message : messages) {
    if (message.code == blocks_left_out && (widest == nullptr || bytes(message) > bytes(*widest))) {
      widest = &message;
    }
  }
  return widest;
}

/// Warns if the machine, or the container's share of it, had more threads to run than processors.
void warn_of_waits(const profile::Session& session, std::vector<Warning>& out) {
  constexpr double much = 0.2;
  constexpr double least_s = 0.05;
  const profile::ProcessorWaits& waits = session.waits;
  const double waited_s = static_cast<double>(waits.waited_ns) / ns_per_s;
  const double ready_s = waited_s + static_cast<double>(waits.ran_ns) / ns_per_s;
  if (waits.threads == 0 || waited_s < least_s || waited_s < much * ready_s) {
    return;
  }
  out.push_back(
      {"overloaded", "threads waited for a processor " + exact_percent(waited_s / ready_s) +
                         " of the time in which they could have run. All figures are CPU time, which excludes "
                         "that wait"});
}

/// Warns in one line for all files: a recording of another machine names dozens that are missing here.
void warn_of_missing_symbols(std::span<const symbolizer::Symbolizer::Missing> all, std::vector<Warning>& out) {
  constexpr std::size_t few = 3;
  std::vector<std::string> absent;
  for (const auto& missing : all) {
    if (missing.no_file && !missing.path.empty() && !is_collector(missing.path)) {
      absent.push_back(missing.path);
    }
  }
  for (const auto& missing : all) {
    if (!is_collector(missing.path) && (absent.size() <= few || !missing.no_file || missing.path.empty())) {
      out.push_back({"missing_symbols", (missing.path.empty() ? "[vdso]" : missing.path) + ": " + missing.why});
    }
  }
  if (absent.size() <= few) {
    return;
  }
  std::string names;
  for (std::size_t i = 0; i < few; ++i) {
    names += (i == 0 ? "" : ", ") + absent[i];
  }
  out.push_back({"missing_symbols", std::to_string(absent.size()) +
                                        " program files are missing here or differ from the recorded ones (" + names +
                                        " and " + std::to_string(absent.size() - few) +
                                        " more), so their functions have no names. Name their folder with --sysroot "
                                        "DIR, or report on the recorded machine"});
}

void warn_of_defects(const Defects& defects, const SamplingSummary& sampling, std::vector<Warning>& out) {
  if (defects.malformed_samples > 0) {
    out.push_back({"malformed_samples", count_of(defects.malformed_samples, "sample names", "samples name") +
                                            " a thread that the profile does not know; left out"});
  }
  if (defects.trap_gaps > 0) {
    out.push_back({"lost_traps", "traps are missing at " + count_of(defects.trap_gaps, "place", "places") +
                                     ": communication across them is not counted"});
  }
  if (defects.ignored_traps > 0) {
    out.push_back({"ignored_traps", count_of(defects.ignored_traps, "trap was", "traps were") +
                                        " repeated, stale or damaged; left out"});
  }
  if (defects.unwatched_share > least_share_of_a_warning) {
    out.push_back({"unwatched_samples", exact_percent(defects.unwatched_share) +
                                            " of the time that could have been watched is in threads or kinds of "
                                            "accesses that were never watched. No figure has their communication"});
  }
  if (sampling.unknown_frames && *sampling.unknown_frames > least_share_of_a_warning) {
    out.push_back({"unknown_frames", exact_percent(*sampling.unknown_frames) +
                                         " of the samples are in functions whose names are not known"});
  }
  warn_of_missing_symbols(defects.missing_symbols, out);
}

bool is_outside(const profile::ThreadRow& thread, std::span<const profile::ProcessRow> processes) {
  return thread.process.value < processes.size() &&
         processes[thread.process.value].observation == profile::Observation::outside;
}

}  // namespace

std::vector<ThreadSummary> thread_summaries(std::span<const profile::ThreadRow> threads,
                                            std::span<const profile::ProcessRow> processes,
                                            std::span<const ThreadTotal> totals, const Matrix* cells,
                                            double duration_s) {
  std::vector<ThreadSummary> result;
  result.reserve(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const profile::ThreadRow& row = threads[i];
    ThreadSummary summary;
    summary.index = static_cast<std::uint32_t>(i);
    summary.pid = row.process.value < processes.size() ? processes[row.process.value].pid : 0;
    summary.process = row.process;
    summary.tid = row.tid;
    summary.name = row.name;
    const ThreadTotal total = i < totals.size() ? totals[i] : ThreadTotal{};
    summary.samples = total.samples;
    summary.brief = is_brief(row);
    if (summary.brief) {
      summary.cpu_s = static_cast<double>(row.cpu_ns) / ns_per_s;
    } else if (row.cpu_ns != 0 || total.ns > 0) {
      summary.cpu_s = std::max(static_cast<double>(row.cpu_ns), total.ns) / ns_per_s;
    }
    if (summary.cpu_s && is_outside(row, processes)) {
      // A few samples stand for all that a thread ran between two windows of its clock, which may be too much.
      summary.cpu_s = std::min(*summary.cpu_s, duration_s);
    }
    summary.kernel_share = total.ns > 0 ? std::optional(total.kernel_ns / total.ns) : std::nullopt;
    result.push_back(std::move(summary));
  }
  if (cells == nullptr) {
    return result;
  }
  for (ThreadSummary& summary : result) {
    summary.communication_s = summary.samples != 0 ? std::optional(0.0) : std::nullopt;
  }
  for (const Cell& cell : *cells) {
    if (cell.consumer < result.size()) {
      result[cell.consumer].communication_s = result[cell.consumer].communication_s.value_or(0) + cell.cost();
    }
  }
  return result;
}

SamplingSummary sampling_summary(const profile::Session& session, std::span<const profile::ThreadRow> threads,
                                 std::span<const ThreadTotal> totals, const SampleCounts& counts) {
  SamplingSummary summary;
  summary.source = session.source;
  summary.source_choice = session.source_choice;
  summary.method = profile::name_of(session.config.method);
  summary.method_choice = session.method_choice;
  summary.partner = session.config.method == profile::Method::watch ? profile::name_of(session.config.partner) : "";
  summary.samples = counts.samples;
  summary.with_address = counts.with_address;
  summary.user_mode = counts.user_mode;
  summary.armed = counts.watches;
  summary.traps = counts.traps;
  summary.unknown_frames = counts.unknown_frames;
  summary.memory_bytes = session.memory_bytes;
  summary.events = events_of(session, threads, totals, counts);
  if (profile::is_imported(session)) {
    summary.settings_unknown =
        "imported from a recording of perf, which has settings of its own and does not say what it took";
  }
  double cpu_ns = 0;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    summary.lost += threads[i].lost;
    summary.handlers_s += static_cast<double>(threads[i].handlers_ns) / ns_per_s;
    summary.switches_s += static_cast<double>(threads[i].switches_ns) / ns_per_s;
    const double sampled_ns = i < totals.size() ? totals[i].ns : 0;
    cpu_ns += static_cast<double>(profile::cpu_time_ns(threads[i], static_cast<std::uint64_t>(sampled_ns)));
  }
  if (cpu_ns > 0 && summary.settings_unknown.empty()) {
    summary.overhead_fraction = (summary.handlers_s + summary.switches_s) * ns_per_s / cpu_ns;
  }
  return summary;
}

void charge_stand_ins(double stand_ins_s, double cpu_s, SamplingSummary& sampling) {
  sampling.stand_ins_s = stand_ins_s;
  if (cpu_s > 0 && sampling.overhead_fraction) {
    *sampling.overhead_fraction += stand_ins_s / cpu_s;
  }
}

std::vector<Warning> warnings_of(const profile::Session& session, std::span<const profile::MessageRow> messages,
                                 const SamplingSummary& sampling, const Communication& communication,
                                 const Defects& defects) {
  std::vector<Warning> result;
  const profile::MessageRow* const widest = most_left_out(messages);
  for (const profile::MessageRow& message : messages) {
    if (message.code == blocks_left_out && &message != widest) {
      continue;
    }
    if (message.code == records_lost && message.count <= sampling.lost) {
      continue;  // warn_of_recording() says it
    }
    // Some messages state their number themselves.
    const std::string count = std::to_string(message.count);
    const bool said = message.count < 2 || message.text.starts_with(count + " ");
    result.push_back({message.code, said ? message.text : message.text + " (" + count + " times)"});
  }
  warn_of_recording(session, sampling, widest != nullptr, result);
  warn_of_waits(session, result);
  const bool counted = std::any_of(communication.cells.begin(), communication.cells.end(), [](const Cell& cell) {
    return cell.true_sharing.count || cell.false_sharing.count;
  });
  if (!communication.cells.empty() && !counted && session.source == "clock") {
    result.push_back(
        {"no_counts_without_pmu",
         "the cost of communication is known, the number of communications is not: samples of a clock tell it "
         "for regular exchanges only; count_unknown in the JSON report has the reason"});
  }
  warn_of_defects(defects, sampling, result);
  return result;
}

}  // namespace crosstalk::attribution
