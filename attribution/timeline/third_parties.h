// SPDX-License-Identifier: Apache-2.0
// Who stored last, where a third thread whose word of the line was not watched may have stored in between.
//
// A watch sees two words of a line. Where three threads share it falsely, each on a word of its own, the watch sees two
// of them take turns, and takes the one for the other's producer while it is the third that stored last. But it
// recorded the state of the whole line at each access: a word that nobody watched has changed, and who stores to that
// word is known from samples and from the traps of other watches.
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

/// The stores to the words of the lines that matter.
class LineStores {
 public:
  /// The lines that changed unseen in `timelines` or were not seen to be read, and their neighbours, with the stores
  /// that traps saw there.
  LineStores(std::span<const OwnershipTimeline> timelines, std::span<const profile::ThreadRow> threads);
  /// To be told of every sample.
  void add(const profile::SampleRow& sample);

  /// A store of each thread that is known to store to word `word` (0..7) of a line: to that very line, or else, as
  /// arrays of structures repeat, to the same word of lines on its page. At most `most` of them; empty: nobody is
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

/// Puts the producers of `timelines` right. Those who may have stored last are the threads that store to words that
/// have changed since the producer was seen, though nobody watched them, unless the consumer stores there, too; nobody
/// but the producer where none has.
/// - One: it is the producer.
/// - Several: as many of them as are found alone with the same consumer on the same page; where that is too seldom to
///   tell, the producer that was seen, if it is among them, and else nobody: the communication goes to `interrupted`.
/// A communication that is only expected (ownership_timeline.h) is decided by what is known: it goes to `interrupted`
/// where another thread has stored before, or where the producer stores to the sampled bytes, too. Watches that drew
/// those words see it. A sampled consumer's communications are found whichever of the words is drawn that others
/// changed while it was watched; their weight becomes 1 / the probability of that. `watches` and `timelines` go
/// together.
void find_producers(std::span<const profile::WatchRow> watches, std::span<OwnershipTimeline> timelines,
                    const LineStores& stores, std::span<const profile::ThreadRow> threads);

}  // namespace crosstalk::attribution
