// SPDX-License-Identifier: Apache-2.0
// Call stacks of this very process, captured in a chain of calls without frame pointers, and of hostile bytes.
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <random>

#include "fixture.h"
#include "fixtures/deep_calls.h"
#include "symbolizer/unwind/expression.h"

namespace crosstalk::symbolizer::unwinding_test {
namespace {

/// The modules of this process, as a recording has them.
struct Process {
  Symbolizer symbols{offline()};
  std::vector<Mapping> mappings;

  Process() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          static_cast<Process*>(self)->add(*info);
          return 0;
        },
        this);
  }
  void add(const dl_phdr_info& info) {
    std::string path = info.dlpi_name;
    const bool is_vdso = path.find("vdso") != std::string::npos;
    if (path.empty()) {
      path = std::filesystem::read_symlink("/proc/self/exe");
    }
    const ModuleId id = symbols.add_module({is_vdso ? "" : path, "", is_vdso});
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& header = info.dlpi_phdr[i];
      if (header.p_type == PT_LOAD) {
        const std::uint64_t begin = info.dlpi_addr + header.p_vaddr;
        mappings.push_back({begin, begin + header.p_memsz, info.dlpi_addr, id});
      }
    }
  }
  /// Names of the functions of a stack, inlined ones left out.
  std::vector<std::string> names(const std::vector<std::uint64_t>& addresses) {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::uint64_t address = addresses[i] - (i == 0 ? 0 : 1);
      std::string name = "?";
      for (const Mapping& mapping : mappings) {
        if (mapping.begin <= address && address < mapping.end) {
          const auto& frames = symbols.locate(mapping.module, address - mapping.bias).frames;
          name = frames.empty() ? "?" : frames.back().function;
        }
      }
      result.push_back(name);
    }
    return result;
  }
};

/// Expects `name`s with level<N> in order: 0, 1, ... deepest.
void expect_whole_chain(const std::vector<std::string>& names) {
  int next = 0;
  for (const std::string& name : names) {
    if (name.find("level<" + std::to_string(next) + ">") != std::string::npos) {
      ++next;
    }
  }
  EXPECT_EQ(next, fixture::deepest_level + 1) << testing::PrintToString(names);
  EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                          [](const std::string& name) { return name.find("deep_calls") != std::string::npos; }));
}

TEST(Unwinding, ChainWithoutFramePointers) {
  fixture::deep_calls(false);
  const auto& capture = fixture::capture_here;
  Process process;
  const auto stack = process.symbols.unwind(capture.registers, capture.stack, process.mappings);
  ASSERT_FALSE(stack.empty());
  EXPECT_EQ(stack[0], capture.registers[Register::rip]);
  const auto names = process.names(stack);
  expect_whole_chain(names);
  EXPECT_NE(names[1].find("level<0>"), std::string::npos);
}

TEST(Unwinding, ThroughASignalFrame) {
  fixture::deep_calls(true);
  const auto& capture = fixture::capture_here;
  Process process;
  const auto stack = process.symbols.unwind(capture.registers, capture.stack, process.mappings);
  expect_whole_chain(process.names(stack));
}

using Variable = std::pair<ModuleId, StackVariable>;

/// Returns the variable at `data`, by the frames of the captured stack.
std::optional<Variable> variable_at(Process& process, std::uint64_t data) {
  const auto& capture = fixture::capture_here;
  const auto frames = process.symbols.unwind_frames(capture.registers, capture.stack, process.mappings);
  const auto frame =
      std::find_if(frames.begin(), frames.end(), [&](const StackFrame& f) { return f.sp <= data && data < f.end; });
  if (frame == frames.end()) {
    return std::nullopt;
  }
  const std::uint64_t code = frame->address - (frame == frames.begin() ? 0 : 1);
  const auto mapping = std::find_if(process.mappings.begin(), process.mappings.end(),
                                    [&](const Mapping& m) { return m.begin <= code && code < m.end; });
  auto found = process.symbols.stack_variable(mapping->module, code - mapping->bias, *frame, data);
  return found ? std::optional(Variable(mapping->module, *found)) : std::nullopt;
}

TEST(Unwinding, VariablesInTheirFrames) {
  fixture::deep_calls(false);
  const auto& capture = fixture::capture_here;
  Process process;
  const auto tally = variable_at(process, capture.tally);
  ASSERT_TRUE(tally);
  EXPECT_EQ(tally->second.name, "tally");
  EXPECT_EQ(tally->second.begin, capture.tally - offsetof(fixture::Tally, misses[1]));
  EXPECT_EQ(tally->second.type.bytes, sizeof(fixture::Tally));
  EXPECT_NE(tally->second.declared.file.find("deep_calls.cpp"), std::string::npos);
  const auto field = process.symbols.field_of(tally->first, tally->second.type.type, 16);
  ASSERT_TRUE(field);
  EXPECT_EQ(field->path, "misses[1]");
  const auto room = variable_at(process, capture.level_room);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->second.name, "room");
  EXPECT_EQ(room->second.begin, capture.level_room - 9);
  EXPECT_EQ(room->second.type.bytes, 2 * 24 + 8U);
}

