// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/round.h"

#include "collectors/access/emulator.h"
#include "collectors/access/memory.h"
#include "collectors/access/stepper.h"

namespace crosstalk::in_target {

namespace {

constexpr unsigned max_instructions = 64;

/// Notes which instructions are executed.
class RoundSearch {
 public:
  using Run = Stepper<InterpretedMemory, NoVectors, RoundSearch>;

  bool unreadable(const Run& /*run*/) { return false; }
  bool fetched(const Run& run) {
    const DecodedInstruction& instruction = run.instruction();
    const bool does_nothing = !run.takes_part() && run.emulator().get(Register::rcx).known;
    if (instruction.operation == Operation::stop || (instruction.operation == Operation::string && !does_nothing)) {
      return false;
    }
    executed_[count_++ % Round::most] = run.at();
    return true;
  }
  bool accesses(const Run& /*run*/) { return true; }
  void computes(const Run& /*run*/) {}
  void computed(const Run& /*run*/) {}
  bool decides(const Run& /*run*/, Truth /*taken*/) { return true; }
  void transfers(const Run& /*run*/) {}
  bool goes(const Run& /*run*/, Value /*target*/) { return true; }

  [[nodiscard]] Round round() const {
    Round result;
    for (; result.length < Round::most && result.length < count_; ++result.length) {
      result.last[result.length] = executed_[(count_ - 1 - result.length) % Round::most];
    }
    return result;
  }

 private:
  std::array<std::uint64_t, Round::most> executed_{};
  unsigned count_ = 0;
};

}  // namespace

bool find_round(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
                const CodeReader& reader, Round& out) {
  RoundSearch search;
  const CodeReader as_it_is_now{reader.context, reader.read,
                                reader.read_now != nullptr ? reader.read_now : reader.read_data};
  InterpretedMemory memory(as_it_is_now);
  NoVectors no_vectors;
  RoundSearch::Run run(registers, flags, fs_base, window, memory, no_vectors, search);
  for (unsigned i = 0; i < max_instructions && run.step(); ++i) {
    if (run.at() == registers[Register::rip]) {
      out = search.round();
      return true;
    }
  }
  return false;
}

}  // namespace crosstalk::in_target
