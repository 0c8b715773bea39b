// SPDX-License-Identifier: Apache-2.0
// The contributions of one watch, by estimator: the communications that its sample's time is charged to, and their
// weights. Each weight is divided by the probabilities of the random choices (Horvitz-Thompson): the recorded one of
// words and, except in the default estimator (censoring.h), the share of long watches among those of lines without
// known users.
//
// A sample that counts accesses (or micro-operations, of which the sampled one is an access) is valued by what follows
// it: if another thread stores to the line before the sampled thread's next access, that access is a communication.
// Each communication but a thread's first on a line follows exactly one access of its thread, so the sum over all
// accesses, and so over samples by their weights, is the number of communications; the bytes stored in between give
// their sort (return_balance.h: where watches begin late). This needs samples of all accesses: without the fast ones it
// tells nothing (Expansion::count_unknown). If a thread goes from word to word of one line, its next access may be to
// an unwatched word: each word that it uses in a turn counts.
//
// With a clock, all estimators take what comes after the sample for what came before it, since a sample cannot look
// back, and take a sample's whole time for communication if there was one. This holds if threads keep doing what they
// do, and if an access that does not communicate is quick.
#pragma once

#include <cstdint>
#include <span>

#include "attribution/estimate/evidence.h"

namespace crosstalk::attribution {

/// Charges the time to the communications that the sampled thread consumed, or, if it consumed none, to all that the
/// watch saw, in proportion to their weights. It counts as often as the communication that was easiest to see. A
/// sampled plain store to a line that nobody else stores to took the line from its readers: an invalidation, which is
/// charged to nobody. An interrupted communication has its part of the sample's time, which is charged to nobody:
/// watches that drew the third thread's word represent it. Late communication in long watches counts once here;
/// censoring.h adjusts that.
void charge_communications(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// The sampled thread's next access in the watch; the end of `accesses` if there is none.
[[nodiscard]] std::span<const AccessPoint>::iterator own_return(const Evidence& evidence);

/// The published algorithm (ComDetective): a thread's sample is an entry that the other threads observe, and each
/// observer's first trap on its line is a communication from the sampled thread to it, worth one sampling period. It
/// does not compensate for unarmed threads, and does not check that the sampled thread stored.
void charge_board(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// The same detections, each divided by the probability that its word was drawn (recorded) and that its thread was
/// armed (armed of the others alive); the probability of the watch is its kind's share of watched samples. Right if a
/// line has two threads and both spend as much on it.
void charge_board_weighted(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// Charges a sampled store to the thread that accesses the line next. The time is the store's: right if the two threads
/// spend as much on their accesses. The sampled thread's own next store is not watched, so runs of stores are charged
/// store by store.
void charge_next_access(const Evidence& evidence, std::uint32_t watch, Estimate& out);

/// Charges a sampled load to the thread that stores to the line next. Right if loads hand lines over; does not see
/// waits of plain stores.
void charge_next_store(const Evidence& evidence, std::uint32_t watch, Estimate& out);

}  // namespace crosstalk::attribution
