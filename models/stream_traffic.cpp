// SPDX-License-Identifier: Apache-2.0
#include "models/stream_traffic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace crosstalk::models {
namespace {

constexpr double line_bytes = 64;
constexpr double surely_in = 0.75;  // of a cache's size
constexpr double surely_out = 1.5;

struct Span {
  double begin = 0, end = 0;
};

/// Bytes in the union of the spans.
double covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  double sum = 0;
  double to = -INFINITY;
  for (const Span& span : spans) {
    sum += std::max(0.0, span.end - std::max(span.begin, to));
    to = std::max(to, span.end);
  }
  return sum;
}

double speed(const Stream& stream) { return std::abs(static_cast<double>(stream.stride)); }

/// Streams that go over the same lines at the same speed, the foremost first.
using Group = std::vector<const Stream*>;

bool ahead(const Stream& a, const Stream& b) {
  return a.stride > 0 ? a.position > b.position : a.position < b.position;
}

double distance(const Stream& a, const Stream& b) {
  return static_cast<double>(a.position > b.position ? a.position - b.position : b.position - a.position);
}

bool overlaps(const Stream& a, const Stream& b) { return a.low <= b.high + b.width && b.low <= a.high + a.width; }

/// True if two streams touch the same lines. A stride longer than a line skips lines, which another access of an
/// unrolled body may touch. If strides are whole lines, compares the lines; otherwise lines drift, so compares
/// distances.
bool share_lines(const Stream& a, const Stream& b) {
  if (a.stride != b.stride || !overlaps(a, b)) {
    return false;
  }
  if (speed(a) <= line_bytes) {
    return true;
  }
  const bool whole_lines = std::fmod(speed(a), line_bytes) == 0;
  const auto place = [&](const Stream& stream) {
    const double at = std::fmod(static_cast<double>(stream.position), speed(a));
    return whole_lines ? std::floor(at / line_bytes) * line_bytes : at;
  };
  const double apart = std::abs(place(a) - place(b));
  return std::min(apart, speed(a) - apart) < line_bytes;
}

std::vector<Group> groups_of(std::span<const Stream> streams) {
  std::vector<Group> groups;
  for (const Stream& stream : streams) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return share_lines(*group.front(), stream); });
    found != groups.end() ? found->push_back(&stream) : groups.push_back({&stream});
  }
  for (Group& group : groups) {
    std::stable_sort(group.begin(), group.end(), [](const Stream* a, const Stream* b) { return ahead(*a, *b); });
  }
  return groups;
}

/// Bytes of the lines that streams touch in their spans. A stride longer than a line touches some lines only.
template <class SpanOf>
double lines_on(std::span<const Stream> streams, const SpanOf& span_of) {
  std::vector<Span> dense;
  double sparse = 0;
  for (const Group& group : groups_of(streams)) {
    std::vector<Span> spans;
    for (const Stream* stream : group) {
      spans.push_back(span_of(*stream));
    }
    const double each = speed(*group.front());
    if (each > line_bytes) {
      sparse += covered(std::move(spans)) / each * line_bytes;
    } else {
      dense.insert(dense.end(), spans.begin(), spans.end());
    }
  }
  return covered(std::move(dense)) + sparse;
}

/// Bytes that all streams touch in the next `iterations`.
double touched(std::span<const Stream> streams, double iterations) {
  return lines_on(streams, [iterations](const Stream& stream) {
    const auto at = static_cast<double>(stream.position);
    const double way = std::min(static_cast<double>(stream.high - stream.low), iterations * speed(stream));
    return stream.stride > 0 ? Span{at, at + way + stream.width} : Span{at - way, at + stream.width};
  });
}

/// Bytes that all streams touch in a whole sweep.
double whole_sweep(std::span<const Stream> streams) {
  return lines_on(streams, [](const Stream& stream) {
    const auto low = static_cast<double>(stream.low);
    return Span{low, static_cast<double>(stream.high) + stream.width};
  });
}

