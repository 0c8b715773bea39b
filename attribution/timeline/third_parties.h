// SPDX-License-Identifier: Apache-2.0
// Finds the last storer if a third thread may have stored in between to an unwatched word of the line.
//
// A watch sees two words of a line. If three threads share it falsely, each on a word of its own, the watch sees two of
// them take turns, and takes one for the other's producer while the third stored last. But it recorded the state of the
// whole line at each access: an unwatched word has changed, and samples and the traps of other watches show who stores
// to that word.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/timeline/seen.h"
#include "base/hash.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// The stores to the words of the relevant lines.
class LineStores {
 public:
  /// Takes the lines that changed unseen in `timelines` or were not seen to be read, and their neighbours, with the
  /// stores that traps saw there.
  LineStores(std::span<const OwnershipTimeline> timelines, std::span<const profile::ThreadRow> threads);
  /// Takes every sample.
  void add(const profile::SampleRow& sample);

  /// A store of each thread that is known to store to word `word` (0..7) of a line: to that very line, or else, since
  /// arrays of structures repeat, to the same word of lines on its page. At most `most` of them; empty: no thread is
  /// known.
  [[nodiscard]] std::span<const AccessPoint> to(ProcessId process, std::uint64_t line, std::uint32_t word) const;
  static constexpr std::size_t most = 8;

 private:
  struct Place {
    std::vector<AccessPoint> stores[profile::LineState::words];
  };
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // process and address
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return spread(key.second ^ (std::uint64_t{key.first} << 52U));
    }
  };
  using Places = std::unordered_map<Key, Place, KeyHash>;
  void note(ProcessId process, const AccessPoint& store);

  std::span<const profile::ThreadRow> threads_;
  Places lines_, pages_;
};

/// Corrects the producers of `timelines`. The possible last storers are the threads that store to unwatched words which
/// have changed since the producer was seen, unless the consumer stores there, too. Without such a change the producer
/// is right.
/// - One: it is the producer.
/// - Several: in proportion to how often each is found alone with the same consumer on the same page. If this is too
///   seldom to tell, the producer that was seen, if it is among them; otherwise the communication goes to
///   `interrupted`.
/// An expected communication (ownership_timeline.h) is decided by present knowledge: it goes to `interrupted` if
/// another thread has stored before, or if the producer stores to the sampled bytes, too. Watches that drew those words
/// see it. A sampled consumer's communications are found with any of the words that others changed while it was
/// watched; their weight becomes 1 / the probability that one of those was drawn. `watches` and `timelines` go
/// together.
void find_producers(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                    const LineStores& stores, std::span<const profile::ThreadRow> threads);

}  // namespace crosstalk::attribution
