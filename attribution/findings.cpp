// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "attribution/advice.h"
#include "attribution/condition_locks.h"
#include "attribution/few_samples.h"
#include "attribution/hottest.h"
#include "attribution/model/sentences.h"
#include "attribution/objects/sharing_kind.h"
#include "attribution/program/own_code.h"
#include "attribution/program/program_view.h"
#include "attribution/stages/watch_sight.h"
#include "attribution/wait_findings.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_sampled_uses = 2;
constexpr std::size_t max_objects = 5;
constexpr double least_share = 0.005;        // of all CPU time, for an object to be worth a sentence
constexpr std::uint64_t few_detections = 5;  // a hint, no headline
constexpr std::uint64_t few_to_tell = 100;   // samples
constexpr std::uint64_t few_watches = 20;
constexpr double much_undetected = 0.05;  // of all CPU time
constexpr double leading_share = 0.2;     // of all CPU time, for an object to be told before where the time goes
constexpr double line_bytes = 64;

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

/// "Threads 0 and 1 exchange `lines`", "Thread 0 passes `lines` to thread 1".
std::string exchange_in_words(const Analysis& analysis, const ObjectExchange& e, const std::string& lines) {
  if (e.producers.size() == 1 && e.consumers.size() == 1) {
    return begun(threads_in_words(analysis, e.producers)) + " passes " + lines + " to " +
           threads_in_words(analysis, e.consumers);
  }
  return begun(threads_in_words(analysis, e.threads)) + " exchange " + lines;
}

/// " (40 heap blocks of 64 bytes)".
std::string about_blocks(const ObjectRow& object) {
  const std::string each = object.size ? " of " + size_in_words(*object.size) : "";
  return std::string(object.field.empty() ? " (" : " (in ") + std::to_string(object.blocks) + " heap blocks" + each +
         ")";
}

/// " (global, 64 bytes)"; for a field, with the size of its object: " (in a global of 216 bytes)".
std::string about(const ObjectRow& object) {
  if (object.blocks > 1) {
    return about_blocks(object);
  }
  const std::string kind = kind_name(object.kind);
  if (!object.size) {
    return kind.empty() ? "" : " (" + kind + ")";
  }
  const std::string size = size_in_words(*object.size);
  if (object.field.empty()) {
    return " (" + kind + (kind.empty() ? "" : ", ") + size + ")";
  }
  switch (object.kind) {
    case ObjectKind::global:
      return " (in a global of " + size + ")";
    case ObjectKind::heap:
      return " (in a heap block of " + size + ")";
    case ObjectKind::stack:
      return " (in a stack variable of " + size + ")";
    case ObjectKind::tls:
      return " (in a thread-local variable of " + size + ")";
    case ObjectKind::shared:
      return " (in shared memory of " + size + ")";
    case ObjectKind::unknown:
      break;
  }
  return " (in an object of " + size + ")";
}

std::string what(const ObjectRow& object) {
  const bool one = object.size && static_cast<double>(*object.size) <= line_bytes && object.blocks < 2;
  return std::string(one ? "the cache line" : "cache lines") + " of `" + object_in_words(object) + "`" + about(object);
}

/// "cache lines of the condition variable `c` (global, 48 bytes) and of its lock `m` (global, 40 bytes)".
std::string what_with_locks(const ObjectRow& condition, const std::vector<const ObjectRow*>& locks) {
  std::string text = "cache lines of the condition variable `" + object_in_words(condition) + "`" + about(condition);
  for (const ObjectRow* lock : locks) {
    text += " and of its lock `" + object_in_words(*lock) + "`" + about(*lock);
  }
  return text;
}

/// "cache lines of the condition variable `q.ready` and the lock `q.mutex` (in a global of 88 bytes)".
std::string what_within(ObjectRow object, const SyncPair& within) {
  object.field = within.condition->field;
  const std::string condition = object_in_words(object);
  object.field = within.lock->field;
  return "cache lines of the condition variable `" + condition + "` and the lock `" + object_in_words(object) + "`" +
         about(object);
}

constexpr const char* condition_advice =
    "Each hand-over moves both lines between processors and wakes a thread. Hand over more items at a time. Notify "
    "after the lock is released, and only if a thread waits.";

struct Concerned {
  double cpu_s = 0;
  std::string whose = "their time";
};

