// SPDX-License-Identifier: Apache-2.0
#include "daemon/interval_totals.h"

#include <algorithm>

namespace crosstalk::daemon {
namespace {

/// A total may fall: an exec, or a wait that a jump has ended, takes back what was counted.
std::uint64_t less(std::uint64_t total, std::uint64_t before) { return total - std::min(total, before); }

/// Returns the CPU time that the thread has used, by its own clock or by the scheduler's count since `base`.
std::uint64_t cpu_time_so_far(const ThreadBase& base, const profile::ThreadRow& row) {
  return std::max(row.cpu_ns, base.cpu_ns + less(row.ran_ns, base.ran_ns));
}

}  // namespace

profile::ThreadRow since(const ThreadBase& base, profile::ThreadRow row, std::uint64_t begin_ns, std::uint64_t end_ns) {
  const std::uint64_t from_ns = std::max(row.begin_ns, begin_ns);
  const std::uint64_t to_ns = row.end_ns != 0 ? row.end_ns : end_ns;
  row.cpu_ns = std::min(less(cpu_time_so_far(base, row), base.told_ns), less(to_ns, from_ns));
  row.begin_ns = from_ns;
  row.end_ns = row.end_ns != 0 ? std::max(row.end_ns, from_ns) : 0;
  row.samples = less(row.samples, base.samples);
  row.traps = less(row.traps, base.traps);
  row.armed = less(row.armed, base.armed);
  row.lost = less(row.lost, base.lost);
  row.handlers_ns = less(row.handlers_ns, base.handlers_ns);
  row.switches_ns = less(row.switches_ns, base.switches_ns);
  row.switches = less(row.switches, base.switches);
  row.handler_samples_ns = less(row.handler_samples_ns, base.handler_samples_ns);
  row.ran_ns = less(row.ran_ns, base.ran_ns);
  row.waited_ns = less(row.waited_ns, base.waited_ns);
  return row;
}

ThreadBase base_after(const ThreadBase& base, const profile::ThreadRow& row, std::uint64_t told_ns) {
  return {row.samples,
          row.traps,
          row.armed,
          row.lost,
          row.handlers_ns,
          row.switches_ns,
          row.switches,
          row.handler_samples_ns,
          row.ran_ns,
          row.waited_ns,
          cpu_time_so_far(base, row),
          base.told_ns + told_ns};
}

profile::ThreadRow IntervalTotals::of(const profile::ThreadRow& row, std::uint64_t begin_ns, std::uint64_t end_ns) {
  const auto known = thread_bases_.find(row.id.value);
  const ThreadBase base = known != thread_bases_.end() ? known->second : ThreadBase{};
  profile::ThreadRow told = since(base, row, begin_ns, end_ns);
  threads_[row.id.value] = {base_after(base, row, told.cpu_ns), told.ran_ns, told.waited_ns};
  return told;
}

profile::ThreadWaitRow IntervalTotals::of(const profile::ThreadWaitRow& row, std::uint64_t elapsed_ns) {
  const WaitKey key{row.thread.value, row.kind, row.site};
  profile::ThreadWaitRow told = row;
  profile::ThreadWaitRow& all = waits_[key];
  all = row;
  const auto base = wait_bases_.find(key);
  const profile::ThreadWaitRow before = base != wait_bases_.end() ? base->second : profile::ThreadWaitRow{};
  told.waited_ns = std::min(less(row.waited_ns, before.waited_ns), elapsed_ns);
  told.count = less(row.count, before.count);
  all.waited_ns = before.waited_ns + told.waited_ns;
  all.count = before.count + told.count;
  return told;
}

profile::ThreadRegionRow IntervalTotals::of(const profile::ThreadRegionRow& row, std::uint64_t elapsed_ns) {
  const RegionKey key{row.thread.value, row.region.value};
  profile::ThreadRegionRow told = row;
  profile::ThreadRegionRow& all = regions_[key];
  all = row;
  const auto base = region_bases_.find(key);
  const profile::ThreadRegionRow before = base != region_bases_.end() ? base->second : profile::ThreadRegionRow{};
  told.entries = less(row.entries, before.entries);
  told.elapsed_ns = std::min(less(row.elapsed_ns, before.elapsed_ns), elapsed_ns);
  all.entries = before.entries + told.entries;
  all.elapsed_ns = before.elapsed_ns + told.elapsed_ns;
  for (std::size_t what = 0; what < profile::wait_classes; ++what) {
    told.waited_ns[what] = std::min(less(row.waited_ns[what], before.waited_ns[what]), elapsed_ns);
    all.waited_ns[what] = before.waited_ns[what] + told.waited_ns[what];
  }
  return told;
}

profile::Session IntervalTotals::of(const profile::Session& session) {
  session_ = {session.recorder_cpu_ns, session.skipped_probes, session.unobserved_cpu_ns.value_or(0)};
  profile::Session told = session;
  told.recorder_cpu_ns = less(session.recorder_cpu_ns, session_base_.recorder_cpu_ns);
  if (told.unobserved_cpu_ns) {
    told.unobserved_cpu_ns = less(*session.unobserved_cpu_ns, session_base_.unobserved_cpu_ns);
  }
  const profile::SkippedProbes& before = session_base_.skipped_probes;
  told.skipped_probes = {less(session.skipped_probes.unreadable, before.unreadable),
                         less(session.skipped_probes.in_handlers, before.in_handlers),
                         less(session.skipped_probes.beside_another, before.beside_another),
                         less(session.skipped_probes.went_on, before.went_on)};
  told.waits = {};
  for (const auto& [thread, told_thread] : threads_) {
    if (told_thread.ran_ns != 0) {
      ++told.waits.threads;
      told.waits.ran_ns += told_thread.ran_ns;
      told.waits.waited_ns += told_thread.waited_ns;
    }
  }
  return told;
}

}  // namespace crosstalk::daemon
