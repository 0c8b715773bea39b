// SPDX-License-Identifier: Apache-2.0
#include "attribution/wait_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "attribution/condition_locks.h"
#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_share = 0.05;  // of the waiting threads' elapsed time
constexpr std::size_t most = 2;
constexpr double normal_95 = 1.96;
constexpr std::size_t most_places = 3;  // that a sentence names

/// The waits for one lock or barrier, or at one place where it is not known which.
struct Wait {
  profile::WaitKind kind = profile::WaitKind::mutex;
  std::string object, object_words;      // empty: not known
  bool one_of_several = false;           // the object has several locks
  std::vector<const WaitPlace*> places;  // longest first
  double waited_s = 0;
  double variance_s2 = 0;  // of waited_s
  bool sampled = false;
  std::set<std::uint32_t> threads;
};

/// True for a library's function that takes a lock or waits at a barrier.
bool waits_for_others(const std::string& through) {
  return through.find("lock") != std::string::npos || through.find("barrier") != std::string::npos;
}

bool is_waited_for(SharingKind kind) { return kind == SharingKind::lock || kind == SharingKind::barrier; }

/// A lock or barrier.
struct Awaited {
  ObjectRow row;  // its field is the lock; empty: the object has several, or has no fields
  bool one_of_several = false;
};

/// The lock or barrier that an object is or has: never a condition variable, for which its lock stands if that is
/// known.
std::optional<Awaited> awaited_in(const Communication& communication, const ObjectRow& row) {
  if (!row.sync_fields.empty()) {
    Awaited awaited{row};
    const auto is_one = [](const SyncField& field) { return is_waited_for(field.kind); };
    const auto locks = std::count_if(row.sync_fields.begin(), row.sync_fields.end(), is_one);
    if (locks == 0) {
      return std::nullopt;
    }
    awaited.one_of_several = locks > 1;
    awaited.row.field = locks > 1 ? "" : std::find_if(row.sync_fields.begin(), row.sync_fields.end(), is_one)->field;
    return awaited;
  }
  if (row.sharing.kind != SharingKind::condition) {
    return Awaited{row};
  }
  for (const ConditionLocks& condition : condition_locks_of(communication)) {
    if (communication.objects[condition.condition].name == row.name && condition.locks.size() == 1) {
      return Awaited{communication.objects[condition.locks.front()]};
    }
  }
  return std::nullopt;
}

/// The names of objects that are accessed at the place: by a library's function that waits, and by other code.
struct NamesAt {
  std::set<std::string> by_library, others;
};
NamesAt names_at(const Analysis& analysis, const WaitPlace& place) {
  NamesAt names;
  for (const LinePair& pair : analysis.communication.line_pairs) {
    if (pair.consumer_file == place.file && pair.consumer_line == place.line && place.line != 0) {
      (waits_for_others(pair.consumer_through) ? names.by_library : names.others).insert(pair.object);
    }
  }
  // A pair's object is what its consumer accesses. A producer that takes a lock has very likely stored to the same one.
  const bool stores_alone = names.by_library.empty() && names.others.empty();
  for (const LinePair& pair : analysis.communication.line_pairs) {
    if (stores_alone && pair.producer_file == place.file && pair.producer_line == place.line && place.line != 0 &&
        waits_for_others(pair.producer_through) && waits_for_others(pair.consumer_through)) {
      names.by_library.insert(pair.object);
    }
  }
  return names;
}

/// The object that has nearly all of the place's sampled waits, by the address of their futex; nullopt if there is
/// none.
std::optional<Awaited> awaited_at(const WaitPlace& place) {
  constexpr double nearly_all = 0.9;
  if (place.objects.empty() || place.objects.front().waited_s < nearly_all * place.waited_s) {
    return std::nullopt;
  }
  const WaitPlace::Object& object = place.objects.front();
  Awaited awaited;
  awaited.row.name = object.name;
  awaited.row.field = object.field;
  awaited.row.place = object.place;
  awaited.row.kind = object.kind;
  return awaited;
}

/// Returns the lock or barrier whose line is accessed at the place; nullopt if there is none, or if there are several.
/// Other data on its line may give the object another kind, so the library's functions decide, too.
std::optional<Awaited> object_at(const Analysis& analysis, const WaitPlace& place) {
  const NamesAt names = names_at(analysis, place);
  std::optional<Awaited> found;
  for (const ObjectRow& row : analysis.communication.objects) {
    const bool by_kind = is_waited_for(row.sharing.kind) && names.others.contains(row.name);
    std::optional<Awaited> awaited;
    if (by_kind || names.by_library.contains(row.name)) {
      awaited = awaited_in(analysis.communication, row);
    }
    if (!awaited || (found && found->row.name == awaited->row.name)) {
      continue;
    }
    if (found) {
      return std::nullopt;
    }
    found = std::move(awaited);
  }
  return found;
}

