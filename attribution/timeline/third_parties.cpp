// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/third_parties.h"

#include <algorithm>
#include <bit>
#include <map>

#include "profile/drawn_words.h"

namespace crosstalk::attribution {
namespace {

constexpr unsigned page_shift = 12;
constexpr std::uint64_t line_bytes = LineBytes::line_bytes;
constexpr std::uint32_t line_words = profile::LineState::words;

ProcessId process_of(std::span<const profile::ThreadRow> threads, ThreadId thread) {
  return threads[thread.value].process;
}

bool has(WordMask words, std::uint32_t word) { return ((words >> word) & 1U) != 0; }
WordMask mask_of(std::uint32_t word) { return static_cast<WordMask>(1U << word); }

const AccessPoint* by_thread(std::span<const AccessPoint> points, ThreadId thread) {
  const auto found =
      std::find_if(points.begin(), points.end(), [&](const AccessPoint& point) { return point.thread == thread; });
  return found != points.end() ? &*found : nullptr;
}

/// A communication with a producer to find. There may be millions.
struct Case {
  std::uint32_t timeline = 0, index = 0;  // among its communications
  std::uint32_t first_other = 0;          // stores of those who may have stored last, the producer seen apart
  std::uint16_t others = 0;
  bool producer = true;  // it may have, too
  [[nodiscard]] std::size_t candidates() const { return std::size_t{others} + (producer ? 1 : 0); }
};

bool may_be_anothers(const SeenCommunication& seen) { return seen.changed != 0 || seen.expected(); }

class ProducerSearch {
 public:
  ProducerSearch(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                 const LineStores& stores, std::span<const profile::ThreadRow> threads)
      : watches_(watches), timelines_(timelines), stores_(stores), threads_(threads) {}

  void run() {
    for (std::size_t i = 0; i < timelines_.size() && i < watches_.size(); ++i) {
      take(i);
    }
    for (const Case& one : cases_) {
      count(one, seen_of(one));
    }
    for (auto first = cases_.begin(); first != cases_.end();) {
      const auto next =
          std::find_if(first, cases_.end(), [&](const Case& one) { return one.timeline != first->timeline; });
      settle_all(std::span(first, next));
      first = next;
    }
  }

 private:
  using Page = std::pair<std::uint32_t, std::uint64_t>;  // consumer, page
  struct Tally {
    std::map<std::uint32_t, double> alone;  // by producer: communications of which it was the only candidate
    double decided = 0, open = 0;
  };

  static Page page_of(const SeenCommunication& seen) {
    return {seen.consumer.thread.value, seen.consumer.line >> page_shift};
  }

  /// Takes a timeline's open communications. Leaves timelines without unseen changes as they are.
  void take(std::size_t timeline) {
    auto& communications = timelines_[timeline].communications;
    if (std::none_of(communications.begin(), communications.end(), may_be_anothers)) {
      for (const SeenCommunication& seen : communications) {
        count({}, seen);
      }
      return;
    }
    const WordMask others_words = words_of_others(timeline);
    for (std::size_t i = 0; i < communications.size(); ++i) {
      SeenCommunication& seen = communications[i];
      Case one = case_of(timeline, seen);
      one.index = static_cast<std::uint32_t>(i);
      if (found_by_drawn_word(timeline, seen)) {
        const double candidates = profile::drawn_from(watches_[timeline].words[0].length);
        seen.weight = weight_of_any(1 / seen.weight, candidates, others_words);
      }
      cases_.push_back(one);
    }
  }

  [[nodiscard]] const SeenCommunication& seen_of(const Case& one) const {
    return timelines_[one.timeline].communications[one.index];
  }
  [[nodiscard]] std::span<const AccessPoint* const> others_of(const Case& one) const {
    return std::span(others_).subspan(one.first_other, one.others);
  }