/// The time that threads pay with. A brief thread represents all of them.
Concerned concerned_by(const Analysis& analysis, const std::set<std::uint32_t>& threads) {
  Concerned concerned;
  double brief_s = 0;
  std::uint64_t brief = 0;
  bool any_brief = false;
  for (const ThreadSummary& thread : analysis.threads) {
    const double cpu_s = thread.cpu_s.value_or(0);
    const bool named = threads.contains(thread.index);
    concerned.cpu_s += !thread.brief && named ? cpu_s : 0;
    brief_s += thread.brief ? cpu_s : 0;
    brief += thread.brief ? 1 : 0;
    any_brief = any_brief || (thread.brief && named);
  }
  if (any_brief) {
    if (brief > 1 && brief_s > concerned.cpu_s) {  // few would know themselves in that name otherwise
      concerned.whose = "the time of all " + std::to_string(brief) + " brief threads";
    }
    concerned.cpu_s += brief_s;
  }
  return concerned;
}

struct Ends {
  std::string producer, consumer;        // "worker() at a.cpp:30"
  std::string producer_at, consumer_at;  // "a.cpp:30"
};

/// The end of an exchange in words. A library's line is no place in the user's code.
std::string end_in_words(const std::string& function, const std::string& file, std::uint32_t line, bool caller_known) {
  return caller_known ? place_in_words(function, file, line) : in_short(function) + " (caller unknown)";
}

/// The places that produce and consume the object's costliest exchange.
Ends ends_of(const Analysis& analysis, const std::string& object) {
  for (const LinePair& p : analysis.communication.line_pairs) {
    if (p.object == object) {
      return {end_in_words(p.producer_function, p.producer_file, p.producer_line, p.producer_caller_known),
              end_in_words(p.consumer_function, p.consumer_file, p.consumer_line, p.consumer_caller_known),
              p.producer_caller_known ? source_name(p.producer_file, p.producer_line) : "",
              p.consumer_caller_known ? source_name(p.consumer_file, p.consumer_line) : ""};
    }
  }
  return {};
}

/// ". This costs about 24 % of their time, in worker() at a.cpp:30.", with a sentence of its own for both ends if they
/// differ. `cost`: may be empty.
std::string cost_and_place(const std::string& cost, const Ends& ends) {
  const std::string costs = cost.empty() ? "" : ". This costs " + cost;
  if (ends.consumer.empty()) {
    return costs + ".";
  }
  if (ends.consumer == ends.producer || ends.producer.empty()) {
    return costs + ", in " + ends.consumer + ".";
  }
  return costs + ". " + ends.producer + " stores; " + ends.consumer + " accesses the line next.";
}

/// The object's kind of sharing, and another possible one unless that would repeat it. A hint has too few observations
/// for percentages.
std::string kind_of(const ObjectRow& object, const ObjectExchange& e, bool hint) {
  std::string text = hint ? noun_of(object.sharing.kind) : kind_in_words(object.sharing.kind, e.false_share);
  if (const auto perhaps = object.sharing.perhaps) {
    const bool sort = *perhaps == SharingKind::false_sharing || *perhaps == SharingKind::true_sharing;
    const std::string noun = noun_of(*perhaps);
    const bool said = text.find(sort && !hint ? " sharing" : noun) != std::string::npos;
    text += said ? "" : " (some of it may be " + noun + ")";
  }
  return text;
}

/// "about 24 % (10 to 49 %) of their time".
std::string cost_in_words(const ObjectRow& object, const Concerned& concerned) {
  if (concerned.cpu_s <= 0) {
    return "about " + seconds_in_words(object.cost_s);
  }
  const std::string share = percent(object.cost_s / concerned.cpu_s);
  const Sum sum = sum_of(object.true_sharing, object.false_sharing);
  const auto part = [&](double s) { return s / concerned.cpu_s; };
  const std::string range =
      is_cost_wide(sum) ? percent_range({part(sum.cost_ci95->low), part(sum.cost_ci95->high)}) : share;
  return (share.starts_with("less") ? "" : "about ") + share + (range == share ? "" : " (" + range + ")") + " of " +
         concerned.whose;
}

/// `locks`: those of a condition variable, whose costs `object` already includes.
Finding object_finding(const Analysis& analysis, const ObjectRow& object,
                       const std::vector<const ObjectRow*>& locks = {}) {
  const ObjectExchange e = exchange_of(object.cells);
  const Ends ends = ends_of(analysis, object.name);
  const bool hint = e.seen < few_detections;
  const SyncPair within = sync_pair_within(object);
  const bool condition = !locks.empty() || within.condition != nullptr;
  std::string text = exchange_in_words(analysis, e,
                                       !locks.empty() ? what_with_locks(object, locks)
                                       : condition    ? what_within(object, within)
                                                      : what(object)) +
                     ": " + (condition ? "a condition variable and its lock" : kind_of(object, e, hint));
  const auto [cpu, whose] = concerned_by(analysis, e.threads);
  text += cost_and_place(object.cost_s > 0 && !hint ? cost_in_words(object, {cpu, whose}) : "", ends);
  const std::string advice = condition ? condition_advice : advice_for(object, e);
  text += advice.empty() ? "" : " " + advice;
  if (hint) {
    text += " This is a hint only: it rests on " + count_of(e.seen, "detection", "detections") + ".";
  } else if (const std::string gain = gain_in_words(object, e, cpu, advice); !gain.empty()) {
    text += " " + gain;
  }
  const Sum gain = advised_gain(object);
  return {text,
          object.cost_s,
          hint ? "hint" : sharing_kind_name(condition ? SharingKind::condition : object.sharing.kind),
          gain.gain_s,
          gain.gain_ci95,
          object.name,
          ends.producer_at,
          ends.consumer_at,
          advice};
}