TEST(Unwinding, VariablesThatFramesAreAlignedFor) {
  fixture::aligned_calls();
  Process process;
  const std::uint64_t generation = fixture::capture_here.meeting;
  const auto meeting = variable_at(process, generation);
  ASSERT_TRUE(meeting);
  EXPECT_EQ(meeting->second.name, "meeting");
  EXPECT_EQ(meeting->second.begin, generation - offsetof(fixture::Meeting, generation));
  const auto field = process.symbols.field_of(meeting->first, meeting->second.type.type, 64);
  ASSERT_TRUE(field);
  EXPECT_EQ(field->path, "generation");
}

TEST(Unwinding, StopsAtTheEndOfTheCapturedStack) {
  fixture::deep_calls(false);
  const auto& capture = fixture::capture_here;
  Process process;
  const auto whole = process.symbols.unwind(capture.registers, capture.stack, process.mappings);
  for (std::size_t bytes = 0; bytes < capture.stack.size(); bytes += 24) {
    const auto part =
        process.symbols.unwind(capture.registers, std::span(capture.stack).first(bytes), process.mappings);
    ASSERT_LE(part.size(), whole.size());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  }
  EXPECT_EQ(process.symbols.unwind(capture.registers, capture.stack, process.mappings, 3).size(), 3U);
  EXPECT_TRUE(process.symbols.unwind(capture.registers, capture.stack, process.mappings, 0).empty());
}

TEST(Unwinding, FramePointersWhereNothingElseIsKnown) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({"/no/such/file", "", false});
  const std::vector<Mapping> mappings = {{0x400000, 0x500000, 0, id}};
  std::vector<std::uint64_t> words = {0, 0, 0x7020, 0x400111, 0x7040, 0x400222, 0, 0, 0, 0x999999};
  Registers registers;
  registers[Register::rip] = 0x400050;
  registers[Register::rsp] = 0x7000;
  registers[Register::rbp] = 0x7010;
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 8);
  EXPECT_EQ(symbols.unwind(registers, bytes, mappings), (std::vector<std::uint64_t>{0x400050, 0x400111, 0x400222}));
}

TEST(Unwinding, CallThroughABadPointer) {
  Symbolizer symbols(offline());
  const ModuleId id = symbols.add_module({"/no/such/file", "", false});
  const std::vector<Mapping> mappings = {{0x400000, 0x500000, 0, id}};
  const std::uint64_t top = 0x400123;
  Registers registers;
  registers[Register::rsp] = 0x7000;
  EXPECT_EQ(symbols.unwind(registers, {reinterpret_cast<const std::uint8_t*>(&top), 8}, mappings),
            (std::vector<std::uint64_t>{0, 0x400123}));
}

TEST(Unwinding, HostileRegistersAndBytesEnd) {
  fixture::deep_calls(false);
  const auto& capture = fixture::capture_here;
  Process process;
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    Registers registers = capture.registers;
    auto stack = capture.stack;
    for (int i = 0; i < 4; ++i) {
      registers.value[random() % register_count] ^= random() >> (random() % 64);
      const std::uint64_t value = random() % 2 == 0 ? random() : capture.registers[Register::rsp] + random() % 4096;
      std::memcpy(stack.data() + random() % (stack.size() - 8), &value, 8);
    }
    EXPECT_LE(process.symbols.unwind(registers, stack, process.mappings).size(), 64U);
  }
}

TEST(Unwinding, WarmFramesAreCheap) {
  fixture::deep_calls(false);
  const auto& capture = fixture::capture_here;
  Process process;
  const auto frames = process.symbols.unwind(capture.registers, capture.stack, process.mappings).size();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    static_cast<void>(process.symbols.unwind(capture.registers, capture.stack, process.mappings));
  }
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
  const double each = spent.count() / rounds / static_cast<double>(frames);
  RecordProperty("microseconds_per_frame", std::to_string(each));
  EXPECT_LT(each, 50.0);  // some hundred nanoseconds; sanitizers and loaded machines have their say
}

TEST(Expressions, ArithmeticBranchesAndBounds) {
  const Registers registers{};
  const StackMemory memory(0x1000, {});
  using Operations = std::vector<Operation>;
  constexpr std::uint8_t lit1 = 0x31, lit5 = 0x35, plus = 0x22, skip = 0x2f, deref = 0x06, breg0 = 0x70;
  EXPECT_EQ(evaluate(Operations{{lit5, 0, 0, 0}, {lit1, 0, 0, 1}, {plus, 0, 0, 2}}, registers, memory, {}), 6U);
  EXPECT_FALSE(evaluate(Operations{{plus, 0, 0, 0}}, registers, memory, {}));
  EXPECT_FALSE(evaluate(Operations{{lit5, 0, 0, 0}, {deref, 0, 0, 1}}, registers, memory, {}));
  EXPECT_FALSE(evaluate(Operations{{static_cast<std::uint8_t>(breg0 + 31), 0, 0, 0}}, registers, memory, {}));
  // skip -3: to itself, for ever
  EXPECT_FALSE(evaluate(Operations{{skip, static_cast<std::uint64_t>(-3), 0, 0}}, registers, memory, {}));
  EXPECT_FALSE(evaluate({}, registers, memory, {}));
}

}  // namespace
}  // namespace crosstalk::symbolizer::unwinding_test
