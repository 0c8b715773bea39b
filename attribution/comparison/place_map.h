// SPDX-License-Identifier: Apache-2.0
// Where code of one profile is in another, whose sources may have been edited since.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace crosstalk::attribution::comparison {

struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  auto operator<=>(const Place&) const = default;
};
struct LoopPlace {
  Place begin;
  std::uint32_t line_end = 0, depth = 0;
};
/// The code that a profile knows of.
struct CodeSeen {
  std::vector<Place> lines;
  std::vector<LoopPlace> loops;
};

/// Files are the same that have the same base name; of several, those whose last folders agree most. Functions of a
/// file are the same that have the same name, or the same name but for parameters and template arguments where only
/// one on each side has that. The lines of a function have all moved by the same number: the one by which most of its
/// lines and loops meet.
class PlaceMap {
 public:
  PlaceMap(const CodeSeen& before, const CodeSeen& after);

  /// Where code of the profile before is in the one after; what has no counterpart stays as it is.
  [[nodiscard]] Place in_after(const Place& before) const;

 private:
  struct Function {
    std::string file, name;
    auto operator<=>(const Function&) const = default;
  };
  struct Moved {
    Function to;
    std::int64_t by = 0;  // lines
  };
  std::map<std::string, std::string> files_;
  std::map<Function, Moved> functions_;
};

/// "counters::add" of "void counters::add<int>(std::vector<int>&)" and the like: what a change of types leaves.
[[nodiscard]] std::string bare_name(const std::string& function);

}  // namespace crosstalk::attribution::comparison
