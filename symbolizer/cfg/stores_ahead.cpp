// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/stores_ahead.h"

#include <deque>
#include <set>
#include <utility>

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t most_walked = 512;
constexpr std::size_t most_stores = 32;
constexpr auto stack_register = static_cast<std::size_t>(Register::rsp);

/// A way that has begun, and is not followed yet.
struct Begun {
  std::uint64_t address = 0;
  RegisterForms forms;
};

/// Adds `lea variable(%rip), reg`, which register_effects.h cannot evaluate because it does not know the code's
/// address.
void execute_at(const Instruction& instruction, std::span<const std::uint8_t> code, RegisterForms& forms) {
  execute(code, forms);
  Decoded decoded;
  if (!decode_full(code, decoded) || decoded.instruction.mnemonic != ZYDIS_MNEMONIC_LEA ||
      decoded.operands[1].mem.base != ZYDIS_REGISTER_RIP) {
    return;
  }
  if (const auto reg = integer_register(decoded.operands[0].reg.value); reg && *reg != Register::rip) {
    forms.at(static_cast<std::size_t>(*reg)) =
        Linear::number(instruction.end() + static_cast<std::uint64_t>(decoded.operands[1].mem.disp.value));
  }
}

class Walk {
 public:
  explicit Walk(const CodeAt& code) : code_(code) {}

  std::vector<StoreAhead> from(std::uint64_t address) {
    open_.push_back({address, unchanged_registers()});
    while (!open_.empty() && looked_at_.size() < most_walked && found_.size() < most_stores) {
      const Begun begun = open_.front();
      open_.pop_front();
      follow(begun.address, begun.forms);
    }
    return std::move(found_);
  }

 private:
  /// Follows a way until it meets a followed one, or splits. Queues the sides of a split.
  void follow(std::uint64_t address, RegisterForms forms) {
    while (looked_at_.size() < most_walked && looked_at_.insert(address).second) {
      const auto code = code_(address);
      const auto instruction = decode(code, address);
      if (!instruction) {
        return;
      }
      note_store(*instruction, code, forms);
      if (instruction->flow == Flow::call && instruction->target != 0) {
        open_.push_back({instruction->target, forms});
        open_.back().forms[stack_register].reset();
      }
      execute_at(*instruction, code, forms);
      switch (instruction->flow) {
        case Flow::next:
        case Flow::call:
          address = instruction->end();
          break;
        case Flow::jump:
          address = instruction->target;
          break;
        case Flow::branch:
          open_.push_back({instruction->end(), forms});
          open_.push_back({instruction->target, forms});
          return;
        case Flow::indirect_jump:
        case Flow::stop:
          return;
      }
    }
  }

  void note_store(const Instruction& instruction, std::span<const std::uint8_t> code, const RegisterForms& forms) {
    const auto access = memory_access(code, instruction.address);
    if (!access || !stores(access->kind) || access->width == 0 || access->segment_fs || access->base == Register::rsp ||
        found_.size() >= most_stores) {
      return;
    }
    const auto address = address_form(*access, instruction.end(), forms);
    if (address && !address->narrow && address->factor[stack_register] == 0) {
      found_.push_back({instruction.address, *address, access->width, access->kind});
    }
  }

  const CodeAt& code_;
  std::deque<Begun> open_;
  std::set<std::uint64_t> looked_at_;
  std::vector<StoreAhead> found_;
};

}  // namespace

std::uint64_t StoreAhead::at(const Registers& registers) const {
  std::uint64_t sum = address.constant;
  for (std::size_t reg = 0; reg < general_registers; ++reg) {
    sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(address.factor[reg])) *
           registers[static_cast<Register>(reg)];
  }
  return sum;
}

std::vector<StoreAhead> stores_ahead(std::uint64_t from, const CodeAt& code) { return Walk(code).from(from); }

}  // namespace crosstalk::symbolizer
