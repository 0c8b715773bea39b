// SPDX-License-Identifier: Apache-2.0
// Linker symbols as people write them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "symbolizer/elf/demangle.h"

namespace crosstalk::symbolizer::demangling_test {
namespace {

TEST(Demangling, CxxWithItsParameters) {
  EXPECT_EQ(demangle("_ZN5space10overloadedElPi"), "space::overloaded(long, int*)");
  EXPECT_EQ(demangle("_ZN5space10overloadedElPi@@V1"), "space::overloaded(long, int*)");
}

TEST(Demangling, RustInBothManners) {
  EXPECT_EQ(demangle("_ZN1r4main17h086b0cfd890a8ea9E"), "r::main");
  EXPECT_EQ(demangle("_ZN34_$LT$r..Sq$u20$as$u20$r..Shape$GT$4area17h83b64ebdcaa6a6beE"), "<r::Sq as r::Shape>::area");
  EXPECT_EQ(demangle("_RNvXCs6GmmlP4bgsG_1rNtB2_2SqNtB2_5Shape4area"), "<r::Sq as r::Shape>::area");
  EXPECT_EQ(demangle("_RNCNvCs6GmmlP4bgsG_1r4main0"), "r::main::{closure#0}");
}

TEST(Demangling, OtherNamesStayAsTheyAre) {
  for (const char* name : {"", "main", "_Z", "_R", "_Zunknown", "_Runknown", "_start", "_RNv"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

/// Writes a number as references have it: nothing for 0, else the number less one in base 62.
std::string in_base_62(std::size_t value) {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (value == 0) {
    return "_";
  }
  std::string text = "_";
  std::size_t rest = value - 1;
  do {
    text.insert(text.begin(), digits[rest % digits.size()]);
    rest /= digits.size();
  } while (rest != 0);
  return text;
}

/// Each of its parts is a pair of the part before: 2 to the power of `parts` words, if written in full.
std::string doubled_by_each_part(int parts) {
  std::string name = "IC1a";
  std::size_t previous = name.size();
  name += "TjjE";
  for (int i = 0; i < parts; ++i) {
    const std::size_t here = name.size();
    const std::string reference = "B" + in_base_62(previous);
    name += "T";
    name += reference;
    name += reference;
    name += "E";
    previous = here;
  }
  return "_R" + name + "E";
}

TEST(Demangling, NamesThatWouldGrowWithoutBoundStayAsTheyAre) {
  EXPECT_EQ(demangle(doubled_by_each_part(1)), "a::<(usize, usize), ((usize, usize), (usize, usize))>");
  const std::string endless = doubled_by_each_part(60);
  EXPECT_EQ(demangle(endless), endless);
}

}  // namespace
}  // namespace crosstalk::symbolizer::demangling_test
