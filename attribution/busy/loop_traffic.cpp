// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "models/roofline/roof.h"
#include "symbolizer/loops/loop_operands.h"

namespace crosstalk::attribution {
namespace {

LoopTraffic unknown_because(std::string why) { return {.unknown = std::move(why)}; }

/// True if the loop stores whole lines that it does not load.
bool has_store_stream(const std::vector<models::Stream>& streams) {
  constexpr double line_bytes = 64;
  return std::any_of(streams.begin(), streams.end(), [&](const models::Stream& store) {
    const bool whole =
        store.stores && !store.loads && !store.streaming && std::abs(static_cast<double>(store.stride)) <= line_bytes;
    return whole && std::none_of(streams.begin(), streams.end(), [&](const models::Stream& other) {
             return other.loads && other.low <= store.high && store.low <= other.high;
           });
  });
}

models::CacheSizes caches_of(const models::Machine& machine, double threads) {
  const auto bytes = [&](std::uint32_t level) {
    const models::Cache* cache = machine.cache_of(level);
    return cache != nullptr ? cache->bytes : std::uint64_t{0};
  };
  const models::Cache* last = machine.cache_of(3);
  const double sharing = last != nullptr ? std::clamp(threads, 1.0, std::max(1.0, double(last->cpus.size()))) : 1;
  return {bytes(1), bytes(2), static_cast<std::uint64_t>(static_cast<double>(bytes(3)) / sharing)};
}

}  // namespace

LoopTraffic traffic_of(const Rate& iterations, const TrafficEvidence& evidence, const models::Machine& machine) {
  if (!iterations.per_s) {
    return unknown_because(iterations.unknown);
  }
  if (evidence.code == nullptr || evidence.body == nullptr || evidence.pairs == nullptr) {
    return unknown_because("its code is not known");
  }
  if (evidence.body->calls || !evidence.body->one_way) {
    return unknown_because(evidence.body->calls ? "it calls functions" : "its iterations take different ways");
  }
  const double per_s = *iterations.per_s;
  const CodeLoop& code = *evidence.code;
  const LoopStreams streams = streams_of(symbolizer::loop_operands(*code.anatomy, code.index), *evidence.pairs, per_s);
  if (!streams.unknown.empty()) {
    return unknown_because(streams.unknown);
  }
  const models::StreamTraffic found =
      models::stream_traffic(streams.streams, streams.scattered, caches_of(machine, evidence.threads));
  if (!found.bytes) {
    return unknown_because(found.unknown);
  }
  const models::LevelBytes& each = *found.bytes;
  return {models::LevelBytes{each.l2 * per_s, each.l3 * per_s, each.memory * per_s}, found.served, "",
          has_store_stream(streams.streams), !streams.scattered.empty()};
}

LoopTraffic traffic_inside(double cpu_s, std::span<const InnerLoop<LoopTraffic>> inner) {
  constexpr double nearly_all = 0.95;
  LoopTraffic sum;
  sum.per_s.emplace();
  double inside_s = 0;
  for (const auto& [inner_s, traffic] : inner) {
    const LoopTraffic& part = *traffic;
    if (!part.per_s) {
      return unknown_because("of a loop inside it: " + part.unknown);
    }
    const double share = inner_s / cpu_s;
    inside_s += inner_s;
    sum.per_s->l2 += share * part.per_s->l2;
    sum.per_s->l3 += share * part.per_s->l3;
    sum.per_s->memory += share * part.per_s->memory;
    for (std::size_t level = 0; level < sum.served.size(); ++level) {
      sum.served[level] += share * part.served[level];
    }
    sum.stores_only_new = sum.stores_only_new || part.stores_only_new;
    sum.scattered = sum.scattered || part.scattered;
  }
  return inside_s >= nearly_all * cpu_s ? sum : unknown_because("much of its time is outside its inner loops");
}

std::optional<models::LevelShares> shares_of_waits(const LoopTraffic& traffic, const models::Machine& machine,
                                                   std::string& missing) {
  if (!traffic.per_s) {
    return std::nullopt;
  }
  constexpr auto& levels = models::all_levels;
  models::LevelShares shares{};
  double sum = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (traffic.served[i] > 0) {
      const models::Figure* latency = machine.latency_of(levels[i]);
      if (latency == nullptr || !latency->value) {
        missing = "the latency of " + std::string(models::roofline::level_in_words(levels[i])) +
                  " is not in the calibration" + (latency != nullptr ? ": " + latency->refused : "");
        return std::nullopt;
      }
      shares[i] = traffic.served[i] * *latency->value;
      sum += shares[i];
    }
  }
  if (sum <= 0) {
    return models::LevelShares{1, 0, 0, 0};  // no stream: what it accesses stays in the first level
  }
  for (double& share : shares) {
    share /= sum;
  }
  return shares;
}

}  // namespace crosstalk::attribution
