// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/ownership_timeline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "attribution/timeline/probe_effect.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t sampled_word = profile::max_watch_words;  // stands for "the sampled bytes", always watched
constexpr double least_probability = 1e-3;

LineBytes bytes_of(const profile::WatchWord& word) { return LineBytes::range(word.offset, word.length); }

double probability_of(const profile::WatchRow& watch, std::size_t word) {
  if (word >= watch.words.size()) {
    return 1;
  }
  const double p = watch.words[word].probability;
  return std::isfinite(p) ? std::clamp(p, least_probability, 1.0) : 1.0;
}

/// 1 / probability that both words were watched. Random words are drawn together without replacement, all with the same
/// probability: of `n = drawn / p` candidates, so a second one has (drawn - 1) / (n - 1).
double inverse_probability(const profile::WatchRow& watch, std::size_t a, std::size_t b) {
  const double pa = probability_of(watch, a);
  const double pb = probability_of(watch, b);
  if (a == b || pa == 1 || pb == 1) {
    return 1 / std::min(pa, pb);
  }
  double drawn = 0;
  for (std::size_t i = 0; i < watch.words.size(); ++i) {
    drawn += probability_of(watch, i) < 1 ? 1 : 0;
  }
  const double candidates = drawn / pb;
  const double second = drawn > 1 && candidates > 1 ? (drawn - 1) / (candidates - 1) : pb;
  return 1 / std::max(pa * second, least_probability);
}

/// The word that represents an access that trapped at `trapped`. An access to several watched words traps once, at any
/// of them, because signals of one kind that come together are one: takes the word most likely to be watched.
std::size_t word_of_access(const profile::WatchRow& watch, std::size_t trapped, const LineBytes& bytes) {
  std::size_t best = trapped;
  for (std::size_t word = 0; word < watch.words.size(); ++word) {
    if (probability_of(watch, word) > probability_of(watch, best) && bytes_of(watch.words[word]).overlaps(bytes)) {
      best = word;
    }
  }
  return best;
}

/// The access of a trap row, by its instruction, without its weight.
AccessPoint decode(const profile::WatchRow& watch, const profile::TrapRow& trap, const profile::ThreadRow& thread,
                   const AccessLookup& access_before) {
  AccessPoint point;
  point.thread = trap.thread;
  point.line = trap.line != 0 ? trap.line : watch.line;
  point.time_ns = trap.time_ns;
  point.stack = trap.stack;
  point.cpu = trap.cpu;
  point.instruction = trap.ip - 1;
  point.bytes = bytes_of(watch.words[trap.word]);
  if (const auto access = access_before(Moment{thread.process, trap.time_ns}, trap.ip)) {
    if (access->instruction_bytes != 0) {
      point.instruction = trap.ip - access->instruction_bytes;
    }
    point.kind = access->kind;
    const auto exact = touched_bytes(*access, trap.registers, trap.ip, thread.thread_pointer, point.line);
    if (exact && exact->overlaps(point.bytes)) {
      point.bytes = *exact;
    } else if (exact) {
      point.kind = AccessKind::none;  // the trap was for another operand than the one known
    }
  }
  if (trap.write_only && !stores(point.kind)) {
    point.kind = AccessKind::store;
  }
  return point;
}

using State = std::optional<profile::LineState>;  // of a line; absent: not known

WordMask changed_between(const State& before, const State& after) {
  WordMask changed = 0;
  for (std::uint32_t i = 0; before && after && i < profile::LineState::words; ++i) {
    changed |= before->word[i] != after->word[i] ? static_cast<WordMask>(1U << i) : WordMask{0};
  }
  return changed;
}

/// The line as its watchers see it: the last storer, and each thread's last access.
class Line {
 public:
  /// At most `accesses` accesses follow.
  Line(const profile::WatchRow& watch, std::size_t accesses, OwnershipTimeline& timeline)
      : watch_(watch), timeline_(timeline) {
    events_.reserve(accesses);
  }

