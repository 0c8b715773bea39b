// SPDX-License-Identifier: Apache-2.0
// Functions to be stepped through. access_fixtures.cpp is compiled once with and once without optimization.
#pragma once

namespace crosstalk::test {

struct Fixture {
  const char* name;
  void (*run)();
};

namespace optimized {
extern const Fixture fixtures[];
extern const int fixture_count;
}  // namespace optimized

namespace unoptimized {
extern const Fixture fixtures[];
extern const int fixture_count;
}  // namespace unoptimized

}  // namespace crosstalk::test
