// SPDX-License-Identifier: Apache-2.0
#include "driver/options/suggestion.h"

#include <algorithm>
#include <vector>

namespace crosstalk::driver {
namespace {

/// Returns the edit distance; a swap of neighbours counts as one edit (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const std::size_t changed = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

namespace {

const std::string* nearest_to(std::string_view given, std::span<const std::string> known) {
  constexpr std::size_t longest = 64;  // nobody mistypes a longer name, and the work grows quadratically
  if (given.size() > longest) {
    return nullptr;
  }
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(1, given.find_first_not_of('-') == std::string_view::npos
                                                   ? 0
                                                   : (given.size() - given.find_first_not_of('-')) / 3) +
                      1;
  for (const std::string& name : known) {
    const std::size_t edits = distance(given, name);
    if (edits < least) {
      least = edits;
      nearest = &name;
    }
  }
  return nearest;
}

}  // namespace

std::string remedy_for(std::string_view given, std::span<const std::string> known, const std::string& help) {
  const std::string* nearest = nearest_to(given, known);
  return nearest == nullptr ? "; see " + help : "; did you mean '" + *nearest + "'? See " + help;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

}  // namespace crosstalk::driver
