// SPDX-License-Identifier: Apache-2.0
// Threads, and facts about the recording: samples, overhead, warnings.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"
#include "collectors/pmu/source_choice.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

using attribution::Analysis;
using attribution::SamplingSummary;
using attribution::ThreadSummary;

namespace {

/// Returns the threads, busiest first; equal ones by index.
std::vector<const ThreadSummary*> by_cpu_time(const Analysis& analysis) {
  std::vector<const ThreadSummary*> threads;
  for (const ThreadSummary& thread : analysis.threads) {
    if (thread.listed) {
      threads.push_back(&thread);
    }
  }
  std::stable_sort(threads.begin(), threads.end(), [](const ThreadSummary* a, const ThreadSummary* b) {
    return a->cpu_s.value_or(-1) > b->cpu_s.value_or(-1);
  });
  return threads;
}

/// False on a narrow terminal, which has no room for samples and thread ids.
bool is_wide(const Canvas& canvas) { return canvas.width() >= 80; }
int name_columns(const Canvas& canvas) { return canvas.width() - (is_wide(canvas) ? 59 : 39); }

std::string thread_columns(const Canvas& canvas, const std::string& cpu, const std::string& communication,
                           const std::string& kernel, const std::string& samples, const std::string& tid) {
  return "  " + pad_left(cpu, 9) + "  " + pad_left(communication, 14) + "  " + pad_left(kernel, 8) + "  " +
         (is_wide(canvas) ? pad_left(samples, 8) + "  " + pad_left(tid, 8) + "  " : "");
}

/// Formats " 2 processes had the collector in them, 1 was watched from outside."; empty if all had it from their start,
/// or nothing is known.
std::string observation_text(const Analysis& analysis) {
  using profile::Observation;
  std::map<Observation, std::size_t> count;
  for (const profile::ProcessRow& process : analysis.processes) {
    ++count[process.observation];
  }
  const std::size_t usual = count[Observation::unknown] + count[Observation::preloaded];
  if (usual == analysis.processes.size()) {
    return {};
  }
  std::vector<std::string> parts;
  const auto say = [&](Observation way, const char* one, const char* many) {
    const std::size_t number = count[way];
    if (number != 0) {
      const char* const what = !parts.empty() ? "" : number > 1 ? " processes" : " process";
      parts.push_back(fmt::format("{}{} {}", number, what, number > 1 ? many : one));
    }
  };
  say(Observation::preloaded, "had the collector from its start", "had the collector from their start");
  say(Observation::injected, "had the collector brought in", "had the collector brought in");
  say(Observation::outside, "was watched from outside", "were watched from outside");
  say(Observation::none, "was not observed", "were not observed");
  return fmt::format(" {}.", fmt::join(parts, ", "));
}

/// Formats " and 3.9 % in wrappers of malloc() and other functions".
std::string stand_ins_text(const Analysis& analysis) {
  const double share = analysis.cpu_s > 0 ? analysis.sampling.stand_ins_s / analysis.cpu_s : 0;
  constexpr double worth_saying = 0.0005;
  return share < worth_saying
             ? std::string()
             : fmt::format(", and with {} in wrappers of malloc() and other functions", percent_text(share));
}

/// The recorder's own CPU time, which is no part of any thread's; empty if it is not known.
std::string recorder_text(const Analysis& analysis) {
  const double took_s = static_cast<double>(analysis.session.recorder_cpu_ns) * 1e-9;
  return took_s > 0 && analysis.cpu_s > 0 ? fmt::format("; the recorder used another {} ({} of that time)",
                                                        seconds_text(took_s), percent_text(took_s / analysis.cpu_s))
                                          : std::string();
}

/// Says why a better source of the machine is not used; empty if it has none, as on most machines.
std::string source_text(const SamplingSummary& sampling) {
  return sampling.source_choice.find(collectors::chosen_in_place_of) == std::string::npos
             ? std::string()
             : " Sources: " + sampling.source_choice + ".";
}

/// Says why lines were not watched, or how watchpoints did in the self-test; empty if neither is known.
std::string method_text(const profile::Session& session) {
  const profile::WatchTrial& trial = session.watch_trial;
  if (session.config.method != profile::Method::watch && !session.method_choice.empty()) {
    return std::string(profile::are_lines_probed(session) ? " Lines were probed, as " : " Nothing was watched, as ") +
           session.method_choice + ".";
  }
  const std::string instead = ": nothing was watched.";
  switch (trial.verdict) {
    case profile::TrialVerdict::fires:
      return fmt::format(" Watchpoints fire ({} debug registers).", trial.registers);
    case profile::TrialVerdict::partly:
      return fmt::format(" Watchpoints fire in part ({} debug registers): not for all {}.", trial.registers,
                         profile::accesses_in_words(trial.silent));
    case profile::TrialVerdict::never:
      return " Watchpoints do not fire" + instead;
    case profile::TrialVerdict::not_opened:
      return " Watchpoints could not be opened" + instead;
    case profile::TrialVerdict::untestable:
      return " Watchpoints could not be tested" + instead;
    case profile::TrialVerdict::unknown:
      break;
  }
  return {};
}

}  // namespace

