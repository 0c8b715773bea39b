// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/few_samples.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <string>

#include "attribution/few_samples.h"
#include "collectors/observer/target_process.h"
#include "driver/terminal/log.h"
#include "profile/reader.h"

namespace crosstalk::driver {
namespace {

/// Returns the CPU time of the observed threads, s; if a launched command was not observed, the kernel's figure.
std::optional<double> cpu_time(const profile::ProfileReader& profile, bool launched) {
  double cpu_s = 0;
  for (const profile::ThreadRow& thread : profile.threads()) {
    cpu_s += static_cast<double>(thread.cpu_ns) * 1e-9;
  }
  rusage used{};
  if (cpu_s <= 0 && launched && ::getrusage(RUSAGE_CHILDREN, &used) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  }
  return cpu_s > 0 ? std::optional(cpu_s) : std::nullopt;
}

std::string why(const RecordRequest& request, const daemon::RecordOutcome& outcome) {
  const auto stopped = std::find_if(request.pids.begin(), request.pids.end(), observer::is_stopped);
  if (stopped != request.pids.end()) {
    return fmt::format("process {} is stopped; kill -CONT {} lets it go on", *stopped, *stopped);
  }
  const auto profile = profile::ProfileReader::open(outcome.output);
  if (!profile) {
    return profile.error().message;
  }
  attribution::FewSamplesFacts facts;
  facts.elapsed_s = outcome.totals.elapsed_s;
  facts.launched = request.pids.empty();
  facts.cpu_s = cpu_time(*profile, facts.launched);
  facts.period_ns = profile->session().config.period_ns;
  for (const profile::ThreadRow& thread : profile->threads()) {  // a clock is no finer than its kernel's tick
    facts.period_ns = std::max(facts.period_ns, std::uint64_t{thread.period_us} * 1000);
  }
  facts.processes = profile->processes();
  facts.left_alone = attribution::left_alone_because(profile->messages(), true);
  return why_few_samples(facts);
}

}  // namespace

void say_why_few_samples(const RecordRequest& request, const daemon::RecordOutcome& outcome) {
  const bool divided = outcome.files_made > 1;  // each profile says so itself
  if (request.quiet || divided || outcome.totals.samples >= attribution::few_samples || !outcome.loss.empty()) {
    return;
  }
  const std::string count = outcome.totals.samples == 0 ? std::string("no samples")
                                                        : fmt::format("only {} sample{}", outcome.totals.samples,
                                                                      outcome.totals.samples == 1 ? "" : "s");
  log_notice(count + ": " + why(request, outcome));
}

}  // namespace crosstalk::driver
