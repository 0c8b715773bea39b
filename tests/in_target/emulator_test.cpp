// SPDX-License-Identifier: Apache-2.0
// Compares the interpreter with the processor: after every single-stepped instruction, its known registers and flags
// must be right.
#include "collectors/access/emulator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "collectors/access/instruction_decoder.h"
#include "tests/in_target/access_fixtures.h"
#include "tests/in_target/access_trace.h"
#include "tests/repeats.h"

namespace crosstalk::test::emulator_test {

namespace {

using in_target::DecodedInstruction;
using in_target::Emulator;
using in_target::Operation;
using in_target::Value;

std::vector<std::uint8_t> read_up_to(pid_t pid, std::uint64_t address, std::size_t bytes) {
  std::vector<std::uint8_t> out(bytes);
  const iovec local{out.data(), bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: the child's address
  const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return out;
}

bool is_executed(Operation operation) {
  switch (operation) {
    case Operation::stop:
    case Operation::jump_if:
    case Operation::jump:
    case Operation::call:
    case Operation::ret:
    case Operation::push:
    case Operation::pop:
    case Operation::leave:
    case Operation::string:
      return false;
    default:
      return true;
  }
}

/// Predicts each step from the one before.
class Predictor {
 public:
  void visit(const TraceStep& step, pid_t pid) {
    const Emulator now(step.registers, step.flags, step.fs_base);
    if (expected_) {
      ++checked_;
      if (!expected_->agrees_with(now)) {
        ++wrong_[code_];
      }
      known_ += expected_->flags_unknown() ? 0 : 1;
    }
    expected_.reset();
    const auto code = read_up_to(pid, step.registers[Register::rip], 15);
    DecodedInstruction instruction;
    if (!in_target::decode_instruction(code.data(), code.size(), instruction)) {
      return;
    }
    code_.clear();
    for (std::size_t i = 0; i < instruction.length; ++i) {
      char text[4];
      std::snprintf(text, sizeof(text), "%02x ", code[i]);
      code_ += text;
    }
    EXPECT_EQ(instruction.length, step.length) << code_;
    if (is_executed(instruction.operation)) {
      predict(step, pid, now, instruction);
    }
  }

  void expect_right(std::size_t at_least) const {
    EXPECT_GE(checked_, at_least);
    EXPECT_GT(known_, checked_ / 2);
    for (const auto& [code, times] : wrong_) {
      ADD_FAILURE() << code << "predicted wrongly " << times << " times";
    }
  }

 private:
  void predict(const TraceStep& step, pid_t pid, const Emulator& now, const DecodedInstruction& instruction) {
    const std::uint64_t after = step.registers[Register::rip] + instruction.length;
    Value memory;
    if (instruction.has(in_target::trait_explicit_access) && loads(instruction.kind()) && instruction.width <= 8) {
      const Value address = now.address(instruction, after);
      const auto bytes = read_up_to(pid, address.bits, instruction.width);
      memory.known = address.known && bytes.size() == instruction.width && !bytes.empty();
      if (memory.known) {
        std::memcpy(&memory.bits, bytes.data(), bytes.size());
      }
    }
    expected_ = now;
    expected_->execute(instruction, after, memory);
  }

  std::optional<Emulator> expected_;
  std::string code_;
  std::map<std::string, int> wrong_;
  std::size_t checked_ = 0, known_ = 0;
};

/// Random integer instructions on registers other than rsp, which a child can execute.
class RandomCode {
 public:
  explicit RandomCode(unsigned seed) : random_(seed) {}

  std::vector<std::uint8_t> make(int instructions) {
    for (int i = 0; i < instructions; ++i) {
      one();
    }
    return std::move(code_);
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }
  void byte(unsigned b) { code_.push_back(static_cast<std::uint8_t>(b)); }
  void bytes(int n) {
    for (; n > 0; --n) {
      byte(below(4) == 0 ? 0xff * below(2) : below(256));
    }
  }
  /// REX, or none (then high bytes of registers take part); sometimes an operand-size prefix.
  void prefixes() {
    narrow_ = below(6) == 0;
    if (narrow_) {
      byte(0x66);
    }
    extended_ = below(3) != 0;
    wide_ = extended_ && below(2) == 0;
    rex_b_ = extended_ ? below(2) : 0;
    if (extended_) {
      byte(0x40U | (wide_ ? 8U : 0U) | below(2) << 2U | rex_b_);
    }
  }
  /// Never rsp (or, without REX, ah, which costs nothing) as the destination; no memory.
  unsigned any_register() { return pick(rex_b_); }
  unsigned pick(unsigned high) {
    unsigned r = below(8);
    while (r == 4 && high == 0) {
      r = below(8);
    }
    return r;
  }
  void modrm(unsigned reg) { byte(0xc0U | reg << 3U | any_register()); }
  /// Registers are written in `reg`: REX.R is unknown here, so 4 (rsp) is always avoided.
  void modrm_reg_written() { byte(0xc0U | pick(0) << 3U | any_register()); }
  int full() const { return narrow_ && !wide_ ? 2 : 4; }

  void one() {
    static constexpr std::uint8_t to_reg[] = {0x40, 0x42, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4c,
                                              0x4d, 0x4e, 0x4f, 0xaf, 0xb6, 0xbe, 0xb7, 0xbf};
    prefixes();
    switch (below(14)) {
      case 0:  // op r/m, r and the other way round
      case 1: {
        byte(below(8) << 3U | below(4));
        modrm_reg_written();
        break;
      }
      case 2:
        byte(0x80 + below(2) * 3);
        modrm(below(8));
        bytes(1);
        break;
      case 3:
        byte(0x81);
        modrm(below(8));
        bytes(full());
        break;
      case 4: {  // shifts, without rcl and rcr
        static constexpr std::uint8_t opcode[] = {0xc0, 0xc1, 0xd0, 0xd1, 0xd2, 0xd3};
        static constexpr std::uint8_t which[] = {0, 1, 4, 5, 7};
        const unsigned op = opcode[below(6)];
        byte(op);
        modrm(which[below(5)]);
        bytes(op < 0xd0 ? 1 : 0);
        break;
      }
      case 5: {  // test, not, neg, mul, imul
        const unsigned op = 0xf6 + below(2);
        const unsigned which = below(6);
        byte(op);
        modrm(which);
        bytes(which > 1 ? 0 : op == 0xf6 ? 1 : full());
        break;
      }
      case 6:
        byte(0xfe + below(2));
        modrm(below(2));
        break;
      case 7:
        byte(0x0f);
        byte(to_reg[below(sizeof(to_reg))]);
        modrm_reg_written();
        break;
      case 8:
        byte(0x0f);
        byte(0x90 + below(16));
        modrm(0);
        break;
      case 9:
        byte(0x98 + below(2));
        break;
      case 10: {  // mov, xchg, test
        static constexpr std::uint8_t opcode[] = {0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x63};
        byte(opcode[below(sizeof(opcode))]);
        modrm_reg_written();
        break;
      }
      case 11: {
        const bool with_byte = below(2) == 0;
        byte(with_byte ? 0x6b : 0x69);
        modrm_reg_written();
        bytes(with_byte ? 1 : full());
        break;
      }
      case 12: {
        byte(0x0f);
        const bool immediate = below(2) == 0;
        byte(immediate ? 0xba : 0xa3);
        modrm(immediate ? 4 + below(4) : below(8));
        bytes(immediate ? 1 : 0);
        break;
      }
      default:
        byte(0xb8 + any_register());
        bytes(wide_ ? 8 : narrow_ ? 2 : 4);
    }
  }

  std::mt19937 random_;
  std::vector<std::uint8_t> code_;
  bool narrow_ = false, extended_ = false, wide_ = false;
  unsigned rex_b_ = 0;
};

TEST(Emulator, AgreesWithTheProcessorOnRandomInstructions) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::vector<std::uint8_t> code = RandomCode(seed).make(4000);
    const std::size_t bytes = code.size() + 64;
    void* page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    std::memcpy(page, code.data(), code.size());
    const auto begin = reinterpret_cast<std::uint64_t>(page);
    Predictor predictor;
    trace([page] { reinterpret_cast<void (*)()>(page)(); }, 6000,
          [&](const TraceStep& step, pid_t pid) {
            const std::uint64_t rip = step.registers[Register::rip];
            if (rip >= begin && rip < begin + code.size()) {
              predictor.visit(step, pid);
            }
          });
    predictor.expect_right(3900);
    ::munmap(page, bytes);
  }
}

TEST(Emulator, AgreesWithTheProcessorOnCompiledFunctions) {
  for (int i = 0; i < optimized::fixture_count; ++i) {
    SCOPED_TRACE(optimized::fixtures[i].name);
    Predictor predictor;
    trace(optimized::fixtures[i].run, repeats(6000),
          [&](const TraceStep& step, pid_t pid) { predictor.visit(step, pid); });
    predictor.expect_right(100);
  }
}

}  // namespace

}  // namespace crosstalk::test::emulator_test
