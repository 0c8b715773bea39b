// SPDX-License-Identifier: Apache-2.0
// Data symbols, their declarations, and struct fields.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fixture.h"

namespace crosstalk::symbolizer::data_test {
namespace {

class Data : public testing::TestWithParam<const char*> {
 protected:
  Program program{GetParam()};

  DataSymbol symbol(const std::string& mangled, std::uint64_t offset = 0) {
    auto found = program.symbols.data_symbol(program.id, program.address(mangled) + offset);
    EXPECT_TRUE(found) << mangled;
    return found.value_or(DataSymbol{});
  }
  /// "path|type|offset|bytes"
  std::string field(const std::string& mangled, std::uint64_t offset) {
    const auto found = program.symbols.field(program.id, symbol(mangled, offset), offset);
    return found ? found->path + "|" + found->type + "|" + std::to_string(found->offset) + "|" +
                       std::to_string(found->bytes)
                 : "none";
  }
};

class ThreadLocalData : public Data {};

TEST_P(Data, GlobalByAnyAddressInIt) {
  const DataSymbol found = symbol("global_outer", 100);
  EXPECT_EQ(found.name, "global_outer");
  EXPECT_EQ(found.begin, program.address("global_outer"));
  EXPECT_EQ(found.declared.line, line_of("global_outer"));
  EXPECT_EQ(found.declared.file, FIXTURE_SOURCE);
  EXPECT_FALSE(program.symbols.data_symbol(program.id, found.begin + found.bytes + 4096));
}

TEST_P(Data, MembersArraysBasesAndUnions) {
  EXPECT_EQ(field("global_outer", 0), "base_count|long int|0|8");
  EXPECT_EQ(field("global_outer", 8), "tag|char|8|1");
  EXPECT_EQ(field("global_outer", 16), "inner.first|int|16|4");
  EXPECT_EQ(field("global_outer", 16 + 8 + 8 + 3), "inner.values[1]|long int|32|8");
  const std::uint64_t many = 48;
  EXPECT_EQ(field("global_outer", many + std::uint64_t{1 * 4 + 2} * 32 + 8), "many[1][2].values[0]|long int|248|8");
  const std::uint64_t number = many + std::uint64_t{8} * 32;
  EXPECT_EQ(field("global_outer", number), "number.as_long|long int|304|8");
  EXPECT_EQ(field("global_outer", number + 8), "stamp|const volatile long int|312|8");
  EXPECT_EQ(field("global_outer", number + 16), "hits|atomic<long int>|320|8");
  EXPECT_EQ(field("global_outer", number + 24 + 8), "slots[2]|int|336|4");
  EXPECT_EQ(field("global_outer", number + 24 + 16).substr(0, 6), "flag_a");
}

TEST_P(Data, ArrayAndScalar) {
  EXPECT_EQ(field("global_array", 24), "[3]|long int|24|8");
  EXPECT_EQ(field("global_scalar", 0), "|long int|0|8");
}

TEST_P(Data, NamesEndAtTypesThatHideTheirInsides) {
  EXPECT_EQ(field("global_meeting", 12), "barrier|pthread_barrier_t|8|32");
}

TEST_P(Data, StaticMembersAndStaticsOfFunctions) {
  EXPECT_EQ(symbol("_ZN5space6Holder4heldE").name, "space::Holder::held");
  EXPECT_EQ(field("_ZN5space6Holder4heldE", 8), "values[0]|long int|8|8");
  EXPECT_EQ(symbol("_ZZ12local_staticE7counter").declared.line, line_of("counter"));
  EXPECT_EQ(field("_ZZ12local_staticE7counter", 16), "[2]|long int|16|8");
}

TEST_P(ThreadLocalData, OffsetAndField) {
  const std::uint64_t offset = program.address("tls_inner");
  const auto found = program.symbols.tls_symbol(program.id, offset + 8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "tls_inner");
  EXPECT_EQ(found->begin, offset);
  EXPECT_EQ(found->declared.line, line_of("tls_inner"));
  const auto path = program.symbols.field(program.id, *found, 24);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->path, "values[2]");
}

TEST_P(Data, OffsetsOutsideGiveNothing) {
  EXPECT_FALSE(program.symbols.field(program.id, symbol("global_array"), 64));
  EXPECT_FALSE(program.symbols.field(program.id, symbol("global_array"), ~std::uint64_t{0}));
}

/// The types that calls in a function allocate. Non-inlined code of the standard library is called, so that only the
/// function's own debug information is read.
TEST_P(Data, TypesOfWhatIsAllocated) {
  const auto types_in = [&](const std::string& function) {
    std::set<std::string> names;
    const std::uint64_t begin = program.address(function);
    const CodeLocation at = program.symbols.locate(program.id, begin);
    for (std::uint64_t address = begin; address < at.function_end; ++address) {
      if (const auto type = program.symbols.allocated_type(program.id, address)) {
        names.insert(type->name + " " + std::to_string(type->bytes));
      }
    }
    return names;
  };
  EXPECT_EQ(types_in("allocates_by_malloc"), std::set<std::string>{"Inner 32"});
  EXPECT_EQ(types_in("allocates_by_new"), std::set<std::string>{"Outer 352"});
  EXPECT_EQ(types_in("allocates_bytes"), std::set<std::string>{});
  EXPECT_EQ(types_in("allocates_by_owner"), std::set<std::string>{"Inner 32"});
  if (std::string(GetParam()) != "program_o0") {  // there the allocator is a function of its own
    EXPECT_EQ(types_in("allocates_by_vector"), std::set<std::string>{"Inner 32"});
  }
}

TEST_P(Data, FieldsOfWhatIsAllocated) {
  const std::uint64_t begin = program.address("allocates_by_malloc");
  const CodeLocation at = program.symbols.locate(program.id, begin);
  std::optional<AllocatedType> type;
  for (std::uint64_t address = begin; address < at.function_end && !type; ++address) {
    type = program.symbols.allocated_type(program.id, address);
  }
  ASSERT_TRUE(type);
  const auto field = program.symbols.field_of(program.id, type->type, 16);
  ASSERT_TRUE(field);
  EXPECT_EQ(field->path, "values[1]");
  EXPECT_FALSE(program.symbols.field_of(program.id, type->type, 32));
  EXPECT_FALSE(program.symbols.field_of(program.id, type->type + 100, 0));
}

INSTANTIATE_TEST_SUITE_P(Builds, Data,
                         testing::Values("program_o0", "program_o2", "program_no_pie", "program_dwarf4",
                                         "program_split"),
                         [](const auto& suite) { return std::string(suite.param); });

// No split DWARF: for TLS, GCC 12 writes addresses into .debug_addr where offsets belong.
INSTANTIATE_TEST_SUITE_P(Builds, ThreadLocalData,
                         testing::Values("program_o0", "program_o2", "program_no_pie", "program_dwarf4"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace crosstalk::symbolizer::data_test
