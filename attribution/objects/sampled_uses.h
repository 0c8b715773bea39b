// SPDX-License-Identifier: Apache-2.0
// Lines that threads use in turn, by samples alone: weak evidence, for recordings in which nothing could watch. Threads
// that take turns store while nobody else looks, so probes see nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/timeline/sampled_code.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Keeps samples of accesses: 40 bytes each.
class LineUses {
 public:
  /// All must outlive this.
  LineUses(std::span<const profile::ThreadRow> threads, SampledCode& code) : threads_(threads), code_(code) {}
  void add(const profile::SampleRow& sample);
  /// Returns, by object, the uses of lines that several threads of a process used, one of which stored, if the threads
  /// came back after each other often enough that it is more than a single handover; most time first. `name_at` names
  /// the object at an address of a thread's process; it is called once for each line used so.
  using NameAt = std::function<std::string(ThreadId thread, std::uint64_t time_ns, std::uint64_t address)>;
  [[nodiscard]] std::vector<SampledUse> in_turn(const NameAt& name_at);

 private:
  struct Use {
    std::uint64_t address = 0, time_ns = 0, cpu_ns = 0;
    std::uint32_t thread = 0, process = 0;
    bool stores = false;
    [[nodiscard]] bool same_line(const Use& other) const;
  };
  struct Line {
    std::span<const Use> uses;
    bool shared = false;  // several threads use it, one of which stores
  };
  [[nodiscard]] std::vector<Line> lines();

  std::span<const profile::ThreadRow> threads_;
  SampledCode& code_;
  std::vector<Use> uses_;
};

}  // namespace crosstalk::attribution