  /// `state` is the line's after the access; `position` orders accesses within the watch, over all its lines of
  /// evidence.
  void access(const AccessPoint& point, const State& state, std::size_t word, std::size_t position) {
    const std::size_t index = events_.size();
    events_.push_back({point, state, word, position});
    const Trace* own = trace_of(point.thread);
    const std::size_t since = own == nullptr ? epoch_ : own->last + 1;
    if (last_store_ != none && events_[last_store_].point.thread != point.thread && last_store_ >= since) {
      communicate(since, index);
    } else {
      settle(index);
      if (stores(point.kind)) {
        invalidate(index);
      }
    }
    remember(index);
  }

  /// Forgets everything, after a missing trap.
  void forget() {
    traces_.clear();
    unsettled_.reset();
    last_store_ = none;
    epoch_ = events_.size();
  }

  void finish() {
    timeline_.accesses.reserve(events_.size());
    for (const Event& event : events_) {
      timeline_.accesses.push_back(event.point);
    }
  }

  /// The thread that stored last, if that is known and `consumer` has not touched the line since.
  [[nodiscard]] std::optional<ThreadId> waiting_for(ThreadId consumer) const {
    const Trace* own = trace_of(consumer);
    const bool fresh = last_store_ != none && events_[last_store_].point.thread != consumer &&
                       (own == nullptr || own->last < last_store_);
    return fresh ? std::optional(events_[last_store_].point.thread) : std::nullopt;
  }

  /// Position of the consumer's access, by communication.
  [[nodiscard]] const std::vector<std::size_t>& consumed() const { return consumed_; }
  /// The line's state after an access, by the order of accesses.
  [[nodiscard]] const State& state_after(std::size_t access) const { return events_[access].state; }

 private:
  struct Event {
    AccessPoint point;
    State state;
    std::size_t word;
    std::size_t position;
  };
  struct Trace {
    std::uint32_t thread = 0;
    std::size_t last = 0;       // the thread's latest access
    std::size_t last_read = 0;  // its latest plain load; meaningful if has_read
    bool has_read = false;
  };
  struct Unsettled {
    std::size_t communication, last_store;
  };
  static constexpr std::size_t none = SIZE_MAX;

  /// Adds the communication of the access `consumer` with the last storing thread's stores at events [since, consumer).
  void communicate(std::size_t since, std::size_t consumer) {
    const Event& reader = events_[consumer];
    const ThreadId producer = events_[last_store_].point.thread;
    const std::optional<std::size_t> overlap = overlapping_store(since, last_store_, producer, reader.point.bytes);
    const Event& source = events_[overlap.value_or(last_store_)];
    timeline_.communications.push_back({source.point, reader.point, overlap.has_value(),
                                        inverse_probability(watch_, source.word, reader.word), 1,
                                        changed_between(events_[last_store_].state, reader.state)});
    consumed_.push_back(reader.position);
    unsettled_.reset();
    if (!overlap && in_opening_run(last_store_)) {
      unsettled_ = Unsettled{timeline_.communications.size() - 1, last_store_};
    }
  }

  /// The latest store of `producer` at events [begin, last] to any of `bytes`.
  [[nodiscard]] std::optional<std::size_t> overlapping_store(std::size_t begin, std::size_t last, ThreadId producer,
                                                             const LineBytes& bytes) const {
    for (std::size_t i = last + 1; i-- > begin;) {
      const AccessPoint& point = events_[i].point;
      if (point.thread == producer && stores(point.kind) && point.bytes.overlaps(bytes)) {
        return i;
      }
    }
    return std::nullopt;
  }

  /// True if the run of `store` was in progress when watching began: then its earlier stores are not known.
  [[nodiscard]] bool in_opening_run(std::size_t store) const {
    return std::all_of(events_.begin() + static_cast<std::ptrdiff_t>(epoch_),
                       events_.begin() + static_cast<std::ptrdiff_t>(store),
                       [&](const Event& event) { return event.point.thread == events_[store].point.thread; });
  }

