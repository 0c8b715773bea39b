// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/ring_cursor.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>

namespace crosstalk::collectors {
namespace {

void copy(std::span<const std::byte> ring, std::uint64_t from, std::byte* to, std::size_t bytes) {
  const std::uint64_t begin = from & (ring.size() - 1);
  const std::size_t first = std::min<std::size_t>(bytes, ring.size() - begin);
  std::memcpy(to, ring.data() + begin, first);
  std::memcpy(to + first, ring.data(), bytes - first);
}

}  // namespace

std::span<const std::byte> take_ring_record(std::span<const std::byte> ring, std::uint64_t head, std::uint64_t& tail,
                                            std::span<std::byte> out) {
  const std::uint64_t there = head - tail;
  perf_event_header header{};
  if (there < sizeof header || there > ring.size()) {
    tail = head;
    return {};
  }
  copy(ring, tail, reinterpret_cast<std::byte*>(&header), sizeof header);
  if (header.size < sizeof header || header.size > there || header.size > out.size()) {
    tail = head;
    return {};
  }
  copy(ring, tail, out.data(), header.size);
  tail += header.size;
  return out.first(header.size);
}

}  // namespace crosstalk::collectors
