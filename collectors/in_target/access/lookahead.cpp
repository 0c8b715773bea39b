// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access/lookahead.h"

#include <cstring>

#include "collectors/in_target/access/code.h"
#include "profile/branch_trace.h"

namespace crosstalk::in_target {

void LookaheadMemory::begin(const CodeReader& reader) {
  reader_ = &reader;
  full_ = false;
  if (++walk_ == 0) {  // after 2^32 walks: what is left of the first ones must not look new
    for (Block& block : block_) {
      block.walk = 0;
    }
    walk_ = 1;
  }
}

LookaheadMemory::Block* LookaheadMemory::block_of(std::uint64_t number) {
  constexpr std::size_t probes = 16;
  const std::uint64_t place = mix(0, number) >> 24U;
  for (std::size_t i = 0; i < probes; ++i) {
    Block& block = block_[(place + i) % blocks];
    if (block.walk == walk_ && block.number == number) {
      return &block;
    }
    if (block.walk != walk_) {
      block.walk = walk_;
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

enum class Step : std::uint8_t { on, stop };

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

class LookaheadRun {
 public:
  LookaheadRun(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
               LookaheadMemory& memory, const LookaheadLimits& limits, profile::BranchTraceWriter& way,
               const std::uint32_t& reads, Lookahead& out)
      : emulator_(registers, flags, fs_base),
        memory_(memory),
        window_(window),
        limits_(limits),
        way_(way),
        reads_(reads),
        out_(out),
        at_(registers[Register::rip]),
        straight_(at_) {}

  void run();

 private:
  Step step();
  bool at_end();
  void pass();
  Step advance(Value memory);
  Step stop(profile::LookaheadEnd why);
  Step go(Value target);
  Step transfer(Value memory);
  void execute(Value memory);
  void push(Value value, unsigned size);
  Value pop(unsigned size);

  Emulator emulator_;
  LookaheadMemory& memory_;
  CodeWindow& window_;
  const LookaheadLimits& limits_;
  profile::BranchTraceWriter& way_;
  const std::uint32_t& reads_;  // so far
  Lookahead& out_;
  std::uint64_t at_;
  std::uint64_t straight_;  // where the present straight line began
  std::uint64_t after_ = 0;
  std::uint64_t cycle_ = 0;        // a hash of the way since the head
  std::uint64_t first_cycle_ = 0;  // of the first iteration
  Value address_;                  // of the memory operand
  DecodedInstruction instruction_;
};

Step LookaheadRun::stop(profile::LookaheadEnd why) {
  out_.end = why;
  return Step::stop;
}

/// At the head: an iteration is complete.
void LookaheadRun::pass() {
  ++out_.passages;
  if (out_.passages == 2) {
    first_cycle_ = cycle_;
    out_.alike = true;
  } else if (out_.passages > 2 && cycle_ != first_cycle_) {
    out_.alike = false;
  }
  cycle_ = mix(0, out_.head);
}

bool LookaheadRun::at_end() {
  if (at_ == out_.head && out_.head != 0) {
    pass();
    if (out_.passages >= limits_.passages || (out_.passages > 1 && out_.instructions >= limits_.instructions)) {
      stop(profile::LookaheadEnd::whole);
      return true;
    }
  }
  if (out_.instructions >= limits_.most_instructions) {
    stop(profile::LookaheadEnd::length);
    return true;
  }
  if (reads_ >= limits_.most_reads) {
    stop(profile::LookaheadEnd::room);
    return true;
  }
  return false;
}

void LookaheadRun::run() {
  while (!at_end() && step() == Step::on) {
    ++out_.instructions;
  }
  way_.end(at_ - straight_);
}

Step LookaheadRun::step() {
  if (!window_.decode(at_, instruction_)) {
    return stop(profile::LookaheadEnd::code);
  }
  after_ = at_ + instruction_.length;
  // A string instruction repeats by its count, and what it moves is not known; the rest ends what is known at all.
  if (instruction_.operation == Operation::stop || instruction_.operation == Operation::string) {
    return stop(profile::LookaheadEnd::code);
  }
  address_ = {};
  Value memory;
  if (instruction_.has(trait_explicit_access)) {
    address_ = emulator_.address(instruction_, after_);
    if (loads(instruction_.kind()) && instruction_.operation != Operation::other && address_.known) {
      memory = memory_.load(address_.bits, instruction_.width);
    }
    if (stores(instruction_.kind()) && (!address_.known || instruction_.width == 0)) {
      return stop(profile::LookaheadEnd::value);  // from here on any load may give anything
    }
  }
  const Step next = advance(memory);
  return next == Step::on && memory_.full() ? stop(profile::LookaheadEnd::room) : next;
}

void LookaheadRun::push(Value value, unsigned size) {
  Value top = emulator_.get(Register::rsp);
  top.bits -= size;
  emulator_.set(Register::rsp, top);
  memory_.store(top.bits, size, value);
}

Value LookaheadRun::pop(unsigned size) {
  Value top = emulator_.get(Register::rsp);
  const Value value = memory_.load(top.bits, size);
  top.bits += size;
  emulator_.set(Register::rsp, top);
  return value;
}

void LookaheadRun::execute(Value memory) {
  const Value result = emulator_.execute(instruction_, after_, memory);
  if (instruction_.has(trait_explicit_access) && stores(instruction_.kind())) {
    memory_.store(address_.bits, instruction_.width, result);
  }
}

Step LookaheadRun::advance(Value memory) {
  const bool on_stack = instruction_.operation == Operation::push || instruction_.operation == Operation::pop ||
                        instruction_.operation == Operation::leave || instruction_.operation == Operation::call ||
                        instruction_.operation == Operation::ret;
  const Register base = instruction_.operation == Operation::leave ? Register::rbp : Register::rsp;
  if (on_stack && !emulator_.get(base).known) {
    return stop(profile::LookaheadEnd::value);
  }
  switch (instruction_.operation) {
    case Operation::jump_if: {
      const Truth taken = emulator_.holds(instruction_.condition);
      if (taken == Truth::unknown) {
        return stop(profile::LookaheadEnd::value);
      }
      if (taken == Truth::yes) {
        return go({after_ + instruction_.immediate_value(), true});
      }
      break;
    }
    case Operation::jump:
    case Operation::call:
    case Operation::ret:
      return transfer(memory);
    case Operation::push:
      push(emulator_.fetch(instruction_, instruction_.source, instruction_.size, memory), instruction_.size);
      break;
    case Operation::pop:
      emulator_.receive(instruction_, pop(instruction_.size));
      break;
    case Operation::leave:
      emulator_.set(Register::rsp, emulator_.get(Register::rbp));
      emulator_.set(Register::rbp, pop(8));
      break;
    default:
      execute(memory);
  }
  at_ = after_;
  return Step::on;
}

Step LookaheadRun::transfer(Value memory) {
  const bool returns = instruction_.operation == Operation::ret;
  const Value target = returns ? pop(8) : emulator_.target(instruction_, after_, memory);
  if (returns) {
    emulator_.drop_arguments(instruction_);
  }
  if (instruction_.operation == Operation::call) {
    push({after_, true}, 8);
  }
  return go(target);
}

Step LookaheadRun::go(Value target) {
  if (!target.known) {
    return stop(profile::LookaheadEnd::value);
  }
  if (!way_.turn(at_ - straight_, target.bits - at_)) {
    return stop(profile::LookaheadEnd::room);
  }
  const bool jumps = instruction_.operation == Operation::jump || instruction_.operation == Operation::jump_if;
  if (out_.head == 0 && jumps && target.bits <= at_ && at_ - target.bits < limits_.farthest_back) {
    out_.head = target.bits;
  }
  cycle_ = mix(mix(cycle_, at_), target.bits);
  at_ = straight_ = target.bits;
  return Step::on;
}

}  // namespace

Lookahead AccessFinder::walk(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                             const CodeReader& reader, const LookaheadLimits& limits, LookaheadMemory& memory,
                             std::uint8_t* way, std::size_t trace_capacity) {
  Lookahead out;
  CountedReader counted{reader};
  const CodeReader through = counted.reader();
  memory.begin(through);
  CodeWindow window(through, cache_);
  profile::BranchTraceWriter writer(way, trace_capacity);
  LookaheadRun(registers, flags, fs_base, window, memory, limits, writer, counted.reads, out).run();
  out.trace_bytes = writer.size();
  return out;
}

}  // namespace crosstalk::in_target
