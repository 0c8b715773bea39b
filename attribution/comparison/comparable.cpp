// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/comparable.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "attribution/model/sentences.h"
#include "attribution/program/program_names.h"

namespace crosstalk::attribution::comparison {
namespace {

bool is_whole(const Analysis& analysis) { return analysis.session.complete && analysis.session.exit_status; }

bool same_processor(const profile::Session& a, const profile::Session& b) {
  return a.cpu_model == b.cpu_model && a.cpus == b.cpus;
}

std::string status_text(const Analysis& analysis) {
  return analysis.session.exit_status ? std::to_string(*analysis.session.exit_status) : "unknown";
}

std::string period_text(const profile::SessionConfig& config) {
  char text[48];
  std::snprintf(text, sizeof text, "%.4g ms", static_cast<double>(config.period_ns) * 1e-6);
  return text;
}

std::string sampling_difference(const Analysis& before, const Analysis& after) {
  const profile::SessionConfig& was = before.session.config;
  const profile::SessionConfig& is = after.session.config;
  std::string text;
  const auto add = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a != b && !a.empty() && !b.empty()) {  // empty: it does not apply
      text += (text.empty() ? "" : "; ") + name + " " + a + " before, " + b + " after";
    }
  };
  add("period", period_text(was), period_text(is));
  add("source", before.sampling.source, after.sampling.source);
  add("method", before.sampling.method, after.sampling.method);
  add("partner", before.sampling.partner, after.sampling.partner);
  add("estimator", before.sampling.estimator, after.sampling.estimator);
  add("watchpoints", std::to_string(was.watchpoints), std::to_string(is.watchpoints));
  char a[32];
  char b[32];
  std::snprintf(a, sizeof a, "%.3g %%", was.budget * 100);
  std::snprintf(b, sizeof b, "%.3g %%", is.budget * 100);
  add("budget", a, b);
  return text;
}

/// Empty if both have one build, or if that is not known.
std::string build_difference(const Analysis& before, const Analysis& after) {
  constexpr std::size_t shown = 12;  // characters of a build id
  if (before.build_id == after.build_id || before.build_id.empty() || after.build_id.empty()) {
    return {};
  }
  const std::string differ = "the program was built anew in between (build id " + before.build_id.substr(0, shown) +
                             " before, " + after.build_id.substr(0, shown) + " after)";
  if (!before.program_missing.empty() || !after.program_missing.empty()) {
    return differ;
  }
  return differ +
         ": all lines of a function are taken to have moved by the same number, as its sampled lines and loops "
         "suggest; "
         "where an edit within it moved some of them, they may be paired with others";
}

/// The part of the time in which threads could run that they waited for a processor; none: not known.
std::optional<double> waiting_share(const profile::ProcessorWaits& waits) {
  const auto waited = static_cast<double>(waits.waited_ns);
  const double ready = waited + static_cast<double>(waits.ran_ns);
  return waits.threads == 0 || ready <= 0 ? std::nullopt : std::optional(waited / ready);
}

/// Says that one machine was busier than the other; empty: it was not, or that is not known.
std::string load_difference(const profile::ProcessorWaits& was, const profile::ProcessorWaits& is) {
  constexpr double much = 0.1;
  const auto before = waiting_share(was);
  const auto after = waiting_share(is);
  if (!before || !after || std::fabs(*before - *after) <= much) {
    return {};
  }
  return "threads waited for a processor " + percent(*before) + " of the time before and " + percent(*after) +
         " after: costs and times are not comparable, because threads that run at other times communicate less";
}

}  // namespace

