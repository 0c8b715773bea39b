// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/wait_places.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "attribution/busy/waiting_call.h"
#include "attribution/loops/loop_index.h"
#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

using profile::LookKind;
using profile::SampledWaitRow;
using profile::ThreadWaitRow;
using profile::WaitKind;

/// A thread's waits in one call.
struct Part {
  ThreadId thread;
  double waited_s = 0;
  std::uint64_t count = 0;  // 0: they are sampled
};

/// Sums of looks.
struct LookSum {
  double looked_s = 0, square_s2 = 0;
  std::uint64_t looks = 0;
  void add(const SampledWaitRow& row) {
    const double spread_s = static_cast<double>(row.spread_ns) / ns_per_s;
    looked_s += static_cast<double>(row.looked_ns) / ns_per_s;
    square_s2 += spread_s * spread_s;
    looks += row.looks;
  }
};

/// A thread's sleep, by looks at it. The scheduler tells how long it slept, and the looks tell where: each that
/// found it asleep stands for an equal part of that sleep. Without the scheduler's times it stands for the time since
/// the look before. Looks are rare if there are many threads, and none falls on the time between a thread's last one
/// and its end. In that time it is assumed to have done what it did before.
struct SleepOfThread {
  double elapsed_s = 0;  // of the thread
  LookSum all, asleep;
  double slept_s = 0;
  bool slept_known = true;
  void add(const SampledWaitRow& row) {
    if (row.kind == LookKind::all) {
      all.add(row);
      slept_known = slept_known && row.slept_ns.has_value();
      slept_s += static_cast<double>(row.slept_ns.value_or(0)) / ns_per_s;
    } else if (row.kind == LookKind::asleep) {
      asleep.add(row);
    }
  }
  [[nodiscard]] bool by_scheduler() const { return slept_known && slept_s > 0 && asleep.looked_s > 0; }
  /// Seconds for each second that looks which found it asleep stand for.
  [[nodiscard]] double scale() const {
    const double seen = by_scheduler() ? std::min(slept_s, all.looked_s) / asleep.looked_s : 1;
    return elapsed_s > 0 && all.looked_s > 0 ? seen * elapsed_s / all.looked_s : seen;
  }
  /// The standard deviation of the time at a place in the time that no look stands for.
  [[nodiscard]] double unseen_off_s(const LookSum& here) const {
    const double p = static_cast<double>(here.looks + 1) / static_cast<double>(std::max(all.looks, here.looks) + 2);
    return std::max(0.0, elapsed_s - all.looked_s) * std::sqrt(p * (1 - p));
  }
  /// The variance of the time at a place, where these looks found it. A look before which the thread has run finds it
  /// there or not, so the variance is p (1 - p) of the square of its time. p is that of the thread's looks, with one
  /// more of each outcome, because a few that agree prove little.
  [[nodiscard]] double variance_s2(const LookSum& here) const {
    const LookSum& of = by_scheduler() ? asleep : all.looks != 0 ? all : here;
    const double one_s2 = of.square_s2 / static_cast<double>(of.looks);
    const double p = (std::min(here.square_s2, of.square_s2) + one_s2) / (of.square_s2 + 2 * one_s2);
    const double factor = scale();
    return here.square_s2 > 0 && of.square_s2 > 0 ? factor * factor * of.square_s2 * p * (1 - p) : 0;
  }
};
using SleepByThread = std::map<std::uint32_t, SleepOfThread>;

