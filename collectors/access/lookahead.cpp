// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/lookahead.h"

#include "collectors/access/code.h"
#include "collectors/access/stepper.h"
#include "collectors/access/vector_unit.h"
#include "profile/branch_trace.h"

namespace crosstalk::in_target {

namespace {

/// A reader that counts.
struct CountedReader {
  const CodeReader& inner;
  std::uint32_t reads = 0;

  static bool read(void* self, std::uint64_t address, void* out, std::size_t bytes) {
    auto& counted = *static_cast<CountedReader*>(self);
    ++counted.reads;
    return counted.inner.read(counted.inner.context, address, out, bytes);
  }
  static bool read_data(void* self, std::uint64_t address, void* out, std::size_t bytes) {
    auto& counted = *static_cast<CountedReader*>(self);
    ++counted.reads;
    return counted.inner.read_data(counted.inner.context, address, out, bytes);
  }
  CodeReader reader() { return {this, read, read_data}; }
};

/// Writes down the taken jumps, and sees when an iteration is complete and why the run ends.
template <class Vectors>
class LookaheadObserver {
 public:
  using Run = Stepper<LookaheadMemory, Vectors, LookaheadObserver>;

  LookaheadObserver(const LookaheadLimits& limits, profile::BranchTraceWriter& trace, std::uint64_t ip, Lookahead& out)
      : limits_(limits), trace_(trace), out_(out), straight_(ip) {}

  /// Called before each instruction: true if the run must end at `at`, after so many reads of memory.
  bool at_end(std::uint64_t at, std::uint32_t reads);
  /// After the run, which has ended before the instruction at `at`.
  void finish(std::uint64_t at) { trace_.end(at - straight_); }
  /// The run ends; returns false, as a stepper's observer does that ends it.
  bool stop(profile::LookaheadEnd why) {
    out_.end = why;
    return false;
  }

  bool unreadable(const Run& /*run*/) { return stop(profile::LookaheadEnd::code); }
  bool fetched(const Run& run);
  bool accesses(const Run& run);
  void computes(const Run& /*run*/) {}
  void computed(const Run& /*run*/) {}
  bool decides(const Run& /*run*/, Truth taken) {
    return taken != Truth::unknown || stop(profile::LookaheadEnd::value);
  }
  void transfers(const Run& /*run*/) {}
  bool goes(const Run& run, Value target);

 private:
  void pass();

  const LookaheadLimits& limits_;
  profile::BranchTraceWriter& trace_;
  Lookahead& out_;
  std::uint64_t straight_;         // beginning of the present straight line
  std::uint64_t cycle_ = 0;        // a hash of the jumps since the head
  std::uint64_t first_cycle_ = 0;  // of the first iteration
};

/// At the head: an iteration is complete.
template <class Vectors>
void LookaheadObserver<Vectors>::pass() {
  ++out_.passages;
  if (out_.passages == 2) {
    first_cycle_ = cycle_;
    out_.alike = true;
  } else if (out_.passages > 2 && cycle_ != first_cycle_) {
    out_.alike = false;
  }
  cycle_ = mix(0, out_.head);
}

template <class Vectors>
bool LookaheadObserver<Vectors>::at_end(std::uint64_t at, std::uint32_t reads) {
  if (at == out_.head && out_.head != 0) {
    pass();
    if (out_.passages >= limits_.passages || (out_.passages > 1 && out_.instructions >= limits_.instructions)) {
      return !stop(profile::LookaheadEnd::whole);
    }
  }
  if (out_.instructions >= limits_.most_instructions) {
    return !stop(profile::LookaheadEnd::length);
  }
  return reads >= limits_.most_reads && !stop(profile::LookaheadEnd::room);
}

template <class Vectors>
bool LookaheadObserver<Vectors>::fetched(const Run& run) {
  const Operation operation = run.instruction().operation;
  // A string instruction repeats by its count, and moves unknown data; after a stop nothing is known.
  if (operation == Operation::stop || operation == Operation::string) {
    return stop(profile::LookaheadEnd::code);
  }
  const Register base = operation == Operation::leave ? Register::rbp : Register::rsp;
  return !uses_stack(operation) || run.emulator().get(base).known || stop(profile::LookaheadEnd::value);
}

template <class Vectors>
bool LookaheadObserver<Vectors>::accesses(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  if (stores(instruction.kind()) && (!run.address().known || instruction.width == 0)) {
    return stop(profile::LookaheadEnd::value);  // from here on any load may give anything
  }
  return true;
}

template <class Vectors>
bool LookaheadObserver<Vectors>::goes(const Run& run, Value target) {
  if (!target.known) {
    return stop(profile::LookaheadEnd::value);
  }
  if (!trace_.turn(run.at() - straight_, target.bits - run.at())) {
    return stop(profile::LookaheadEnd::room);
  }
  const Operation operation = run.instruction().operation;
  const bool jumps = operation == Operation::jump || operation == Operation::jump_if;
  if (out_.head == 0 && jumps && target.bits <= run.at() && run.at() - target.bits < limits_.farthest_back) {
    out_.head = target.bits;
  }
  cycle_ = mix(mix(cycle_, run.at()), target.bits);
  straight_ = target.bits;
  return true;
}

/// Follows the thread until the observer ends it.
template <class Vectors>
Lookahead follow(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CountedReader& counted,
                 CodeWindow& window, const LookaheadLimits& limits, LookaheadMemory& memory, Vectors& vectors,
                 profile::BranchTraceWriter writer) {
  Lookahead out;
  LookaheadObserver<Vectors> observer(limits, writer, registers[Register::rip], out);
  typename LookaheadObserver<Vectors>::Run run(registers, flags, fs_base, window, memory, vectors, observer);
  while (!observer.at_end(run.at(), counted.reads) && run.step()) {
    if (memory.full()) {
      observer.stop(profile::LookaheadEnd::room);
      break;
    }
    ++out.instructions;
  }
  observer.finish(run.at());
  out.trace_bytes = writer.size();
  return out;
}

}  // namespace

// Few loops end by values computed in vector registers, and following these takes some five times as long, mostly to
// read the loaded data. So vectors are followed only if the path depends on them.
Lookahead AccessFinder::look_ahead(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                                   const CodeReader& reader, const LookaheadLimits& limits, LookaheadState& state,
                                   std::uint8_t* trace, std::size_t trace_capacity) {
  CountedReader counted{reader};
  const CodeReader through = counted.reader();
  CodeWindow window(through, cache_);
  state.memory.begin(through);
  NoVectors none;
  Lookahead found = follow(registers, flags, fs_base, counted, window, limits, state.memory, none,
                           profile::BranchTraceWriter(trace, trace_capacity));
  if (found.end == profile::LookaheadEnd::value) {
    counted.reads = 0;
    state.memory.begin(through);
    VectorUnit vectors(state.vectors, state.processor);
    found = follow(registers, flags, fs_base, counted, window, limits, state.memory, vectors,
                   profile::BranchTraceWriter(trace, trace_capacity));
  }
  return found;
}

}  // namespace crosstalk::in_target
