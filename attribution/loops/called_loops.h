// SPDX-License-Identifier: Apache-2.0
// Speeds of loops whose visits are shorter than the time between two samples, if a loop calls their function
// repeatedly. Registers that the function does not change count its calls, and the arguments of each call give its
// iterations.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/loops/loop_progress.h"
#include "attribution/loops/loop_rates.h"
#include "attribution/program/by_place.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

class CalledLoops {
 public:
  explicit CalledLoops(const ProgramView& view) : view_(view), clocks_(view.threads().size()) {}
  /// Takes samples of one thread in the order of time. Requests some stacks, which identify the callers.
  void add(const profile::SampleRow& sample, StackTable& stacks);
  /// By loop, after the stacks have been read; only loops without contrary evidence.
  [[nodiscard]] std::map<LoopPlace, CalledSpeed> speeds(const StackTable& stacks) const;

 private:
  struct Spot {  // a place where samples fall
    bool eligible = false;
    LoopPlace loop;
    symbolizer::LoopAnatomy* anatomy = nullptr;
    symbolizer::VisitOfCall visit;
    std::optional<symbolizer::MomentReader> inside, call;
  };
  struct Seen {
    ThreadId thread;
    double cpu_s = 0, own_s = 0;  // of the thread so far; of it, in the loop
    std::uint64_t called_at = 0;  // its stack pointer when the function was called
    double done = 0;              // iterations of this visit
    Registers registers;
  };
  struct Caller {
    StackId stack;
    Moment moment;
  };
  struct Trail {
    symbolizer::LoopAnatomy* anatomy = nullptr;
    std::uint16_t asked = 0;
    bool alike = true;  // all visits are as long
    double trips = 0;
    std::vector<Seen> seen;
    std::vector<Caller> callers;
    std::map<ThreadId, double> own_s;
  };
  struct Counted {  // a register
    std::size_t reg = 0;
    std::int64_t step = 0;
    bool narrow = false;
  };
  [[nodiscard]] const Spot& spot_of(const profile::SampleRow& sample);
  [[nodiscard]] Spot new_spot(ModulePlace place) const;
  [[nodiscard]] std::vector<Counted> counters_of(const Trail& trail, const StackTable& stacks) const;
  [[nodiscard]] static std::vector<LoopStep> steps_of(const Trail& trail, const std::vector<Counted>& counters);

  const ProgramView& view_;
  ByPlace<Spot> spots_;
  std::vector<double> clocks_;  // by thread: CPU time so far
  std::map<LoopPlace, Trail> trails_;
};

}  // namespace crosstalk::attribution
