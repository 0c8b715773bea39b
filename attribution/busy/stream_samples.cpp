// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/stream_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t most_pairs = 256;  // of a loop
constexpr std::size_t least_pairs = 8;   // of the thread
constexpr std::uint64_t least_addresses = 20;

using symbolizer::LoopOperand;
using symbolizer::OperandPlace;

/// An operand at both moments of each pair.
struct Track {
  const LoopOperand* operand = nullptr;
  std::vector<std::pair<OperandPlace, OperandPlace>> places;  // by pair
};

/// The pairs of the thread with most of them.
std::vector<const StreamPair*> pairs_of_one_thread(const LoopPairs& loop) {
  std::map<std::uint32_t, std::vector<const StreamPair*>> by_thread;
  for (const StreamPair& pair : loop.pairs) {
    by_thread[pair.thread].push_back(&pair);
  }
  const auto most = std::max_element(by_thread.begin(), by_thread.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most != by_thread.end() ? most->second : std::vector<const StreamPair*>();
}

std::optional<Track> track_of(const LoopOperand& operand, const std::vector<const StreamPair*>& pairs) {
  Track track{&operand, {}};
  for (const StreamPair* pair : pairs) {
    const auto from = place_of(operand, pair->from);
    const auto to = place_of(operand, pair->to);
    if (!from || !to || from->stride != to->stride) {
      return std::nullopt;
    }
    track.places.emplace_back(*from, *to);
  }
  return track;
}

bool one_stride(const Track& track) {
  return std::all_of(track.places.begin(), track.places.end(),
                     [&](const auto& places) { return places.first.stride == track.places.front().first.stride; });
}

models::Stream stream_of(const Track& track) {
  const LoopOperand& operand = *track.operand;
  models::Stream stream;
  stream.stride = track.places.front().first.stride;
  stream.width = operand.width;
  stream.loads = operand.loads, stream.stores = operand.stores, stream.streaming = operand.streaming;
  stream.position = track.places.back().second.address;
  stream.low = stream.high = stream.position;
  for (const auto& [from, to] : track.places) {
    stream.low = std::min({stream.low, from.address, to.address});
    stream.high = std::max({stream.high, from.address, to.address});
  }
  return stream;
}

/// True if two accesses keep their distance. Accesses to different data may not.
bool in_step(const Track& a, const Track& b) {
  constexpr double nearly_all = 0.9;
  std::uint64_t same = 0;
  const std::uint64_t distance = a.places.back().second.address - b.places.back().second.address;
  for (std::size_t i = 0; i < a.places.size(); ++i) {
    same += a.places[i].first.address - b.places[i].first.address == distance ? 1U : 0U;
  }
  return static_cast<double>(same) >= nearly_all * static_cast<double>(a.places.size());
}

bool overlap(const models::Stream& a, const models::Stream& b) {
  return a.low <= b.high + b.width && b.low <= a.high + a.width;
}

/// True if an operand moves between samples like one that sweeps over all of its range. Allows for an error of a part
/// of the range and of the way, for the ends of outer loops.
bool sweeps(const Track& track, const models::Stream& stream, const std::vector<const StreamPair*>& pairs,
            double iterations_per_s) {
  const auto range = static_cast<double>(stream.high - stream.low);
  const double speed = iterations_per_s * std::abs(static_cast<double>(stream.stride));
  std::size_t as_expected = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [from, to] = track.places[i];
    const auto moved = static_cast<double>(static_cast<std::int64_t>(to.address - from.address));
    const double way = speed * pairs[i]->cpu_s;
    if (way > range / 2) {  // a sweep or more lies in between: the position is random
      as_expected += std::abs(moved) >= range / 8 ? 1U : 0U;
      continue;
    }
    const double forward = stream.stride > 0 ? moved : -moved;
    const double off = forward - way;
    constexpr double near = 0.25;
    as_expected += std::min(std::abs(off), std::abs(off + range)) <= near * way + near * range / 2 ? 1U : 0U;
  }
  return 2 * as_expected > pairs.size();
}

}  // namespace

