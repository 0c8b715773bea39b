// SPDX-License-Identifier: Apache-2.0
#include "attribution/wait_findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_share = 0.05;  // of the waiting threads' elapsed time
constexpr std::size_t most = 2;
constexpr std::size_t most_places = 3;  // that a sentence names

/// The waits for one lock or barrier, or at one place where it is not known which.
struct Wait {
  profile::WaitKind kind = profile::WaitKind::mutex;
  std::string object, object_words;      // empty: not known
  std::vector<const WaitPlace*> places;  // longest first
  double waited_s = 0;
  std::set<std::uint32_t> threads;
};

/// True for a library's function that takes a lock or waits at a barrier.
bool waits_for_others(const std::string& through) {
  return through.find("lock") != std::string::npos || through.find("barrier") != std::string::npos;
}

/// The only lock or barrier whose line is accessed at the place; null: none, or several are. A pair's object is what
/// its consumer accesses. What is on a lock's line beside it may give it another kind.
const ObjectRow* object_at(const Analysis& analysis, const WaitPlace& place) {
  std::set<std::string> names;
  std::set<std::string> by_library;
  for (const LinePair& pair : analysis.communication.line_pairs) {
    if (pair.consumer_file == place.file && pair.consumer_line == place.line && place.line != 0) {
      (waits_for_others(pair.consumer_through) ? by_library : names).insert(pair.object);
    }
  }
  const ObjectRow* found = nullptr;
  for (const ObjectRow& row : analysis.communication.objects) {
    const bool of_kind = row.sharing.kind == SharingKind::lock || row.sharing.kind == SharingKind::barrier;
    if (by_library.contains(row.name) || (of_kind && names.contains(row.name))) {
      if (found != nullptr) {
        return nullptr;
      }
      found = &row;
    }
  }
  return found;
}

std::vector<Wait> waits_of(const Analysis& analysis) {
  std::map<std::pair<profile::WaitKind, std::string>, Wait> waits;
  for (const WaitPlace& place : analysis.wait_places) {
    if (profile::class_of(place.kind) == profile::WaitClass::condition || place.kind == profile::WaitKind::all) {
      continue;  // a thread that waits for work loses nothing
    }
    const ObjectRow* const object = object_at(analysis, place);
    const std::string at = place.function + " " + source_name(place.file, place.line);
    Wait& wait = waits[{place.kind, object != nullptr ? object->name : " " + at}];
    wait.kind = place.kind;
    if (object != nullptr) {
      wait.object = object->name;
      wait.object_words = object_in_words(*object);
    }
    wait.places.push_back(&place);
    wait.waited_s += place.waited_s;
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

const char* noun_of_wait(profile::WaitKind kind) {
  switch (kind) {
    case profile::WaitKind::mutex:
      return "mutex";
    case profile::WaitKind::rwlock:
      return "read-write lock";
    case profile::WaitKind::critical:
      return "OpenMP critical section or lock";
    case profile::WaitKind::team:
      return "barrier of their OpenMP team";
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

Finding finding_of(const Analysis& analysis, const Wait& wait, double share) {
  const bool lock = profile::class_of(wait.kind) == profile::WaitClass::lock;
  const WaitPlace& longest = *wait.places.front();
  Finding finding;
  finding.kind = "wait";
  finding.object = wait.object;
  finding.consumer = source_name(longest.file, longest.line);
  finding.advice =
      lock ? "Enter it less often, keep the critical sections short, or divide what it protects among several "
             "locks."
           : "Divide the work more evenly, or let threads meet less often.";
  finding.sentence = begun(threads_in_words(analysis, wait.threads)) + (wait.threads.size() == 1 ? " waits" : " wait") +
                     (lock ? " for the " : " at the ") + noun_of_wait(wait.kind) +
                     (wait.object.empty() ? "" : " `" + wait.object_words + "`") + " in " + places_in_words(wait) +
                     ": " + seconds_in_words(wait.waited_s) +
                     (share > 0 ? ", " + percent(share) + " of their elapsed time" : " of elapsed time") +
                     ", asleep or not. " + finding.advice;
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
