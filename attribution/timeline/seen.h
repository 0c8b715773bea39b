// SPDX-License-Identifier: Apache-2.0
// The observations of a watch: accesses, communications and invalidations (ownership_timeline.h has the definitions).
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/timeline/line_bytes.h"
#include "base/ids.h"
#include "base/registers.h"
#include "profile/records.h"

namespace crosstalk::attribution {

/// One access to the watched line, seen by a trap or by the opening sample.
struct AccessPoint {
  std::uint64_t instruction = 0;  // run-time address of the accessing instruction, or a byte inside it
  std::uint64_t time_ns = 0;
  LineBytes bytes;         // exact where the instruction tells, else the watched word's
  std::uint64_t line = 0;  // address of the line in the thread's process
  ThreadId thread;
  StackId stack;
  float probability = 1;  // of drawing the word that showed it; above 0
  std::uint16_t cpu = 0;
  AccessKind kind = AccessKind::none;  // none: unknown
  bool sampled = false;                // by the opening sample, not by a trap

  [[nodiscard]] double weight() const { return 1 / double{probability}; }
};
static_assert(sizeof(AccessPoint) == 48);  // a profile may have millions

/// True if the access takes a byte that this one store wrote. `ownership_timeline()` tells true sharing from false by
/// all stores of the producer since the consumer's access before, and `probe_timeline.cpp` by
/// the bytes that changed.
[[nodiscard]] inline bool is_true_sharing(const AccessPoint& store, const AccessPoint& access) {
  return store.bytes.overlaps(access.bytes);
}

/// The last value of a load that a thread repeats until another thread stores.
struct LoadedValue {
  std::uint64_t value = 0;
  std::uint8_t bytes = 0;  // of it that were loaded
};

/// Words of a line: bit n means bytes [8n, 8n + 8).
using WordMask = std::uint8_t;
[[nodiscard]] inline LineBytes word_of(std::uint32_t word) { return LineBytes::range(8 * std::int64_t{word}, 8); }

struct SeenCommunication {
  AccessPoint producer, consumer;
  bool true_sharing = false;
  /// 1 / the probability that the words needed to see this were drawn; >= 1. It is 1 if the words that are always
  /// watched show it too.
  double weight = 1;
  /// The probability of this producer, 0..1, if there may be several (third_parties.h); also included in `weight`.
  double share = 1;
  /// Words whose values changed between the producer's store and the consumer's access; 0 if that is not known.
  WordMask changed = 0;

  /// True if it was inferred: the sampled thread is assumed to access the line again.
  [[nodiscard]] bool expected() const { return consumer.sampled; }
};

struct SeenInvalidation {
  AccessPoint store, read;  // `read` is the latest read by the thread whose copy is lost
  double weight = 1;
};

struct OwnershipTimeline {
  std::vector<SeenCommunication> communications;
  /// Communications in which an unseen thread stored in between (third_parties.h): the consumer communicated, but not
  /// with that producer.
  std::vector<SeenCommunication> interrupted;
  std::vector<SeenInvalidation> invalidations;
  std::vector<AccessPoint> accesses;  // all that was seen, in order
  std::uint32_t ignored = 0;          // traps that are malformed, stale or repeated
  std::uint32_t gaps = 0;             // places where traps are missing
};

}  // namespace crosstalk::attribution