  /// Settles a communication from an opening run whose first access touches no byte that was seen stored. It is false
  /// sharing, unless the consumer goes on to such a byte. Then it takes the producer's data, and the first byte's store
  /// was among the unwatched ones.
  void settle(std::size_t index) {
    if (!unsettled_) {
      return;
    }
    const AccessPoint& point = events_[index].point;
    SeenCommunication& seen = timeline_.communications[unsettled_->communication];
    if (point.thread != seen.consumer.thread) {
      unsettled_.reset();
    } else if (overlapping_store(epoch_, unsettled_->last_store, seen.producer.thread, point.bytes)) {
      seen.true_sharing = true;
      unsettled_.reset();
    }
  }

  void invalidate(std::size_t store) {
    const Event& writer = events_[store];
    for (const Trace& trace : traces_) {
      const bool since_store = trace.has_read && (last_store_ == none || trace.last_read > last_store_);
      if (trace.thread != writer.point.thread.value && since_store) {
        const Event& reader = events_[trace.last_read];
        timeline_.invalidations.push_back(
            {writer.point, reader.point, inverse_probability(watch_, writer.word, reader.word)});
      }
    }
  }

  void remember(std::size_t index) {
    const AccessPoint& point = events_[index].point;
    Trace& trace = *place_of(point.thread);
    trace.last = index;
    if (point.kind == AccessKind::load) {
      trace.last_read = index;
      trace.has_read = true;
    }
    if (stores(point.kind)) {
      last_store_ = index;
    }
  }

  /// nullptr: the thread has not touched the line.
  [[nodiscard]] const Trace* trace_of(ThreadId thread) const {
    const auto found =
        std::find_if(traces_.begin(), traces_.end(), [&](const Trace& trace) { return trace.thread == thread.value; });
    return found != traces_.end() ? &*found : nullptr;
  }
  /// The thread's trace, a new one if necessary.
  std::vector<Trace>::iterator place_of(ThreadId thread) {
    const auto at = std::lower_bound(traces_.begin(), traces_.end(), thread.value,
                                     [](const Trace& trace, std::uint32_t id) { return trace.thread < id; });
    return at != traces_.end() && at->thread == thread.value ? at : traces_.insert(at, Trace{thread.value});
  }

  const profile::WatchRow& watch_;
  OwnershipTimeline& timeline_;
  std::vector<Event> events_;
  std::vector<Trace> traces_;  // by thread, a few; ordered, so that results are
  std::vector<std::size_t> consumed_;
  std::optional<Unsettled> unsettled_;
  std::size_t last_store_ = none;
  std::size_t epoch_ = 0;
};

/// Makes the timeline twice: by all watched words, and by those alone that were certain to be watched.
class Teller {
 public:
  Teller(const profile::WatchRow& watch, std::size_t accesses, OwnershipTimeline& timeline)
      : watch_(watch),
        timeline_(timeline),
        line_(watch, accesses, timeline),
        certain_line_(watch, accesses, certain_) {}

  void access(const AccessPoint& point, const State& state, std::size_t word) {
    line_.access(point, state, word, position_);
    if (probability_of(watch_, word) == 1) {
      certain_line_.access(point, state, word, position_);
    }
    ++position_;
  }
  void forget() {
    line_.forget();
    certain_line_.forget();
  }
  void finish() {
    line_.finish();
    spare_the_certain();
    spare_the_cut_off();
  }
  [[nodiscard]] const State& state_after(std::size_t access) const { return line_.state_after(access); }

