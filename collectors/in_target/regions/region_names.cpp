// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/regions/region_names.h"

#include <atomic>
#include <cstring>

namespace crosstalk::in_target {
namespace {

using profile::RegionName;
using profile::RegionNameState;

struct Text {
  const char* begin;
  std::size_t bytes = 0;  // of them those that count
  std::uint32_t hash = 2166136261U;
};

/// Hashes the part of the name that counts, by FNV-1a. A name that is too long is cut between characters of UTF-8.
Text text_of(const char* name) {
  Text text{name != nullptr ? name : "(unnamed)"};
  while (text.bytes < RegionName::most_bytes && text.begin[text.bytes] != 0) {
    ++text.bytes;
  }
  if (text.bytes == RegionName::most_bytes && text.begin[text.bytes] != 0) {
    while (text.bytes > 0 && (static_cast<unsigned char>(text.begin[text.bytes]) & 0xC0U) == 0x80U) {
      --text.bytes;
    }
  }
  for (std::size_t i = 0; i < text.bytes; ++i) {
    text.hash = (text.hash ^ static_cast<unsigned char>(text.begin[i])) * 16777619U;
  }
  return text;
}

bool is(const RegionName& name, const Text& text) {
  return name.hash == text.hash && std::memcmp(name.text, text.begin, text.bytes) == 0 &&
         (text.bytes == RegionName::most_bytes || name.text[text.bytes] == 0);
}

}  // namespace

std::uint32_t number_of_name(profile::ArenaHeader& arena, const char* name) {
  const Text text = text_of(name);
  for (std::uint32_t step = 0; step < profile::most_region_names; ++step) {
    const std::uint32_t at = (text.hash + step) % profile::most_region_names;
    RegionName& place = arena.region_names[at];
    auto state = place.state.load(std::memory_order_acquire);
    if (state == static_cast<std::uint32_t>(RegionNameState::free) &&
        place.state.compare_exchange_strong(state, static_cast<std::uint32_t>(RegionNameState::claimed))) {
      place.hash = text.hash;
      std::memcpy(place.text, text.begin, text.bytes);
      place.state.store(static_cast<std::uint32_t>(RegionNameState::ready), std::memory_order_release);
      return at + 1;
    }
    if (state == static_cast<std::uint32_t>(RegionNameState::ready) && is(place, text)) {
      return at + 1;
    }
  }
  return 0;
}

}  // namespace crosstalk::in_target