  /// The threads known to store to a word. None if the processes share the line, because each maps it at another
  /// address.
  [[nodiscard]] std::span<const AccessPoint> known(const SeenCommunication& seen, std::uint32_t word) const {
    const ProcessId process = process_of(threads_, seen.consumer.thread);
    return process == process_of(threads_, seen.producer.thread) ? stores_.to(process, seen.consumer.line, word)
                                                                 : std::span<const AccessPoint>();
  }

  /// True for watched bytes: another thread's store to them would have been seen.
  static bool is_watched(const profile::WatchRow& watch, LineBytes bytes) {
    return std::any_of(watch.words.begin(), watch.words.end(), [&](const profile::WatchWord& watched) {
      return LineBytes::range(watched.offset, watched.length).overlaps(bytes);
    });
  }

  /// Calls `take(const AccessPoint&)` for the `storers` that may have changed a word unseen; for none if `own`, which
  /// came back to the line afterwards, may have done it.
  template <class Take>
  static void for_each_unseen(const profile::WatchRow& watch, std::span<const AccessPoint> storers, ThreadId own,
                              Take take) {
    const AccessPoint* const its_own = by_thread(storers, own);
    if (its_own != nullptr && !is_watched(watch, its_own->bytes)) {
      return;
    }
    for (const AccessPoint& store : storers) {
      if (store.thread != own && !is_watched(watch, store.bytes)) {
        take(store);
      }
    }
  }

  [[nodiscard]] Case case_of(std::size_t timeline, const SeenCommunication& seen) {
    Case one{static_cast<std::uint32_t>(timeline), 0, static_cast<std::uint32_t>(others_.size()), 0, seen.changed == 0};
    for (std::uint32_t word = 0; word < line_words; ++word) {
      const auto storers = has(seen.changed, word) ? known(seen, word) : std::span<const AccessPoint>();
      if (storers.size() == LineStores::most) {
        one.producer = true;  // there may be more than are listed
        continue;
      }
      const AccessPoint* const producers = by_thread(storers, seen.producer.thread);
      one.producer |= producers != nullptr;
      if (producers != nullptr && !is_watched(watches_[timeline], producers->bytes)) {
        continue;
      }
      for_each_unseen(watches_[timeline], storers, seen.consumer.thread, [&](const AccessPoint& store) {
        const auto same = [&](const AccessPoint* other) { return other->thread == store.thread; };
        const auto others = others_of(one);
        if (std::none_of(others.begin(), others.end(), same)) {
          others_.push_back(&store);
          ++one.others;
        }
      });
    }
    one.producer |= one.others == 0;
    return one;
  }

  /// Words that changed during the watch and to which its sampled thread is not known to store, without their watched
  /// parts.
  [[nodiscard]] WordMask words_of_others(std::size_t timeline) const {
    const profile::WatchRow& watch = watches_[timeline];
    WordMask words = 0;
    for (const SeenCommunication& seen : timelines_[timeline].communications) {
      for (std::uint32_t word = 0; word < line_words; ++word) {
        const auto storers = known(seen, word);
        if (has(seen.changed, word) && storers.size() < LineStores::most) {
          for_each_unseen(watch, storers, watch.thread,
                          [&](const AccessPoint&) { words = static_cast<WordMask>(words | mask_of(word)); });
        }
      }
    }
    return words;
  }

  /// True if the consumer was sampled, and the drawn word found its producer.
  [[nodiscard]] bool found_by_drawn_word(std::size_t timeline, const SeenCommunication& seen) const {
    const profile::WatchRow& watch = watches_[timeline];
    return watch.words.size() == 2 && watch.words[0].probability == 1 && seen.consumer.thread == watch.thread &&
           seen.weight > 1;
  }