 private:
  /// Sets the weight of communications that the certain words also show to 1: those with the same producer, before the
  /// consumer's next communication.
  void spare_the_certain() {
    for (std::size_t i = 0; i < timeline_.communications.size(); ++i) {
      SeenCommunication& seen = timeline_.communications[i];
      if (seen.weight == 1) {
        continue;
      }
      std::size_t end = position_;
      for (std::size_t k = i + 1; k < timeline_.communications.size() && end == position_; ++k) {
        end = timeline_.communications[k].consumer.thread == seen.consumer.thread ? line_.consumed()[k] : end;
      }
      const auto& at = certain_line_.consumed();
      for (auto it = std::lower_bound(at.begin(), at.end(), line_.consumed()[i]); it != at.end() && *it < end; ++it) {
        const SeenCommunication& same = certain_.communications[static_cast<std::size_t>(it - at.begin())];
        if (same.consumer.thread == seen.consumer.thread && same.producer.thread == seen.producer.thread) {
          seen.weight = 1;
          break;
        }
      }
    }
  }

  /// Does the same for the sampled thread's return at the end of a watch. A watch may end at the first word to which
  /// the sampled thread returns. If that is a drawn one, and the same producer has stored to the sampled bytes, too,
  /// the certain words would have shown the same, because every estimate assumes a return to the sampled bytes
  /// (expect_return()). Otherwise some drawn word would nearly always see threads that go through whole lines, and each
  /// would count as often as a sighting by that very word.
  void spare_the_cut_off() {
    if (timeline_.communications.empty()) {
      return;
    }
    SeenCommunication& last = timeline_.communications.back();
    const ThreadId consumer = last.consumer.thread;
    const auto rest = std::span(timeline_.accesses).subspan(line_.consumed().back());
    const bool cut_off =
        consumer == watch_.thread &&
        std::all_of(rest.begin(), rest.end(), [&](const AccessPoint& point) { return point.thread == consumer; });
    if (cut_off && certain_line_.waiting_for(consumer) == last.producer.thread) {
      last.weight = 1;
    }
  }

  const profile::WatchRow& watch_;
  OwnershipTimeline& timeline_;
  OwnershipTimeline certain_;
  Line line_, certain_line_;
  std::size_t position_ = 0;
};

/// The opening sample as an access, if it has been made.
std::optional<AccessPoint> opening(const profile::WatchRow& watch) {
  const bool executed =
      watch.sample_from == profile::AddressFrom::retired || watch.sample_from == profile::AddressFrom::hardware;
  const AccessPoint point = sampled_access(watch);
  if (!executed || point.bytes.empty()) {
    return std::nullopt;
  }
  return point;
}

bool well_formed(const profile::WatchRow& watch, const profile::TrapRow& trap, std::size_t threads) {
  return trap.thread.value < threads && trap.word < watch.words.size() && !bytes_of(watch.words[trap.word]).empty();
}

/// Adds the sampled thread's assumed return to a finished timeline that lacks it. If the only watched word is not the
/// sampled one, the return cannot be seen. Every estimate assumes a return, so the first store by another thread is a
/// communication to the sampled access, as the latest store before that access would be if it had been seen.
void expect_return(const profile::WatchRow& watch, const Teller& teller, OwnershipTimeline& timeline) {
  const AccessPoint sampled = sampled_access(watch);
  const bool sees_return = std::any_of(watch.words.begin(), watch.words.end(), [&](const profile::WatchWord& word) {
    return bytes_of(word).overlaps(sampled.bytes);
  });
  const bool seen_again =
      std::any_of(timeline.accesses.begin(), timeline.accesses.end(),
                  [&](const AccessPoint& point) { return point.thread == watch.thread && !point.sampled; });
  const auto store = std::find_if(timeline.accesses.begin(), timeline.accesses.end(), [&](const AccessPoint& point) {
    return point.thread != watch.thread && stores(point.kind);
  });
  if (watch.words.size() != 1 || sampled.bytes.empty() || sees_return || seen_again ||
      store == timeline.accesses.end()) {
    return;
  }
  WordMask changed =
      changed_between(watch.state, teller.state_after(static_cast<std::size_t>(store - timeline.accesses.begin())));
  for (std::uint32_t word = 0; word < profile::LineState::words; ++word) {
    if (store->bytes.overlaps(word_of(word))) {
      changed = static_cast<WordMask>(changed & ~(1U << word));
    }
  }
  timeline.communications.push_back({*store, sampled, is_true_sharing(*store, sampled), store->weight(), 1, changed});
}

}  // namespace