void draw_threads(Canvas& canvas, const Analysis& analysis, std::size_t most) {
  canvas.heading("Threads", "time in communicating accesses is that of the thread as consumer");
  const auto threads = by_cpu_time(analysis);
  if (threads.empty()) {
    canvas.paragraph("  ", analysis.threads.empty() ? "No thread was observed." : "No thread fits the filter.");
    return;
  }
  canvas.line(canvas.colored(thread_columns(canvas, "CPU time", "communicating", "kernel", "samples", "tid") + "thread",
                             Hue::faint));
  for (std::size_t i = 0; i < std::min(most, threads.size()); ++i) {
    const ThreadSummary& thread = *threads[i];
    canvas.line(thread_columns(canvas, thread.cpu_s ? seconds_text(*thread.cpu_s) : "-",
                               thread.communication_s.value_or(0) > 0 ? seconds_text(*thread.communication_s) : "-",
                               thread.kernel_share ? percent_text(*thread.kernel_share) : "-",
                               std::to_string(thread.samples), std::to_string(thread.tid)) +
                canvas.cell(thread_label(analysis, thread.index), name_columns(canvas)));
  }
  draw_more(canvas, threads.size(), most, ": crosstalk report --view threads");
}

namespace {

bool is_of_clock(const SamplingSummary::Event& event) { return event.source == "clock" && event.unit == "ns"; }

/// " (6.78 ms on average)", if the samples of all clocks came more rarely than they were asked for. Empty if they did
/// not.
std::string reached_text(const Analysis& analysis, const SamplingSummary::Event& event) {
  constexpr double much = 1.25;
  const double asked_s = static_cast<double>(event.period) * 1e-9;
  std::uint64_t samples = 0;
  for (const SamplingSummary::Event& each : analysis.sampling.events) {
    samples += is_of_clock(each) ? each.samples : 0;
  }
  const double mean_s = is_of_clock(event) && samples > 0 ? analysis.cpu_s / static_cast<double>(samples) : 0;
  return mean_s > much * asked_s ? " (" + seconds_text(mean_s) + " on average)" : std::string();
}

}  // namespace

void draw_sampling(Canvas& canvas, const Analysis& analysis) {
  const SamplingSummary& sampling = analysis.sampling;
  const auto counted = [](std::uint64_t n, const char* one, const char* many) {
    return attribution::count_of(n, one, many);
  };
  std::string text = counted(sampling.samples, "sample", "samples");
  for (const SamplingSummary::Event& event : sampling.events) {
    const std::string period = event.unit == "ns" ? seconds_text(static_cast<double>(event.period) * 1e-9)
                                                  : fmt::format("{} {}", event.period, event.unit);
    text += event.period != 0 ? fmt::format(" of {} every {}{}", event.name, period, reached_text(analysis, event))
                              : fmt::format(" of {} ({})", event.name, event.unit);
    break;
  }
  const profile::SkippedProbes& given_up = analysis.session.skipped_probes;
  const std::uint64_t skipped = given_up.unreadable + given_up.in_handlers + given_up.beside_another + given_up.went_on;
  text += profile::are_lines_probed(analysis.session) ? ", " + counted(sampling.armed, "line", "lines") + " probed"
                                                      : ", " + counted(sampling.armed, "line", "lines") + " watched, " +
                                                            counted(sampling.traps, "access", "accesses") + " trapped";
  if (skipped > 0) {
    text += ", " + counted(skipped, "probe", "probes") + " given up";
  }
  if (sampling.lost > 0) {
    text += ", " + counted(sampling.lost, "record", "records") + " lost";
  }
  if (sampling.samples > 0) {
    text += fmt::format(", {} with a data address", percent_text(static_cast<double>(sampling.with_address) /
                                                                 static_cast<double>(sampling.samples)));
  }
  if (sampling.unknown_frames) {
    text += fmt::format(", {} in unknown functions", percent_text(*sampling.unknown_frames));
  }
  text += sampling.overhead_fraction
              ? fmt::format(
                    ". Observing took {} of the threads' CPU time, including the slowdown outside its handlers{}{}.",
                    percent_text(*sampling.overhead_fraction), stand_ins_text(analysis), recorder_text(analysis))
              : std::string(". The cost of observing is unknown.");
  text += method_text(analysis.session);
  text += observation_text(analysis);
  text += source_text(sampling);
  canvas.heading("Sampling",
                 "source " + sampling.source + ", method " + sampling.method +
                     (sampling.partner.empty() || sampling.partner == "auto" ? "" : ", partner " + sampling.partner));
  canvas.paragraph("  ", text);
}

namespace {

/// True if the warning would repeat another part: a finding tells that nothing was watched or sampled, and the sampling
/// part tells that a user asked to watch from outside.
bool is_said_elsewhere(const attribution::Warning& warning, const Analysis& analysis) {
  const bool blind =
      warning.code == "watchpoints_unavailable" && analysis.sight.sees == attribution::WatchSight::Sees::nothing;
  const bool first = warning.code == "no_samples";
  const bool asked = warning.code == "watched_from_outside" &&
                     (warning.message.starts_with("as --observer") || warning.message.starts_with("the process"));
  return blind || first || asked;
}

}  // namespace

void draw_warnings(Canvas& canvas, const Analysis& analysis) {
  bool begun = false;
  for (const attribution::Warning& warning : analysis.warnings) {
    if (is_said_elsewhere(warning, analysis)) {
      continue;
    }
    if (!std::exchange(begun, true)) {
      canvas.heading("Warnings");
    }
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), warning.message);
  }
}

}  // namespace crosstalk::driver
