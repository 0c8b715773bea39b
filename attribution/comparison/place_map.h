// SPDX-License-Identifier: Apache-2.0
// Maps code places of one profile to another one, after edits to the sources.
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
/// The code places in a profile.
struct CodeSeen {
  std::vector<Place> lines;
  std::vector<LoopPlace> loops;
};

/// Files match if they have the same base name; among several, if their last folders agree most. Functions of a file
/// match if they have the same name, or the same bare name (without parameters and template arguments) and each side
/// has only one such function. All lines of a function move by one number: the one that matches most of its lines and
/// loops.
class PlaceMap {
 public:
  PlaceMap(const CodeSeen& before, const CodeSeen& after);

  /// The place in the profile after of code in the one before; unchanged if it has no counterpart.
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

/// "counters::add" for "void counters::add<int>(std::vector<int>&)" and the like: the name that a change of types
/// keeps.
[[nodiscard]] std::string bare_name(const std::string& function);

}  // namespace crosstalk::attribution::comparison
