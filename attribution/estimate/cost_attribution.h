// SPDX-License-Identifier: Apache-2.0
// What one watch contributes, by estimator: which communications its sample's time is charged to, and how often it
// counts. Chances of what was drawn are divided by (Horvitz-Thompson): words with their recorded probability and,
// except by the default (censoring.h), long watches with their share among those of lines that nothing was known of.
//
// A sample that counts accesses (or micro-operations, of which the sampled one is an access) is worth what follows it:
// if another thread stores to the line before the sampled thread's next access, that access is a communication. Each
// communication but a thread's first on a line follows exactly one access of its thread, so the sum over all accesses,
// and so over samples by their weights, is how many there are; the bytes that were stored in between say of which sort.
// That needs samples of all accesses: where fast ones are left out it says nothing (Expansion::count_unknown). Of a
// thread that goes from word to word of one line, the next access may be to a word that is not watched: each word that
// it uses in a turn counts.
//
// With a clock, all of them take what comes after the sample for what came before it, since a sample cannot look back,
// and a sample's whole time for time in a communication if there was one. That holds where threads keep doing what they
// do, and where an access that does not communicate is quick.
#pragma once

#include <cstdint>
#include <span>

#include "attribution/estimate/evidence.h"

namespace crosstalk::attribution {

/// The time goes to the communications that the sampled thread consumed, or, when it consumed none, to all that the
/// watch saw, in proportion to their weights. It counts as often as what was easiest to see. A sampled plain store to
/// a line that nobody else stores to took the line from its readers: an invalidation, which is charged to nobody.
/// What was interrupted has its part of the sample's time, which is charged to nobody: watches that drew the third
/// thread's word stand for it.
/// What long watches see late counts once here: censoring.h says how often in the end.
void charge_communications(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// The sampled thread's next access that the watch saw; the end of `accesses` if it saw none.
[[nodiscard]] std::span<const AccessPoint>::iterator own_return(const Evidence& evidence);

/// The published algorithm (ComDetective): a thread's sample is an entry that the other threads observe, and each
/// observer's first trap on its line is a communication from the sampled thread to it, worth one sampling period. What
/// was not armed is not made up for, and whether the sampled thread stored is not asked.
void charge_board(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// The same detections, each divided by the chance that its word was drawn (recorded) and that its thread was armed
/// (armed of the others alive); the chance of the watch is its kind's share of watched samples. Right where a line has
/// two threads and both spend as much on it.
void charge_board_weighted(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// From a sampled store to the thread that accesses the line next. The time is the store's: right where the two
/// threads spend as much on their accesses. The sampled thread is not watched for its own next store, so runs of
/// stores are charged store by store.
void charge_next_access(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// To a sampled load from the thread that stores to the line next. Right where lines are handed over by loads; what
/// plain stores wait for is not seen.
void charge_next_store(const Evidence& evidence, std::uint32_t watch, Estimate& out);

}  // namespace crosstalk::attribution