class Places {
 public:
  Places(const ProgramView& view, const StackTable& stacks, std::uint64_t end_ns, std::vector<LoopRow>& loops)
      : view_(view), stacks_(stacks), end_ns_(end_ns), loops_(loops), rows_(view, loops) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      by_id_[loops[i].id] = i;
    }
  }

  void add(const ThreadWaitRow& row) {
    (void)place_of(call_of(row), false, {row.thread, static_cast<double>(row.waited_ns) / ns_per_s, row.count});
  }

  void add(const SampledWaitRow& row, const WaitingCall& call, double waited_s) {
    Found& found = place_of(call, true, {row.thread, waited_s, 0});
    found.place.looks += row.looks;
    found.looks[row.thread.value].add(row);
    if (row.futex != 0) {
      AwaitedFutex& futex = found.futexes[{view_.threads()[row.thread.value].process, row.futex}];
      futex = {row.thread, row.time_ns, row.futex, futex.waited_s + waited_s};
    }
  }

  [[nodiscard]] const WaitingCall& call_of(const SampledWaitRow& row) {
    const std::span<const std::uint64_t> stack = stacks_.addresses(row.stack);
    const Moment moment = view_.moment(row.thread, row.time_ns);
    const auto [known, fresh] = sampled_calls_.try_emplace({moment.process.value, stack.data()});
    if (fresh) {
      known->second = waiting_call(view_, moment, stack);
    }
    return known->second;
  }

  void finish(const SleepByThread& slept, MeasuredWaits& result) {
    std::vector<Found> list;
    for (auto& [key, found] : places_) {
      list.push_back(std::move(found));
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Found& a, const Found& b) { return a.place.waited_s > b.place.waited_s; });
    for (Found& found : list) {
      constexpr double normal_95 = 1.96;
      WaitPlace& place = found.place;
      double variance_s2 = 0, unseen_s = 0, most_s = 0;
      for (const auto& [thread, looks] : found.looks) {
        const SleepOfThread& of = slept.at(thread);
        variance_s2 += of.variance_s2(looks);
        unseen_s += of.unseen_off_s(looks);  // threads are looked at together, and their unseen times are alike
        most_s += of.elapsed_s > 0 ? of.elapsed_s : of.all.looked_s;
      }
      const double off_s = normal_95 * (std::sqrt(variance_s2) + unseen_s);
      place.waited_ci95 = {std::max(0.0, place.waited_s - off_s),
                           std::max(place.waited_s, std::min(place.waited_s + off_s, most_s))};
      result.places.push_back(std::move(place));
      std::vector<AwaitedFutex>& futexes = result.futexes.emplace_back();
      for (const auto& [address, futex] : found.futexes) {
        futexes.push_back(futex);
      }
    }
  }

 private:
  struct Found {
    WaitPlace place;
    std::map<std::uint32_t, LookSum> looks;  // by thread
    std::map<std::pair<ProcessId, std::uint64_t>, AwaitedFutex> futexes;
  };

  Found& place_of(const WaitingCall& call, bool sampled, const Part& part) {
    const symbolizer::Frame& frame = call.frame;
    std::optional<std::size_t> loop;
    if (call.place) {
      loop = rows_.innermost(*call.place);
    }
    Found& found = places_[{sampled, call.kind, frame.source.file, frame.source.line, frame.function}];
    WaitPlace& place = found.place;
    place.kind = call.kind;
    place.sampled = sampled;
    place.function = frame.function, place.file = frame.source.file, place.line = frame.source.line;
    place.through = call.through;
    place.for_end = call.for_end();
    place.loop = loop ? std::optional(loops_[*loop].id) : place.loop;
    place.waited_s += part.waited_s;
    place.count += part.count;
    add_thread(part, place);
    if (!call.for_end()) {
      add_to_loops(part, call.kind, sampled, loop);
    }
    return found;
  }

  static void add_thread(const Part& part, WaitPlace& place) {
    if (place.threads.empty() || place.threads.back().thread != part.thread.value) {  // rows come by thread
      place.threads.push_back({part.thread.value, 0, 0});
    }
    place.threads.back().waited_s += part.waited_s;
    place.threads.back().count += part.count;
  }

  void add_to_loops(const Part& part, WaitKind kind, bool sampled, std::optional<std::size_t> at) {
    for (std::size_t levels = 0; at && levels < loops_.size(); ++levels) {
      LoopRow& loop = loops_[*at];
      loop.waited = loop.waited ? loop.waited : std::optional(Waited());
      if (kind != WaitKind::all) {
        loop.waited->add(profile::class_of(kind), part.waited_s);
        loop.waited->count += part.count;
        loop.waited->sampled = loop.waited->sampled || sampled;
      }
      const auto parent = loop.parent ? by_id_.find(*loop.parent) : by_id_.end();
      at = parent != by_id_.end() ? std::optional(parent->second) : std::nullopt;
    }
  }

  /// The place of the call, before the return address; the program's own, if calls were inlined into it.
  const WaitingCall& call_of(const ThreadWaitRow& row) {
    const profile::ThreadRow& thread = view_.threads()[row.thread.value];
    const auto [known, fresh] = calls_.try_emplace({thread.process.value, row.kind, row.site});
    WaitingCall& call = known->second;
    call.kind = row.kind;
    if (fresh && row.site != 0) {
      const std::uint64_t address = row.site - 1;
      Moment moment = view_.moment(row.thread, thread.end_ns != 0 ? thread.end_ns : end_ns_);
      call.place = view_.spaces().find(moment, address);
      if (!call.place) {  // unloaded meanwhile
        moment.time_ns = thread.begin_ns;
        call.place = view_.spaces().find(moment, address);
      }
      call.frame = own_place(view_, moment, address, {}).frame;
    }
    return call;
  }

  const ProgramView& view_;
  const StackTable& stacks_;
  std::uint64_t end_ns_;
  std::vector<LoopRow>& loops_;
  LoopIndex rows_;
  std::map<std::uint32_t, std::size_t> by_id_;
  std::map<std::tuple<std::uint32_t, WaitKind, std::uint64_t>, WaitingCall> calls_;      // by process, kind and site
  std::map<std::pair<std::uint32_t, const std::uint64_t*>, WaitingCall> sampled_calls_;  // by process and stack
  std::map<std::tuple<bool, WaitKind, std::string, std::uint32_t, std::string>, Found> places_;
};

/// "memory at 0x55ac78270f40".
std::string futex_in_words(std::uint64_t address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "memory at 0x%llx", static_cast<unsigned long long>(address));
  return text.data();
}