std::vector<Wait> waits_of(const Analysis& analysis) {
  std::map<std::pair<profile::WaitKind, std::string>, Wait> waits;
  for (const WaitPlace& place : analysis.wait_places) {
    if (profile::class_of(place.kind) == profile::WaitClass::condition || place.kind == profile::WaitKind::all) {
      continue;  // a thread that waits for work loses nothing
    }
    const std::optional<Awaited> object = place.sampled ? awaited_at(place) : object_at(analysis, place);
    const std::string at = place.function + " " + source_name(place.file, place.line);
    const std::string words = object ? object_in_words(object->row) : "";
    Wait& wait = waits[{place.kind, !object ? " " + at : place.sampled ? words : object->row.name}];
    wait.kind = place.kind;
    if (object && (!place.sampled || object->row.kind != ObjectKind::unknown)) {  // an address says nothing to readers
      wait.object = object->row.name;
      wait.object_words = words;
      wait.one_of_several = object->one_of_several;
    }
    wait.places.push_back(&place);
    wait.waited_s += place.waited_s;
    wait.variance_s2 += std::pow((place.waited_ci95.high - place.waited_s) / normal_95, 2);
    wait.sampled = wait.sampled || place.sampled;
    for (const WaitPlace::Thread& thread : place.threads) {
      wait.threads.insert(thread.thread);
    }
  }
  std::vector<Wait> list;
  for (auto& [key, wait] : waits) {
    list.push_back(std::move(wait));
  }
  std::stable_sort(list.begin(), list.end(), [](const Wait& a, const Wait& b) { return a.waited_s > b.waited_s; });
  return list;
}

/// The elapsed time of the threads together; 0: that of one is not known.
double elapsed_s(const Analysis& analysis, const std::set<std::uint32_t>& threads) {
  double sum_s = 0;
  std::size_t known = 0;
  for (const ThreadSummary& thread : analysis.threads) {
    if (thread.waits && threads.contains(thread.index)) {
      sum_s += thread.waits->total();
      ++known;
    }
  }
  return known == threads.size() ? sum_s : 0;
}

const char* noun_of_wait(profile::WaitKind kind, bool one_thread) {
  switch (kind) {
    case profile::WaitKind::mutex:
      return "mutex";
    case profile::WaitKind::rwlock:
      return "read-write lock";
    case profile::WaitKind::critical:
      return "OpenMP critical section or lock";
    case profile::WaitKind::team:
      return one_thread ? "barrier of its OpenMP team" : "barrier of their OpenMP team";
    default:
      return "barrier";
  }
}

/// "add() at a.cpp:14 and take() at a.cpp:30".
std::string places_in_words(const Wait& wait) {
  std::string text;
  const std::size_t shown = std::min(most_places, wait.places.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const WaitPlace& place = *wait.places[i];
    const std::string at = place_in_words(place.function, place.file, place.line);
    text += (i == 0 ? "" : i + 1 == wait.places.size() ? " and " : ", ") + (at.empty() ? "code without names" : at);
  }
  return text + (wait.places.size() > shown ? ", and others" : "");
}

/// "43 %"; of sampled waits "about 31 % (29 to 33 %)".
std::string share_in_words(const Wait& wait, double share) {
  const double off = wait.waited_s > 0 ? share * normal_95 * std::sqrt(wait.variance_s2) / wait.waited_s : 0;
  const std::string range = percent_range({std::max(0.0, share - off), std::min(1.0, share + off)});
  return !wait.sampled || range == "about " + percent(share) ? percent(share)
                                                             : "about " + percent(share) + " (" + range + ")";
}

Finding finding_of(const Analysis& analysis, const Wait& wait, double share) {
  const bool lock = profile::class_of(wait.kind) == profile::WaitClass::lock;
  const bool one_thread = wait.threads.size() == 1;
  const WaitPlace& longest = *wait.places.front();
  Finding finding;
  finding.kind = "wait";
  finding.object = wait.object;
  finding.consumer = source_name(longest.file, longest.line);
  finding.advice =
      lock ? "Take the lock less often, hold it for less time, or divide the data that it protects among several locks."
           : "Divide the work more evenly, or let threads meet less often.";
  finding.sentence =
      begun(threads_in_words(analysis, wait.threads)) + (one_thread ? " waits" : " wait") + (lock ? " for " : " at ") +
      (wait.one_of_several ? "a " : "the ") + noun_of_wait(wait.kind, one_thread) + (wait.one_of_several ? " of" : "") +
      (wait.object.empty() ? "" : " `" + wait.object_words + "`") + " in " + places_in_words(wait) + ": " +
      seconds_in_words(wait.waited_s) +
      (share > 0 ? ", " + share_in_words(wait, share) + (one_thread ? " of its elapsed time" : " of their elapsed time")
                 : " of elapsed time") +
      (wait.sampled ? ", asleep (sampled from outside). " : ", from call to return. ") + finding.advice;
  return finding;
}

}  // namespace

std::vector<WaitFinding> wait_findings(const Analysis& analysis) {
  std::vector<WaitFinding> findings;
  for (const Wait& wait : waits_of(analysis)) {
    const double all_s = elapsed_s(analysis, wait.threads);
    const double share = all_s > 0 ? std::min(1.0, wait.waited_s / all_s) : 0;
    const bool notable = all_s > 0 ? share >= least_share : wait.waited_s >= least_share * analysis.duration_s;
    if (notable && wait.waited_s > 0 && findings.size() < most) {
      findings.push_back({finding_of(analysis, wait, share), wait.waited_s, share});
    }
  }
  return findings;
}

}  // namespace crosstalk::attribution
