// SPDX-License-Identifier: Apache-2.0
// Positions of loops in their data. The registers at samples give the address of each access of the loop's body, and
// pairs of samples give its movement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attribution/loops/loop_progress.h"
#include "attribution/program/by_place.h"
#include "attribution/program/program_view.h"
#include "models/stream_traffic.h"
#include "models/tuning_catalogue.h"
#include "symbolizer/loops/loop_operands.h"

namespace crosstalk::attribution {

/// Two successive samples of one thread in one loop.
struct StreamPair {
  std::uint32_t thread = 0;
  double cpu_s = 0;  // between them
  symbolizer::LoopMoment from, to;
};
/// A random choice of a loop's pairs, all equally likely to be kept.
struct LoopPairs {
  struct Range {
    std::uint64_t low = UINT64_MAX, high = 0, seen = 0;
  };
  std::vector<StreamPair> pairs;
  std::uint64_t seen = 0;
  /// Sampled addresses, by thread and accessing instruction (a module address).
  std::map<std::pair<std::uint32_t, std::uint64_t>, Range> ranges;
};

/// Streams of the thread with most pairs; `unknown`: the reason if there are none, half a sentence. Accesses to a fixed
/// address are no streams.
struct LoopStreams {
  std::vector<models::Stream> streams;
  std::vector<models::Scattered> scattered;  // accesses with addresses that no register gives
  std::string unknown;
};
/// `iterations_per_s`: of the thread's CPU time. It tells if the loop sweeps over the whole sampled range, or
/// repeatedly over parts of it, which the model does not cover.
[[nodiscard]] LoopStreams streams_of(const std::vector<symbolizer::LoopOperand>& operands, const LoopPairs& pairs,
                                     double iterations_per_s);

/// The accesses that move by a constant stride of a line or more, by the pairs of all threads: also of those that live
/// too shortly for streams_of(). nullopt: there is none, or too few pairs tell.
[[nodiscard]] std::optional<models::LongStrides> long_strides(const std::vector<symbolizer::LoopOperand>& operands,
                                                              const LoopPairs& pairs);

class StreamSamples {
 public:
  explicit StreamSamples(const ProgramView& view) : view_(view), last_(view.threads().size()) {}
  /// Samples of one thread in the order of time.
  void add(const profile::SampleRow& sample);
  [[nodiscard]] const std::map<LoopPlace, LoopPairs>& loops() const { return loops_; }

 private:
  struct Spot {
    LoopPairs* loop = nullptr;  // null: none, or nothing can be read there
    std::optional<symbolizer::MomentReader> reader;
  };
  struct Last {
    const LoopPairs* loop = nullptr;
    symbolizer::LoopMoment moment;
    double cpu_s = 0;  // since
  };
  [[nodiscard]] const Spot& spot_of(const profile::SampleRow& sample);
  [[nodiscard]] Spot new_spot(ModulePlace place);
  static void keep(LoopPairs& loop, const StreamPair& pair);
  void note_address(const profile::SampleRow& sample, LoopPairs& loop) const;

  const ProgramView& view_;
  ByPlace<Spot> spots_;
  std::vector<Last> last_;  // by thread
  std::map<LoopPlace, LoopPairs> loops_;
};

}  // namespace crosstalk::attribution