/// The path to a lock without the library's own fields: "queue.guard" of "queue.guard._M_mutex.__data.__lock".
std::string without_insides(const std::string& field) {
  std::size_t begin = 0;
  while (begin < field.size()) {
    const std::string_view rest = std::string_view(field).substr(begin);
    if (rest.starts_with("__") || rest.starts_with("_M_")) {
      return field.substr(0, begin == 0 ? 0 : begin - 1);
    }
    const std::size_t dot = field.find('.', begin);
    begin = dot == std::string::npos ? field.size() : dot + 1;
  }
  return field;
}

double elapsed_s(const profile::ThreadRow& thread, std::uint64_t end_ns) {
  const std::uint64_t end = thread.end_ns != 0 ? thread.end_ns : end_ns;
  return static_cast<double>(end - std::min(thread.begin_ns, end)) / ns_per_s;
}

Waited& of_thread(ThreadId thread, MeasuredWaits& result) {
  std::optional<Waited>& waited = result.threads[thread.value];
  waited = waited ? waited : std::optional(Waited());
  return *waited;
}

}  // namespace

MeasuredWaits measured_waits(const WaitRows& rows, const ProgramView& view, const StackTable& stacks,
                             std::uint64_t end_ns, std::vector<LoopRow>& loops) {
  MeasuredWaits result;
  result.threads.resize(view.threads().size());
  Places places(view, stacks, end_ns, loops);
  for (const ThreadWaitRow& row : rows.measured) {
    if (!view.knows(row.thread)) {
      continue;
    }
    Waited& thread = of_thread(row.thread, result);
    if (row.kind != WaitKind::all) {
      thread.add(profile::class_of(row.kind), static_cast<double>(row.waited_ns) / ns_per_s);
      thread.count += row.count;
      places.add(row);
    }
  }
  SleepByThread slept;
  for (const SampledWaitRow& row : rows.sampled) {
    if (view.knows(row.thread) && row.looked_ns != 0) {
      slept[row.thread.value].elapsed_s = elapsed_s(view.threads()[row.thread.value], end_ns);
      slept[row.thread.value].add(row);
      of_thread(row.thread, result).sampled = true;
    }
  }
  for (const SampledWaitRow& row : rows.sampled) {
    if (view.knows(row.thread) && row.kind == LookKind::waiting && row.looked_ns != 0) {
      const WaitingCall& call = places.call_of(row);
      const double waited_s = slept.at(row.thread.value).scale() * static_cast<double>(row.looked_ns) / ns_per_s;
      if (!call.for_end()) {
        of_thread(row.thread, result).add(profile::class_of(call.kind), waited_s);
      }
      places.add(row, call, waited_s);
    }
  }
  places.finish(slept, result);
  return result;
}

std::optional<std::string> not_looked_at_in_words(const MeasuredWaits& waits, const ProgramView& view,
                                                  std::span<const profile::ProcessRow> processes,
                                                  const profile::Session& session) {
  constexpr double noticeable_share = 0.01;
  double all_s = 0, missing_s = 0;
  std::uint64_t missing = 0;
  for (const profile::ThreadRow& thread : view.threads()) {
    if (thread.process.value >= processes.size() ||
        processes[thread.process.value].observation != profile::Observation::outside) {
      continue;
    }
    const double lived_s = elapsed_s(thread, session.end_ns);
    all_s += lived_s;
    if (!waits.threads[thread.id.value]) {
      missing_s += lived_s;
      ++missing;
    }
  }
  if (session.config.measure_waits == 0 || missing == 0 || missing_s < noticeable_share * all_s) {
    return std::nullopt;
  }
  return count_of(missing, "thread was", "threads were") + " not looked at (--waits): what " +
         (missing == 1 ? "it" : "they") + " waited, " + seconds_in_words(missing_s) + " at most, is in no figure";
}

void name_awaited(MeasuredWaits& waits, DataObjects& objects) {
  for (std::size_t i = 0; i < waits.places.size(); ++i) {
    std::map<std::pair<std::string, std::string>, WaitPlace::Object> by_name;
    for (const AwaitedFutex& futex : waits.futexes[i]) {
      const DataRef ref = objects.resolve(futex.thread, futex.time_ns, futex.address);
      const DataObject& known = objects[ref.object];
      const std::string field = without_insides(objects.field(ref.object, ref.offset));
      const std::string name = known.kind == ObjectKind::unknown ? futex_in_words(futex.address) : known.name;
      WaitPlace::Object& object = by_name[{name, field}];
      object = {name, field, known.place, known.kind, object.waited_s + futex.waited_s};
    }
    std::vector<WaitPlace::Object>& named = waits.places[i].objects;
    for (auto& [name, object] : by_name) {
      named.push_back(std::move(object));
    }
    std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.waited_s > b.waited_s; });
  }
}

const char* wait_kind_name(WaitKind kind) {
  static constexpr const char* names[] = {"all",  "mutex",     "rwlock",    "critical", "barrier",
                                          "team", "condition", "semaphore", "futex"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace crosstalk::attribution
