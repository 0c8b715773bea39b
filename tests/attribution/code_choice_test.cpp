// SPDX-License-Identifier: Apache-2.0
#include "attribution/code/code_choice.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::code_choice_test {
namespace {

CodeCandidate candidate(const std::string& function, const std::string& file, std::uint64_t begin) {
  return {function, "/opt/app/prog", begin, begin + 0x40, {function}, {file}, ""};
}

std::vector<CodeCandidate> candidates() {
  std::vector<CodeCandidate> all = {candidate("ns::Queue<int>::push(int const&)", "/src/queue.h", 0x1000),
                                    candidate("worker(int)", "/src/main.cpp", 0x2000),
                                    candidate("main", "/src/main.cpp", 0x3000)};
  all[1].names.insert("bump");  // inlined
  return all;
}

std::vector<std::size_t> chosen(const std::vector<CodeCandidate>& of, const std::string& name, std::uint32_t line = 0) {
  const auto result = choose_code(of, {name, line});
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : std::vector<std::size_t>{};
}

std::string refused(const std::vector<CodeCandidate>& of, const std::string& name) {
  const auto result = choose_code(of, {name, 0});
  EXPECT_FALSE(result) << name;
  return result ? "" : result.error().message;
}

using Indices = std::vector<std::size_t>;

TEST(CodeChoice, AFunctionGoesByItsNameWithOrWithoutScopeAndParameters) {
  EXPECT_EQ(chosen(candidates(), "worker"), Indices{1});
  EXPECT_EQ(chosen(candidates(), "worker(int)"), Indices{1});
  EXPECT_EQ(chosen(candidates(), "push"), Indices{0});
  EXPECT_EQ(chosen(candidates(), "Queue<int>::push"), Indices{0});
  const std::vector<CodeCandidate> instance = {candidate("void count<std::pair<int, long> >(int)", "", 0x10)};
  EXPECT_EQ(chosen(instance, "count"), Indices{0});
  refused(candidates(), "Queue");
  EXPECT_NE(refused(candidates(), "work").find("there are: ns::Queue<int>::push(int const&), worker(int), main"),
            std::string::npos);
}

TEST(CodeChoice, WhereAFunctionWasInlinedIsShownToo) { EXPECT_EQ(chosen(candidates(), "bump"), Indices{1}); }

TEST(CodeChoice, AFileHasAllItsFunctions) {
  EXPECT_EQ(chosen(candidates(), "main.cpp"), (Indices{1, 2}));
  EXPECT_EQ(chosen(candidates(), "./src/main.cpp"), (Indices{1, 2}));
  EXPECT_EQ(chosen(candidates(), "main.cpp", 12), (Indices{1, 2}));
  refused(candidates(), "ain.cpp");
}

TEST(CodeChoice, ALineGoesByItsFileHoweverItWasWritten) {
  symbolizer::Frame frame;
  frame.source.file = "/src/main.cpp";
  frame.source.line = 41;
  const std::vector<symbolizer::Frame> frames = {frame};
  for (const char* const name : {"main.cpp", "./main.cpp", "src/main.cpp", "/src/main.cpp"}) {
    EXPECT_TRUE(is_of_line(frames, {name, 41})) << name;
  }
  EXPECT_FALSE(is_of_line(frames, {"main.cpp", 42}));
  EXPECT_FALSE(is_of_line(frames, {"ain.cpp", 41}));
  EXPECT_FALSE(is_of_line(frames, {"main.cpp", 0})) << "no line is wanted";
}

TEST(CodeChoice, AnAddressLiesInItsFunction) {
  EXPECT_EQ(chosen(candidates(), "prog+0x2010"), Indices{1});
  refused(candidates(), "prog+0x2040");
  refused(candidates(), "libx.so+0x2010");
}

TEST(CodeChoice, WithoutANameItIsTheFirst) {
  EXPECT_EQ(chosen(candidates(), ""), Indices{0});
  EXPECT_NE(refused({}, "").find("no code was sampled"), std::string::npos);
}

TEST(CodeChoice, WhatCanNotBeShownIsRefusedWithItsReason) {
  auto all = candidates();
  all[0].refusal = "its code was made while the program ran";
  EXPECT_EQ(refused(all, ""), "ns::Queue<int>::push(int const&): its code was made while the program ran");
  EXPECT_EQ(refused(all, "push"), refused(all, ""));
  EXPECT_EQ(chosen(all, "main"), Indices{2});
}

}  // namespace
}  // namespace crosstalk::attribution::code_choice_test