LoopStreams streams_of(const std::vector<LoopOperand>& operands, const LoopPairs& loop, double iterations_per_s) {
  const std::vector<const StreamPair*> pairs = pairs_of_one_thread(loop);
  if (pairs.size() < least_pairs) {
    return {{}, {}, "too few pairs of samples say where it is in its data"};
  }
  LoopStreams result;
  std::vector<Track> tracks;
  for (const LoopOperand& operand : operands) {
    if (operand.one_place) {
      continue;
    }
    auto track = track_of(operand, pairs);
    if (!track || !one_stride(*track)) {
      const auto range = loop.ranges.find({pairs.front()->thread, operand.instruction});
      if (range == loop.ranges.end() || range->second.seen < least_addresses) {
        return {{}, {}, "where it accesses memory follows neither from its registers nor from samples"};
      }
      result.scattered.push_back({range->second.low, range->second.high, operand.stores});
      continue;
    }
    if (track->places.front().first.stride == 0) {
      continue;
    }
    result.streams.push_back(stream_of(*track));
    tracks.push_back(std::move(*track));
  }
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (overlap(result.streams[i], result.streams[k]) && !in_step(tracks[i], tracks[k])) {
        return {{}, {}, "its accesses go over the same data at changing distances"};
      }
    }
    if (!sweeps(tracks[i], result.streams[i], pairs, iterations_per_s)) {
      return {{}, {}, "it goes over parts of its data again and again"};
    }
  }
  return result;
}

std::optional<models::LongStrides> long_strides(const std::vector<LoopOperand>& operands, const LoopPairs& loop) {
  constexpr double line_bytes = 64;
  std::vector<const StreamPair*> pairs;
  for (const StreamPair& pair : loop.pairs) {
    pairs.push_back(&pair);
  }
  if (pairs.size() < least_pairs) {
    return std::nullopt;
  }
  models::LongStrides found;
  double moving = 0;
  double jumping = 0;
  for (const LoopOperand& operand : operands) {
    const auto track = operand.one_place ? std::nullopt : track_of(operand, pairs);
    const bool constant = track && one_stride(*track);
    moving += operand.one_place || (constant && track->places.front().first.stride == 0) ? 0 : 1;
    if (!constant) {
      continue;
    }
    const models::Stream stream = stream_of(*track);
    const double stride = std::abs(static_cast<double>(stream.stride));
    if (stride >= line_bytes) {
      ++jumping;
      const double lines = static_cast<double>(stream.high - stream.low) / stride + 1;
      if (lines * line_bytes > found.lines_bytes) {
        found.stride_bytes = stride;
        found.lines_bytes = lines * line_bytes;
      }
    }
  }
  found.part = moving > 0 ? jumping / moving : 0;
  return jumping > 0 ? std::optional(found) : std::nullopt;
}

StreamSamples::Spot StreamSamples::new_spot(ModulePlace place) {
  const auto loop = innermost_loop(view_.code(), place);
  if (!loop) {
    return {};
  }
  auto reader = loop->anatomy->counters(loop->index).reader_at(place.address);
  return reader ? Spot{&loops_[{place.file, loop->anatomy->header(loop->index)}], std::move(reader)} : Spot{};
}

const StreamSamples::Spot& StreamSamples::spot_of(const profile::SampleRow& sample) {
  return spots_.at(view_, sample, [&](ModulePlace place) { return new_spot(place); });
}

void StreamSamples::keep(LoopPairs& loop, const StreamPair& pair) {
  const std::uint64_t number = loop.seen++;
  if (loop.pairs.size() < most_pairs) {
    loop.pairs.push_back(pair);
  } else if (const std::uint64_t at = spread(number) % (number + 1); at < most_pairs) {
    loop.pairs[at] = pair;
  }
}

void StreamSamples::note_address(const profile::SampleRow& sample, LoopPairs& loop) const {
  const auto place = view_.spaces().find(view_.moment(sample.thread, sample.time_ns), sample.access_ip);
  if (place) {
    LoopPairs::Range& range = loop.ranges[{sample.thread.value, place->address}];
    range.low = std::min(range.low, sample.address);
    range.high = std::max(range.high, sample.address);
    ++range.seen;
  }
}

void StreamSamples::add(const profile::SampleRow& sample) {
  if (!view_.knows(sample.thread)) {
    return;
  }
  Last& last = last_[sample.thread.value];
  last.cpu_s += static_cast<double>(sample.cpu_ns) * 1e-9;
  const Spot* spot = sample.registers ? &spot_of(sample) : nullptr;
  if (spot == nullptr || spot->loop == nullptr) {
    last.loop = nullptr;
    return;
  }
  if (sample.access_ip != 0 && sample.address != 0) {
    note_address(sample, *spot->loop);
  }
  const symbolizer::LoopMoment moment = spot->reader->read(*sample.registers);
  if (last.loop == spot->loop) {
    keep(*spot->loop, {sample.thread.value, last.cpu_s, last.moment, moment});
  }
  last = {spot->loop, moment, 0};
}

}  // namespace crosstalk::attribution
