// SPDX-License-Identifier: Apache-2.0
// What happened to a watched line: from the sample that opened a watch and the traps that followed, the
// communications and invalidations by their definition. A pure function of rows.
//
// communication i -> j: an access by j to a line whose most recent store was by i != j and came after j's own
//   previous access (or j has none). True sharing if j's access overlaps a byte that i stored since then.
// invalidation: a store to a line that others have only read since its last store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attribution/timeline/address_space.h"
#include "attribution/timeline/line_bytes.h"
#include "profile/model.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// One access to the watched line, seen by a trap or by the opening sample.
struct AccessPoint {
  ThreadId thread;
  std::uint64_t instruction = 0;  // run-time address of the accessing instruction, or a byte inside it
  std::uint64_t time_ns = 0;
  LineBytes bytes;  // exact where the instruction tells, else the watched word's
  StackId stack;
  std::uint16_t cpu = 0;
  AccessKind kind = AccessKind::none;       // none: unknown
  bool sampled = false;                     // by the opening sample, not by a trap
  double weight = 1;                        // 1 / the probability that the word was drawn at which it was seen
  std::uint64_t line = 0;                   // address of the line in the thread's process
  std::optional<profile::LineState> state;  // of the line afterwards
};

/// Words of a line: bit n stands for bytes [8n, 8n + 8).
using WordMask = std::uint8_t;
[[nodiscard]] inline LineBytes word_of(std::uint32_t word) { return LineBytes::range(8 * std::int64_t{word}, 8); }

struct SeenCommunication {
  AccessPoint producer, consumer;
  bool true_sharing = false;
  /// 1 / the probability that the words without which this could not have been seen were drawn; >= 1. It is 1 when
  /// the words that were certain to be watched show it too.
  double weight = 1;
  /// The probability that it was this producer, 0..1, where several may have been (third_parties.h); in `weight`, too.
  double share = 1;
  /// Words whose values changed between the producer's store and the consumer's access; 0 where that is not known.
  WordMask changed = 0;

  /// Not seen itself: the sampled thread's return, which expect_return() takes for granted.
  [[nodiscard]] bool expected() const { return consumer.sampled; }
};

struct SeenInvalidation {
  AccessPoint store, read;  // `read` is the latest read by the thread whose copy is lost
  double weight = 1;
};

struct OwnershipTimeline {
  std::vector<SeenCommunication> communications;
  /// Those in which a thread that was not seen stored in between (third_parties.h): the consumer communicated, but not
  /// with that producer.
  std::vector<SeenCommunication> interrupted;
  std::vector<SeenInvalidation> invalidations;
  std::vector<AccessPoint> accesses;  // all that was seen, in order
  std::uint32_t ignored = 0;          // traps that are malformed, stale or repeated
  std::uint32_t gaps = 0;             // places where traps are missing
};

/// The instruction that ends at run-time address `ip`, if it is known and touches memory.
using AccessLookup = std::function<std::optional<symbolizer::MemoryAccess>(Moment moment, std::uint64_t ip)>;

/// The access of the sample that opened the watch, whether it has been made or not; `bytes` may be empty.
[[nodiscard]] AccessPoint sampled_access(const profile::WatchRow& watch);

/// `traps` are those of `watch` by ascending sequence; others, repeated and out-of-range ones are ignored. Where the
/// sequence has a gap, what is known of the line is forgotten: a missing trap may have been anyone's store. Traps of
/// unknown kind can consume and never produce.
[[nodiscard]] OwnershipTimeline ownership_timeline(const profile::WatchRow& watch,
                                                   std::span<const profile::TrapRow> traps,
                                                   std::span<const profile::ThreadRow> threads,
                                                   const AccessLookup& access_before);

/// Where one word is watched and it is not the sampled one, the sampled thread is not seen to come back. That it comes
/// back is what every estimate takes for granted; so the first store by another thread is a communication to the
/// sampled access, as the latest store before that access would be if it had been seen. Adds it to a finished timeline
/// in which the sampled thread was not seen again.
void expect_return(const profile::WatchRow& watch, OwnershipTimeline& timeline);

/// Bytes of `line` that an instruction touched, from the registers after it; nullopt when they do not tell.
/// `ip` is the address after the instruction; `thread_pointer` 0 means unknown.
[[nodiscard]] std::optional<LineBytes> touched_bytes(const symbolizer::MemoryAccess& access, const Registers& registers,
                                                     std::uint64_t ip, std::uint64_t thread_pointer,
                                                     std::uint64_t line);

}  // namespace crosstalk::attribution
