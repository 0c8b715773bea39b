// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/probe_effect.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

bool torn(const SeenCommunication& first, const SeenCommunication& second) {
  return !first.true_sharing && second.true_sharing && first.producer.thread == second.producer.thread &&
         first.consumer.thread == second.consumer.thread && second.producer.time_ns >= first.producer.time_ns &&
         second.producer.time_ns - first.producer.time_ns < longest_tear_ns;
}

bool false_like(const SeenCommunication& last, const SeenCommunication& dropped) {
  return !last.true_sharing && last.producer.instruction == dropped.producer.instruction &&
         last.consumer.instruction == dropped.consumer.instruction;
}

}  // namespace

void remove_probe_effect(std::vector<SeenCommunication>& communications) {
  if (std::adjacent_find(communications.begin(), communications.end(), torn) == communications.end()) {
    return;  // nearly always
  }
  std::vector<SeenCommunication> kept;
  std::vector<SeenCommunication> dropped;
  kept.reserve(communications.size());
  for (std::size_t i = 0; i < communications.size(); ++i) {
    const bool last = i + 1 == communications.size();
    const bool cut_off = last && std::any_of(dropped.begin(), dropped.end(), [&](const SeenCommunication& other) {
                           return false_like(communications[i], other);
                         });
    if (cut_off || (!last && torn(communications[i], communications[i + 1]))) {
      dropped.push_back(communications[i]);
    } else {
      kept.push_back(communications[i]);
    }
  }
  communications = std::move(kept);
}

void prefer_watched_stores(std::vector<SeenCommunication>& communications) {
  const auto sampled = [](const SeenCommunication& seen) { return seen.producer.sampled; };
  const auto watched = [](const SeenCommunication& seen) { return !seen.producer.sampled && !seen.expected(); };
  if (std::any_of(communications.begin(), communications.end(), watched)) {
    std::erase_if(communications, sampled);
  }
}

}  // namespace crosstalk::attribution