/// The order of findings: hints last, then by the likely gain, or the middle of the possible gain if that is not known.
double importance(const Finding& finding) {
  const double gain = finding.gain_s      ? *finding.gain_s
                      : finding.gain_ci95 ? (finding.gain_ci95->low + finding.gain_ci95->high) / 2
                                          : 0;
  return finding.kind == "hint" ? -1 / (1 + gain) : gain;
}

/// True for an exchange that is known to gain nothing.
bool gains_nothing(const Finding& finding) {
  return !finding.object.empty() && finding.kind != "hint" && finding.gain_s == 0.0 &&
         (!finding.gain_ci95 || finding.gain_ci95->high <= 0);
}

/// Takes exchanges that gain nothing out of the findings.
std::vector<Finding> without_gain(std::vector<Finding>& findings) {
  const auto begin = std::stable_partition(findings.begin(), findings.end(),
                                           [](const Finding& finding) { return !gains_nothing(finding); });
  std::vector<Finding> taken(std::make_move_iterator(begin), std::make_move_iterator(findings.end()));
  findings.erase(begin, findings.end());
  return taken;
}

/// Says that no communication was seen, and how much evidence there is.
std::string nothing_seen(const Analysis& analysis) {
  const SamplingSummary& s = analysis.sampling;
  if (s.samples == 0) {
    return "No samples were taken: " + why_few_samples(few_samples_facts(analysis)) + ".";
  }
  const Undetected& undetected = analysis.communication.undetected;
  const bool possible = undetected.at_most_s != 0.0;
  const std::string so = std::string(possible ? ", so there is next to no communication between threads ("
                                              : ", so there is no communication between threads (") +
                         count_of(s.samples, "sample", "samples") + ").";
  const std::string one_sampled =
      "Only one thread was sampled, so nothing can be said about communication between threads (" +
      count_of(s.samples, "sample", "samples") + ").";
  const auto running = std::count_if(analysis.threads.begin(), analysis.threads.end(),
                                     [](const ThreadSummary& thread) { return thread.samples > 0; });
  const auto used = std::count_if(analysis.threads.begin(), analysis.threads.end(), [](const ThreadSummary& thread) {
    return thread.samples > 0 || thread.cpu_s.value_or(0) > 0;
  });
  if (used < 2) {
    return analysis.shares_of.empty() ? "Only one thread used CPU time" + so : one_sampled;
  }
  if (!possible) {
    return "No two threads lived at the same time" + so;
  }
  if (running < 2) {
    return one_sampled;
  }
  if (!undetected.met) {
    return "No sample fell into a time when two threads that share memory were alive" + so;
  }
  const bool probed = profile::are_lines_probed(analysis.session);
  if (s.armed == 0) {
    return std::string("No line was ") + (probed ? "probed" : "watched") + " in " +
           count_of(s.samples, "sample", "samples") + ", so nothing can be said about communication. To see some, " +
           to_see_more(analysis) + ".";
  }
  if (s.unknown_writers > 0) {
    return "The communicating threads are unknown: " + std::to_string(s.unknown_writers) + " of " +
           count_of(s.armed, "probe", "probes") +
           " saw a store that no sampled thread is known to make. It may come from a thread without samples, another "
           "process or the kernel.";
  }
  std::string text =
      "No communication between threads was seen in " + count_of(s.samples, "sample", "samples") + " and " +
      (probed ? count_of(s.armed, "probed line", "probed lines") : count_of(s.armed, "watched line", "watched lines")) +
      ".";
  if (analysis.sight.sees == WatchSight::Sees::part) {
    return text;  // observing for longer would lower no limit
  }
  const auto& at_most_s = analysis.communication.undetected.at_most_s;
  const bool little = at_most_s && analysis.cpu_s > 0 ? *at_most_s > much_undetected * analysis.cpu_s
                                                      : s.samples < few_to_tell || s.armed < few_watches;
  return text + (little ? " That is too little to rule it out: " + to_see_more(analysis) + "." : "");
}

