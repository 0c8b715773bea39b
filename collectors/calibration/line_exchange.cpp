// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/line_exchange.h"

#include <atomic>

#include "base/clock.h"

namespace crosstalk::collectors::calibration {
namespace {

/// A word with two lines for itself: some processors fetch lines in pairs.
struct Word {
  alignas(128) std::atomic<std::uint64_t> value{0};
  alignas(128) char behind = 0;
};

/// Waits for a value. False when it has not come by `deadline_ns`.
bool await(const std::atomic<std::uint64_t>& word, std::uint64_t wanted, std::uint64_t deadline_ns) {
  constexpr unsigned looks_between_clocks = 8192;
  for (unsigned looks = 1; word.load(std::memory_order_acquire) != wanted; ++looks) {
    if (looks % looks_between_clocks == 0 && monotonic_ns() > deadline_ns) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Trial> transfer_seconds(Team& pair, std::uint64_t rounds) {
  constexpr std::uint64_t patience_ns = 20'000'000;
  Word word;
  std::atomic<bool> complete{true};
  const std::uint64_t deadline = monotonic_ns() + patience_ns;
  const TeamTime time = pair.run([&](unsigned member) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (!await(word.value, 2 * i + member, deadline)) {
        complete = false;
        return;
      }
      word.value.store(2 * i + member + 1, std::memory_order_release);
    }
  });
  if (!complete) {
    return std::nullopt;
  }
  return Trial{time.window_s / (2 * static_cast<double>(rounds)), time.disturbed};
}

std::optional<Trial> contended_add_seconds(Team& pair, std::uint64_t rounds, std::uint64_t& sum, std::uint64_t& made) {
  constexpr std::uint64_t between_looks = 16;
  Word word, over, all;
  auto trial = seconds_together(pair, 1, [&](unsigned) {
    std::uint64_t mine = 0;
    while (mine < rounds && over.value.load(std::memory_order_relaxed) == 0) {
      for (std::uint64_t i = 0; i < between_looks; ++i) {
        word.value.fetch_add(1, std::memory_order_acq_rel);
      }
      mine += between_looks;
    }
    over.value.store(1, std::memory_order_relaxed);
    all.value.fetch_add(mine, std::memory_order_relaxed);
  });
  sum = word.value;
  made = all.value;
  if (trial) {
    // The line serves one addition at a time, so an addition takes a member as long as one addition of each member.
    trial->seconds *= static_cast<double>(pair.size()) * pair.size() / static_cast<double>(made);
  }
  return trial;
}

}  // namespace crosstalk::collectors::calibration
