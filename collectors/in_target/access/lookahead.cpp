// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access/lookahead.h"

#include <cstring>

#include "collectors/in_target/access/code.h"
#include "collectors/in_target/access/stepper.h"
#include "profile/branch_trace.h"

namespace crosstalk::in_target {

void LookaheadMemory::begin(const CodeReader& reader) {
  reader_ = &reader;
  full_ = false;
  if (++run_ == 0) {  // after 2^32 lookaheads: what is left of the first ones must not look new
    for (Block& block : block_) {
      block.run = 0;
    }
    run_ = 1;
  }
}

LookaheadMemory::Block* LookaheadMemory::block_of(std::uint64_t number) {
  constexpr std::size_t probes = 16;
  const std::uint64_t place = mix(0, number) >> 24U;
  for (std::size_t i = 0; i < probes; ++i) {
    Block& block = block_[(place + i) % blocks];
    if (block.run == run_ && block.number == number) {
      return &block;
    }
    if (block.run != run_) {
      block.run = run_;
      block.number = number;
      const bool read = reader_->read_data(reader_->context, number * block_bytes, block.bytes, block_bytes);
      block.known = read ? ~std::uint64_t{0} : 0;
      return &block;
    }
  }
  full_ = true;
  return nullptr;
}

Value LookaheadMemory::load(std::uint64_t address, unsigned width) {
  std::uint64_t bits = 0;
  if (width == 0 || width > 8 || address + width < address) {
    return {};
  }
  for (unsigned done = 0; done < width;) {
    const std::uint64_t at = address + done;
    const std::uint64_t offset = at % block_bytes;
    const auto here =
        static_cast<unsigned>(offset + (width - done) <= block_bytes ? width - done : block_bytes - offset);
    const Block* block = block_of(at / block_bytes);
    const std::uint64_t mask = ((std::uint64_t{1} << here) - 1) << offset;  // here <= 8
    if (block == nullptr || (block->known & mask) != mask) {
      return {};
    }
    std::uint64_t part = 0;
    std::memcpy(&part, block->bytes + offset, here);
    bits |= part << (8 * done);
    done += here;
  }
  return {bits, true};
}

void LookaheadMemory::store(std::uint64_t address, unsigned width, Value value) {
  if (address + width < address) {
    full_ = true;
    return;
  }
  const bool known = value.known && width <= 8;
  for (unsigned done = 0; done < width;) {
    const std::uint64_t at = address + done;
    const std::uint64_t offset = at % block_bytes;
    const auto here =
        static_cast<unsigned>(offset + (width - done) <= block_bytes ? width - done : block_bytes - offset);
    Block* block = block_of(at / block_bytes);
    if (block == nullptr) {
      return;
    }
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    block->known = known ? block->known | ones << offset : block->known & ~(ones << offset);
    if (known) {
      const std::uint64_t part = value.bits >> (8 * done);
      std::memcpy(block->bytes + offset, &part, here);
    }
    done += here;
  }
}

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
class LookaheadObserver {
 public:
  using Run = Stepper<LookaheadMemory, LookaheadObserver>;

  LookaheadObserver(const LookaheadLimits& limits, profile::BranchTraceWriter& trace, std::uint64_t ip, Lookahead& out)
      : limits_(limits), trace_(trace), out_(out), straight_(ip) {}

  /// Before each instruction: is the run to end at `at`, after so many reads of memory?
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
  std::uint64_t straight_;         // where the present straight line began
  std::uint64_t cycle_ = 0;        // a hash of the jumps since the head
  std::uint64_t first_cycle_ = 0;  // of the first iteration
};

/// At the head: an iteration is complete.
void LookaheadObserver::pass() {
  ++out_.passages;
  if (out_.passages == 2) {
    first_cycle_ = cycle_;
    out_.alike = true;
  } else if (out_.passages > 2 && cycle_ != first_cycle_) {
    out_.alike = false;
  }
  cycle_ = mix(0, out_.head);
}

bool LookaheadObserver::at_end(std::uint64_t at, std::uint32_t reads) {
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

bool uses_stack(Operation operation) {
  return operation == Operation::push || operation == Operation::pop || operation == Operation::leave ||
         operation == Operation::call || operation == Operation::ret;
}

bool LookaheadObserver::fetched(const Run& run) {
  const Operation operation = run.instruction().operation;
  // A string instruction repeats by its count, and what it moves is not known; a stop ends what is known at all.
  if (operation == Operation::stop || operation == Operation::string) {
    return stop(profile::LookaheadEnd::code);
  }
  const Register base = operation == Operation::leave ? Register::rbp : Register::rsp;
  return !uses_stack(operation) || run.emulator().get(base).known || stop(profile::LookaheadEnd::value);
}

bool LookaheadObserver::accesses(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  if (stores(instruction.kind()) && (!run.address().known || instruction.width == 0)) {
    return stop(profile::LookaheadEnd::value);  // from here on any load may give anything
  }
  return true;
}

bool LookaheadObserver::goes(const Run& run, Value target) {
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

}  // namespace

Lookahead AccessFinder::look_ahead(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                                   const CodeReader& reader, const LookaheadLimits& limits, LookaheadMemory& memory,
                                   std::uint8_t* trace, std::size_t trace_capacity) {
  Lookahead out;
  CountedReader counted{reader};
  const CodeReader through = counted.reader();
  memory.begin(through);
  CodeWindow window(through, cache_);
  profile::BranchTraceWriter writer(trace, trace_capacity);
  LookaheadObserver observer(limits, writer, registers[Register::rip], out);
  LookaheadObserver::Run run(registers, flags, fs_base, window, memory, observer);
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

}  // namespace crosstalk::in_target