  /// 1 / the probability that the drawn word is one of those of the producer and of `others`. The collector draws one
  /// word: a partner's word that the board names with a large probability, else any of the rest, one of `candidates` in
  /// all. If an unlikely word was drawn, another one was named, which is then assumed to be among the others.
  static double weight_of_any(double drawn, double candidates, WordMask others) {
    const double rest = std::popcount(others);
    if (rest == 0) {
      return 1 / drawn;
    }
    const double other = (1 - drawn) / (candidates - 1);
    const double named = 1 - (candidates - 1) * drawn;
    const double all = drawn * candidates >= 1 ? drawn + rest * other : named + rest * drawn;
    return 1 / std::min(1.0, all);
  }

  void count(const Case& one, const SeenCommunication& seen) {
    if (seen.expected()) {
      return;
    }
    Tally& tally = tallies_[page_of(seen)];
    if (one.candidates() > 1) {
      tally.open += seen.weight;
      return;
    }
    tally.decided += seen.weight;
    const ThreadId only = one.producer ? seen.producer.thread : others_of(one).front()->thread;
    tally.alone[only.value] += seen.weight;
  }

  /// True if the producer stores to the sampled bytes, too.
  [[nodiscard]] bool stores_to_sampled(const SeenCommunication& seen) const {
    for (std::uint32_t word = 0; word < line_words; ++word) {
      if (word_of(word).overlaps(seen.consumer.bytes) &&
          by_thread(known(seen, word), seen.producer.thread) != nullptr) {
        return true;
      }
    }
    return false;
  }

  /// True if the communication needs no change.
  [[nodiscard]] bool stays(const Case& one) const {
    const SeenCommunication& seen = seen_of(one);
    return seen.expected() ? one.others == 0 && !stores_to_sampled(seen) : one.candidates() == 1 && one.producer;
  }

  /// Settles all cases of one timeline.
  void settle_all(std::span<const Case> cases) {
    if (std::all_of(cases.begin(), cases.end(), [this](const Case& one) { return stays(one); })) {
      return;
    }
    std::vector<SeenCommunication> all;
    all.swap(timelines_[cases.front().timeline].communications);
    for (const Case& one : cases) {
      settle(one, all[one.index]);
    }
  }

  void settle(const Case& one, const SeenCommunication& seen) {
    OwnershipTimeline& timeline = timelines_[one.timeline];
    if (seen.expected()) {
      const bool told = one.others == 0 && !stores_to_sampled(seen);
      (told ? timeline.communications : timeline.interrupted).push_back(seen);
      return;
    }
    const std::span<const AccessPoint* const> others = others_of(one);
    if (one.candidates() == 1) {
      one.producer ? timeline.communications.push_back(seen) : reassign(timeline, seen, *others.front(), 1);
      return;
    }
    const Tally& tally = tallies_[page_of(seen)];
    const auto alone = [&](ThreadId thread) {
      const auto found = tally.alone.find(thread.value);
      return found != tally.alone.end() ? found->second : 0;
    };
    double total = one.producer ? alone(seen.producer.thread) : 0;
    for (const AccessPoint* store : others) {
      total += alone(store->thread);
    }
    if (tally.decided < least_decided * tally.open || !(total > 0)) {
      (one.producer ? timeline.communications : timeline.interrupted).push_back(seen);
      return;
    }
    for (const AccessPoint* store : others) {
      reassign(timeline, seen, *store, alone(store->thread) / total);
    }
    if (one.producer) {
      add(timeline, seen, alone(seen.producer.thread) / total);
    }
  }

  static void add(OwnershipTimeline& timeline, SeenCommunication seen, double share) {
    if (share > 0) {
      seen.share = share;
      seen.weight *= share;
      timeline.communications.push_back(seen);
    }
  }

  /// Moves the part `share` of a communication to another producer, with a store like `store`.
  static void reassign(OwnershipTimeline& timeline, const SeenCommunication& seen, const AccessPoint& store,
                       double share) {
    SeenCommunication other = seen;
    other.producer = store;
    other.producer.line = seen.producer.line;
    other.producer.time_ns = seen.consumer.time_ns;
    other.producer.stack = {};
    other.producer.sampled = false;
    other.true_sharing = is_true_sharing(store, seen.consumer);
    add(timeline, other, share);
  }

