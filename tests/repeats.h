// SPDX-License-Identifier: Apache-2.0
// How often a randomised test is repeated.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CROSSTALK_SANITIZED_TEST 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CROSSTALK_SANITIZED_TEST 1
#endif

namespace crosstalk {

/// `count` times; a third of them under a sanitizer, which makes each several times slower and is there for faults that
/// every repetition would show.
constexpr std::size_t repeats(std::size_t count) {
#ifdef CROSSTALK_SANITIZED_TEST
  return count / 3;
#else
  return count;
#endif
}

}  // namespace crosstalk
