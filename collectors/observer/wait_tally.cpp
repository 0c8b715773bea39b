// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/wait_tally.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace crosstalk::observer {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);

std::vector<std::size_t> code_words(const std::vector<std::byte>& stack, const IsCode& is_code) {
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at + word <= stack.size(); at += word) {
    std::uint64_t value = 0;
    std::memcpy(&value, stack.data() + at, word);
    if (is_code(value)) {
      offsets.push_back(at);
    }
  }
  return offsets;
}

/// True if the sleep is at this place: the same return addresses lie where they lay. Two calls from one function differ
/// in nothing else. A sleep without a stack passes for one at the last place with all the rest in common.
bool is_at(const WaitTally::Place& place, const FutexWait& wait) {
  const FutexWait& known = place.wait;
  if (known.futex != wait.futex || known.call.stack_pointer != wait.call.stack_pointer ||
      known.call.instruction != wait.call.instruction || known.call.number != wait.call.number) {
    return false;
  }
  return wait.stack.empty() || std::all_of(place.code.begin(), place.code.end(), [&](std::size_t at) {
           return at + word <= wait.stack.size() &&
                  std::memcmp(known.stack.data() + at, wait.stack.data() + at, word) == 0;
         });
}

}  // namespace

void Looks::add(std::uint64_t passed_ns, bool certain) {
  looked_ns += passed_ns;
  square_ns2 += certain ? 0 : static_cast<double>(passed_ns) * static_cast<double>(passed_ns);
  ++looks;
}

std::uint64_t Looks::spread_ns() const { return static_cast<std::uint64_t>(std::sqrt(square_ns2)); }

/// Returns the time since the look before.
std::uint64_t WaitTally::pass_to(const LookTime& time, bool certain) {
  const LookTime before = std::exchange(last_, time);
  const std::uint64_t passed_ns = time.now_ns - std::min(before.now_ns, time.now_ns);
  all_.add(passed_ns, certain);
  if (slept_ns_ && before.awake_ns && time.awake_ns) {
    *slept_ns_ += static_cast<std::int64_t>(passed_ns - (*time.awake_ns - *before.awake_ns));  // may be less than none
  } else {
    slept_ns_.reset();
  }
  return passed_ns;
}

void WaitTally::still_asleep(const LookTime& time) {
  const std::uint64_t passed_ns = pass_to(time, true);
  all_asleep_.add(passed_ns, true);
  if (present_) {
    places_[*present_].looks.add(passed_ns, true);
  }
}

void WaitTally::asleep(const LookTime& time, FutexWait wait, const IsCode& is_code) {
  const std::uint64_t passed_ns = pass_to(time, false);
  all_asleep_.add(passed_ns, false);
  auto place = std::find_if(places_.rbegin(), places_.rend(), [&](const Place& known) { return is_at(known, wait); });
  if (place == places_.rend()) {
    places_.emplace_back();
    place = places_.rbegin();
  }
  if (place->wait.stack.empty()) {
    place->code = code_words(wait.stack, is_code);
    place->wait = std::move(wait);
  }
  place->looks.add(passed_ns, false);
  present_ = static_cast<std::size_t>(places_.rend() - place) - 1;
  asleep_ = true;
}

void WaitTally::asleep_elsewhere(const LookTime& time) {
  all_asleep_.add(pass_to(time, false), false);
  present_.reset();
  asleep_ = true;
}

void WaitTally::awake(const LookTime& time) {
  pass_to(time, false);
  present_.reset();
  asleep_ = false;
}

WaitTally::Told WaitTally::take() {
  Told told{{}, std::exchange(all_, {}), std::exchange(all_asleep_, {}), std::exchange(slept_ns_, 0)};
  std::vector<Place> kept;
  if (present_) {
    kept.push_back({places_[*present_].wait, places_[*present_].code, {}});
    present_ = 0;
  }
  told.places = std::exchange(places_, std::move(kept));
  std::erase_if(told.places, [](const Place& place) { return place.looks.looks == 0; });
  return told;
}

}  // namespace crosstalk::observer