  static constexpr double least_decided = 0.25;  // of what is open

  std::span<const profile::WatchRow> watches_;
  std::span<OwnershipTimeline> timelines_;
  const LineStores& stores_;
  std::span<const profile::ThreadRow> threads_;
  std::vector<Case> cases_;                 // by timeline
  std::vector<const AccessPoint*> others_;  // of cases
  struct PageHash {
    std::size_t operator()(const Page& page) const noexcept {
      return spread(page.second ^ (std::uint64_t{page.first} << 48U));
    }
  };
  std::unordered_map<Page, Tally, PageHash> tallies_;
};

}  // namespace

LineStores::LineStores(std::span<const OwnershipTimeline> timelines, std::span<const profile::ThreadRow> threads)
    : threads_(threads) {
  std::pair<ProcessId, std::uint64_t> latest;  // a watch's communications are mostly on one line
  for (const OwnershipTimeline& timeline : timelines) {
    for (const SeenCommunication& seen : timeline.communications) {
      const ProcessId process = process_of(threads_, seen.consumer.thread);
      if (may_be_anothers(seen) && (lines_.empty() || latest != std::pair(process, seen.consumer.line))) {
        latest = {process, seen.consumer.line};
        lines_[{process.value, seen.consumer.line}];
        pages_[{process.value, seen.consumer.line >> page_shift}];
      }
    }
  }
  for (const OwnershipTimeline& timeline : timelines) {
    for (const AccessPoint& point : timeline.accesses) {
      if (crosstalk::stores(point.kind)) {
        note(process_of(threads_, point.thread), point);
      }
    }
  }
}

void LineStores::add(const profile::SampleRow& sample) {
  if (pages_.empty() || sample.address == 0 || !crosstalk::stores(sample.access) ||
      sample.thread.value >= threads_.size()) {
    return;
  }
  AccessPoint point;
  point.thread = sample.thread;
  point.instruction = sample.access_ip != 0 ? sample.access_ip : sample.ip;
  point.time_ns = sample.time_ns;
  point.cpu = sample.cpu;
  point.kind = sample.access;
  point.line = sample.address - sample.address % line_bytes;
  point.bytes = LineBytes::range(static_cast<std::int64_t>(sample.address - point.line),
                                 std::max<std::uint64_t>(sample.width, 1));
  note(process_of(threads_, sample.thread), point);
}

void LineStores::note(ProcessId process, const AccessPoint& store) {
  const auto page = pages_.find({process.value, store.line >> page_shift});
  if (page == pages_.end()) {
    return;
  }
  const auto line = lines_.find({process.value, store.line});
  for (std::uint32_t word = 0; word < line_words; ++word) {
    if (!store.bytes.overlaps(word_of(word))) {
      continue;
    }
    for (Place* place : {&page->second, line != lines_.end() ? &line->second : nullptr}) {
      auto* known = place != nullptr ? &place->stores[word] : nullptr;
      if (known != nullptr && known->size() < most && by_thread(*known, store.thread) == nullptr) {
        known->push_back(store);
      }
    }
  }
}

std::span<const AccessPoint> LineStores::to(ProcessId process, std::uint64_t line, std::uint32_t word) const {
  if (const auto own = lines_.find({process.value, line}); own != lines_.end() && !own->second.stores[word].empty()) {
    return own->second.stores[word];
  }
  const auto page = pages_.find({process.value, line >> page_shift});
  return page != pages_.end() ? std::span<const AccessPoint>(page->second.stores[word])
                              : std::span<const AccessPoint>();
}

void find_producers(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                    const LineStores& stores, std::span<const profile::ThreadRow> threads) {
  ProducerSearch(watches, timelines, stores, threads).run();
}

}  // namespace crosstalk::attribution