AccessPoint sampled_access(const profile::WatchRow& watch) {
  AccessPoint point;
  point.thread = watch.thread;
  point.line = watch.line;
  point.instruction = watch.sample_access_ip != 0 ? watch.sample_access_ip : watch.sample_ip;
  point.time_ns = watch.time_ns;
  point.stack = watch.sample_stack;
  point.cpu = watch.sample_cpu;
  point.kind = watch.sample_access;
  point.sampled = true;
  const auto offset = static_cast<std::int64_t>(watch.sample_address - watch.line);
  point.bytes = LineBytes::range(offset, std::max<std::uint64_t>(watch.sample_width, 1));
  if (watch.sample_width == 0) {
    for (const profile::WatchWord& word : watch.words) {
      if (bytes_of(word).overlaps(point.bytes)) {
        point.bytes = bytes_of(word);
        break;
      }
    }
  }
  return point;
}

std::optional<LineBytes> touched_bytes(const symbolizer::MemoryAccess& access, const Registers& registers,
                                       std::uint64_t ip, std::uint64_t thread_pointer, std::uint64_t line) {
  if (access.overwrites_base || access.width == 0 || (access.segment_fs && thread_pointer == 0)) {
    return std::nullopt;
  }
  const auto value = [&](Register r) {
    if (r == Register::rip) {
      return ip;
    }
    return static_cast<std::size_t>(r) < register_count ? registers[r] : 0;
  };
  auto address = static_cast<std::uint64_t>(access.displacement);
  address += access.base ? value(*access.base) : 0;
  address += access.index ? value(*access.index) * access.scale : 0;
  address += access.segment_fs ? thread_pointer : 0;
  return LineBytes::range(static_cast<std::int64_t>(address - line), access.width);
}

OwnershipTimeline ownership_timeline(const profile::WatchRow& watch, std::span<const profile::TrapRow> traps,
                                     std::span<const profile::ThreadRow> threads, const AccessLookup& access_before,
                                     const CallersLookup& callers) {
  OwnershipTimeline timeline;
  Teller line(watch, traps.size() + 1, timeline);
  if (watch.thread.value < threads.size()) {
    if (const auto point = opening(watch)) {
      line.access(*point, watch.state, sampled_word);
    }
  }
  std::uint64_t expected = 0;  // sequence of the next trap
  for (const profile::TrapRow& trap : traps) {
    if (trap.watch != watch.id || trap.sequence < expected) {
      ++timeline.ignored;  // another watch's, or seen before
      continue;
    }
    if (trap.sequence > expected) {
      ++timeline.gaps;
      line.forget();
    }
    expected = static_cast<std::uint64_t>(trap.sequence) + 1;
    if (!well_formed(watch, trap, threads.size())) {
      ++timeline.ignored;
      line.forget();
      continue;
    }
    AccessPoint point = decode(watch, trap, threads[trap.thread.value], access_before);
    if (point.stack.value == 0 && callers) {
      point.stack = callers(trap);
    }
    const std::size_t word = word_of_access(watch, trap.word, point.bytes);
    point.probability = static_cast<float>(probability_of(watch, word));
    line.access(point, trap.state, word);
  }
  line.finish();
  remove_probe_effect(timeline.communications);
  if (watch.thread.value < threads.size()) {
    expect_return(watch, line, timeline);
  }
  return timeline;
}

}  // namespace crosstalk::attribution