/// Describes a use known from samples alone, if nothing could be watched.
std::string use_in_words(const Analysis& analysis, const SampledUse& use) {
  const double share = analysis.cpu_s > 0 ? use.time_s / analysis.cpu_s : 0;
  return begun(threads_in_words(analysis, use.threads)) + " use the same cache lines of `" + use.object +
         "` in turn, and store to them (" + count_of(use.samples, "sample", "samples") +
         "). They probably communicate there. This takes at most " + percent(share) +
         " of the CPU time; the exact share and the order of the threads are unknown.";
}

/// True if watchpoints were blind: then the absence of communication cannot be stated.
bool can_not_be_told(const Analysis& analysis) { return analysis.sight.sees == WatchSight::Sees::nothing; }

/// Puts measured waits in: before all others where they take a large part of the threads' time, and more than any
/// exchange costs; else last.
void add_waits(const Analysis& analysis, std::vector<Finding>& findings) {
  double cost_s = 0;
  for (const Finding& finding : findings) {
    cost_s = std::max(cost_s, finding.cost_s);
  }
  std::size_t at = 0;
  for (WaitFinding& wait : wait_findings(analysis)) {
    const bool much = wait.share >= leading_share || wait.waited_s >= leading_share * analysis.cpu_s;
    const bool leads = much && wait.waited_s >= cost_s;
    findings.insert(leads ? findings.begin() + static_cast<std::ptrdiff_t>(at++) : findings.end(),
                    std::move(wait.finding));
  }
}

}  // namespace

std::vector<Finding> findings_of(const Analysis& analysis) {
  const std::vector<ObjectRow>& objects = analysis.communication.objects;
  const std::vector<ConditionLocks> conditions = condition_locks_of(analysis.communication);
  std::set<std::size_t> locks;  // said with their conditions
  for (const ConditionLocks& condition : conditions) {
    locks.insert(condition.locks.begin(), condition.locks.end());
  }
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].cells.empty() || locks.contains(i)) {
      continue;
    }
    const auto condition =
        std::find_if(conditions.begin(), conditions.end(), [i](const ConditionLocks& h) { return h.condition == i; });
    const bool alone = condition == conditions.end();
    const ObjectRow object = alone ? objects[i] : joined(objects, *condition);
    if (!findings.empty() && object.cost_s < least_share * analysis.cpu_s) {
      continue;
    }
    std::vector<const ObjectRow*> its_locks;
    for (const std::size_t lock : alone ? std::vector<std::size_t>() : condition->locks) {
      its_locks.push_back(&objects[lock]);
    }
    findings.push_back(object_finding(analysis, object, its_locks));
  }
  // Objects come by cost, and keep that order if their gains are equal.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return importance(a) > importance(b); });
  findings.resize(std::min(findings.size(), max_objects));
  if (findings.empty() && !can_not_be_told(analysis)) {
    findings.push_back({nothing_seen(analysis), 0, "none"});
  }
  std::vector<Finding> gainless = without_gain(findings);  // behind all that can be acted upon
  const Finding time = hottest(analysis);
  // The threads' exchanges come first only if they take a large part of the time: their finding comes with advice.
  const auto behind = std::find_if_not(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.kind != "hint" && !finding.object.empty() && finding.cost_s >= leading_share * analysis.cpu_s;
  });
  auto at = behind - findings.begin();
  if (!time.sentence.empty()) {
    findings.insert(findings.begin() + at++, time);
  }
  if (const std::string blindness = blindness_in_words(analysis.sight); !blindness.empty()) {
    // If watchpoints could show nothing, findings on objects rest on weaker evidence and come after this one.
    const bool before_objects = analysis.sight.sees == WatchSight::Sees::nothing;
    findings.insert(before_objects ? findings.begin() + at : findings.end(), {blindness, 0, "blind"});
  }
  std::size_t uses = 0;
  for (const SampledUse& use : analysis.communication.sampled_uses) {
    if (use.time_s >= least_share * analysis.cpu_s && uses++ < max_sampled_uses) {
      findings.push_back({use_in_words(analysis, use), 0, "sampled", {}, {}, use.object});
    }
  }
  if (Finding kernel = in_the_kernel(analysis, time); !kernel.sentence.empty()) {
    findings.push_back(std::move(kernel));
  }
  add_waits(analysis, findings);
  findings.insert(findings.end(), std::make_move_iterator(gainless.begin()), std::make_move_iterator(gainless.end()));
  return findings;
}

}  // namespace crosstalk::attribution