/// 0: the first level, ... 3: memory. nullopt if `bytes` is about the size of a cache.
std::optional<std::size_t> level_holding(double bytes, const CacheSizes& caches) {
  std::size_t level = 0;
  for (const std::uint64_t size : {caches.l1d, caches.l2, caches.l3}) {
    const auto holds = static_cast<double>(size);
    if (bytes <= surely_in * holds) {
      return level;
    }
    if (bytes < surely_out * holds) {
      return std::nullopt;
    }
    ++level;
  }
  return level;
}

void move(LevelBytes& bytes, std::size_t level, double amount) {
  bytes.l2 += level >= 1 ? amount : 0;
  bytes.l3 += level >= 2 ? amount : 0;
  bytes.memory += level >= 3 ? amount : 0;
}

class Sweep {
 public:
  Sweep(std::span<const Stream> streams, std::span<const Scattered> scattered, const CacheSizes& caches)
      : streams_(streams), scattered_(scattered), caches_(caches) {}

  StreamTraffic traffic() {
    for (const Group& group : groups_of(streams_)) {
      add(group);
    }
    for (const Scattered& access : scattered_) {
      add(access);
    }
    double lines = 0;
    for (const double part : result_.served) {
      lines += part;
    }
    for (double& part : result_.served) {
      part = lines > 0 ? part / lines : 0;
    }
    if (result_.unknown.empty()) {
      result_.bytes = bytes_;
    } else {
      result_.served = {};
    }
    return std::move(result_);
  }

 private:
  void add(const Group& group) {
    std::size_t home = 0;  // the level of the foremost stream's data
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Stream& stream = *group[i];
      const bool near = i > 0 && distance(*group[i - 1], stream) < line_bytes;
      if (near) {
        continue;  // the same lines, a moment later
      }
      const double between =
          i == 0 ? whole_sweep(streams_) : touched(streams_, distance(*group[i - 1], stream) / speed(stream));
      const auto level = level_holding(between, caches_);
      if (!level) {
        result_.unknown = "its data are about as large as a cache, so the level that serves them is uncertain";
        return;
      }
      home = i == 0 ? *level : home;
      fetch(group, i, *level);
    }
    write_back(group, home);
  }

  void add(const Scattered& access) {
    const double range = static_cast<double>(access.high - access.low) + line_bytes;
    double held = 0;  // part of the range that nearer levels hold
    std::size_t level = 0;
    for (const std::uint64_t size : {caches_.l1d, caches_.l2, caches_.l3, UINT64_MAX}) {
      const double part = std::max(held, std::min(1.0, static_cast<double>(size) / range));
      move(bytes_, level, (part - held) * line_bytes * (access.stores ? 2 : 1));
      result_.served.at(level) += part - held;
      held = part;
      ++level;
    }
  }

  /// New bytes an iteration; a stride longer than a line moves one line.
  static double fresh(const Stream& stream) { return std::min(speed(stream), line_bytes); }

  void fetch(const Group& group, std::size_t i, std::size_t level) {
    const Stream& stream = *group[i];
    const bool only_streaming = std::all_of(group.begin(), group.end(), [](const Stream* s) { return s->streaming; });
    if (only_streaming) {
      bytes_.memory += fresh(stream);
      return;
    }
    move(bytes_, level, fresh(stream));
    result_.served.at(level) += fresh(stream) / line_bytes;
  }

  void write_back(const Group& group, std::size_t home) {
    const bool dirty =
        std::any_of(group.begin(), group.end(), [](const Stream* s) { return s->stores && !s->streaming; });
    if (dirty) {
      move(bytes_, home, fresh(*group.front()));
    }
  }

  std::span<const Stream> streams_;
  std::span<const Scattered> scattered_;
  CacheSizes caches_;
  StreamTraffic result_;
  LevelBytes bytes_;
};

}  // namespace

StreamTraffic stream_traffic(std::span<const Stream> streams, std::span<const Scattered> scattered,
                             const CacheSizes& caches) {
  return Sweep(streams, scattered, caches).traffic();
}

}  // namespace crosstalk::models