UnitChoice choose_unit(const Analysis& before, const Analysis& after, std::optional<Unit> wanted) {
  if (wanted) {
    return {*wanted, *wanted == Unit::seconds ? "Seconds are compared, as was asked."
                                              : "Shares of CPU time are compared, as was asked."};
  }
  const std::string shares = "so shares of CPU time are compared, not seconds.";
  if (!is_whole(before) || !is_whole(after)) {
    const bool both = !is_whole(before) && !is_whole(after);
    return {Unit::share, std::string(both                ? "Neither profile holds"
                                     : !is_whole(before) ? "The profile before does not hold"
                                                         : "The profile after does not hold") +
                             " a whole run, " + shares};
  }
  if (before.session.exit_status != after.session.exit_status) {
    return {Unit::share, "The runs ended with different statuses, " + shares};
  }
  if (arguments_of(before.session.command) != arguments_of(after.session.command)) {
    return {Unit::share, "The commands have different arguments, " + shares};
  }
  if (!same_processor(before.session, after.session)) {
    return {Unit::share, "The machines differ, " + shares};
  }
  return {Unit::seconds, "Both hold a whole run with the same arguments, so seconds are compared."};
}

bool same_build(const Analysis& before, const Analysis& after) {
  return !before.build_id.empty() && before.build_id == after.build_id;
}

std::string blindness(const Analysis& analysis, const std::string& name) {
  const WatchSight& sight = analysis.sight;
  switch (sight.sees) {
    case WatchSight::Sees::nothing:
      return "the recording " + name + " could not watch memory: " + sight.because;
    case WatchSight::Sees::part:
      return "the recording " + name + " may have missed " + sight.unseen + ": " + sight.because;
    case WatchSight::Sees::everything:
      break;
  }
  return {};
}

std::vector<Warning> differences(const Analysis& before, const Analysis& after) {
  std::vector<Warning> warnings;
  const profile::Session& was = before.session;
  const profile::Session& is = after.session;
  if (program_of(was.command) != program_of(is.command)) {
    warnings.push_back({"different_program", "the programs have different names: " + program_of(was.command) +
                                                 " before, " + program_of(is.command) + " after"});
  }
  if (arguments_of(was.command) != arguments_of(is.command)) {
    warnings.push_back({"different_arguments", "the arguments differ: '" + arguments_of(was.command) + "' before, '" +
                                                   arguments_of(is.command) + "' after"});
  }
  if (const std::string text = build_difference(before, after); !text.empty()) {
    warnings.push_back({"different_build", text});
  }
  for (const auto& [analysis, name] : {std::pair{&before, "before"}, std::pair{&after, "after"}}) {
    if (!analysis->program_missing.empty()) {
      warnings.push_back({"program_missing", std::string("of the profile ") + name +
                                                 " source lines and variables of the program are not known, so that "
                                                 "those of the other have nothing to be matched with: " +
                                                 analysis->program_missing});
    }
  }
  if (!same_processor(was, is)) {
    const auto machine = [](const profile::Session& s) {
      return std::to_string(s.cpus) + " processors, " + (s.cpu_model.empty() ? "of an unknown model" : s.cpu_model);
    };
    warnings.push_back(
        {"different_machine", "the machines differ: " + machine(was) + " before; " + machine(is) + " after"});
  } else if (was.kernel != is.kernel) {
    warnings.push_back({"different_kernel", "the kernels differ: " + was.kernel + " before, " + is.kernel + " after"});
  }
  if (const std::string text = sampling_difference(before, after); !text.empty()) {
    warnings.push_back({"different_sampling", "the profiles were sampled differently: " + text});
  }
  if (const std::string text = load_difference(was.waits, is.waits); !text.empty()) {
    warnings.push_back({"different_load", text});
  }
  if (was.exit_status != is.exit_status) {
    warnings.push_back({"different_exit_status", "the commands ended differently: status " + status_text(before) +
                                                     " before, " + status_text(after) + " after"});
  }
  for (const auto& [analysis, name] : {std::pair{&before, "before"}, std::pair{&after, "after"}}) {
    if (!analysis->session.complete) {
      warnings.push_back({"incomplete", std::string("the recording ") + name + " was cut short"});
    }
  }
  return warnings;
}

}  // namespace crosstalk::attribution::comparison
