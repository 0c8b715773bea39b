// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/place_map.h"

#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

struct Extent {
  std::uint32_t begin = 0, end = 0, depth = 0;
  auto operator<=>(const Extent&) const = default;
};
struct FunctionCode {
  std::set<std::uint32_t> lines;
  std::set<Extent> loops;
};
using FileCode = std::map<std::string, FunctionCode>;  // by function
using Code = std::map<std::string, FileCode>;          // by file

Code code_of(const CodeSeen& seen) {
  Code code;
  for (const Place& place : seen.lines) {
    if (!place.file.empty()) {
      code[place.file][place.function].lines.insert(place.line);
    }
  }
  for (const LoopPlace& loop : seen.loops) {
    if (!loop.begin.file.empty()) {
      code[loop.begin.file][loop.begin.function].loops.insert({loop.begin.line, loop.line_end, loop.depth});
    }
  }
  return code;
}

/// The number of characters at the end that two paths share.
std::size_t common_end(const std::string& a, const std::string& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) {
    ++n;
  }
  return n;
}

/// The file of `files` most like `path`; empty: none has its name.
std::string most_like(const std::string& path, const Code& files) {
  std::string best;
  std::size_t most = 0;
  for (const auto& [file, code] : files) {
    const std::size_t common = file == path ? std::string::npos : common_end(file, path);
    if (base_name(file) == base_name(path) && common > most) {
      most = common;
      best = file;
    }
  }
  return best;
}

/// Bare names that only one function of the file has, with their full ones.
std::map<std::string, std::string> unique_bare_names(const FileCode& file, const FileCode& other) {
  std::map<std::string, std::string> unique;
  std::set<std::string> twice;
  for (const auto& [name, code] : file) {
    if (!other.contains(name) && !unique.try_emplace(bare_name(name), name).second) {
      twice.insert(bare_name(name));
    }
  }
  for (const std::string& name : twice) {
    unique.erase(name);
  }
  return unique;
}

std::map<std::string, std::string> pair_functions(const FileCode& before, const FileCode& after) {
  std::map<std::string, std::string> pairs;
  const auto renamed = unique_bare_names(after, before);
  for (const auto& [bare, name] : unique_bare_names(before, after)) {
    if (const auto found = renamed.find(bare); found != renamed.end()) {
      pairs[name] = found->second;
    }
  }
  for (const auto& [name, code] : before) {
    if (after.contains(name)) {
      pairs[name] = name;
    }
  }
  return pairs;
}

/// The number of lines by which a function has moved. A loop has two ends and a depth, so it is stronger evidence than
/// a line. Sampled lines differ by chance, so unmoved lines are taken to be the same unless there is strong contrary
/// evidence.
std::int64_t moved_by(const FunctionCode& before, const FunctionCode& after) {
  constexpr double of_loop = 3;
  constexpr double of_staying = 1.5;
  std::map<std::int64_t, double> votes;
  for (const std::uint32_t was : before.lines) {
    for (const std::uint32_t is : after.lines) {
      votes[std::int64_t{is} - was] += 1;
    }
  }
  for (const Extent& was : before.loops) {
    for (const Extent& is : after.loops) {
      if (was.depth == is.depth && was.end - was.begin == is.end - is.begin) {
        votes[std::int64_t{is.begin} - was.begin] += of_loop;
      }
    }
  }
  if (const auto staying = votes.find(0); staying != votes.end()) {
    staying->second += of_staying;
  }
  std::int64_t best = 0;
  double most = 0;
  for (const auto& [by, weight] : votes) {
    // For equal votes it prefers the shorter distance, then the one downwards, because edits mostly add lines.
    if (std::tuple(weight, -std::llabs(by), by) > std::tuple(most, -std::llabs(best), best)) {
      best = by;
      most = weight;
    }
  }
  return best;
}

}  // namespace

std::string bare_name(const std::string& function) {
  std::string bare;
  std::size_t depth = 0;
  for (const char c : function) {
    depth += c == '<' || c == '(' ? 1 : 0;
    if (depth == 0) {
      bare += c;
    }
    depth -= (c == '>' || c == ')') && depth > 0 ? 1 : 0;
  }
  // Demangled templates have their return type, "void f<int>(T)", other functions do not, "f(T)".
  const std::size_t space = bare.rfind(' ');
  return space == std::string::npos || space + 1 == bare.size() ? bare : bare.substr(space + 1);
}

PlaceMap::PlaceMap(const CodeSeen& before, const CodeSeen& after) {
  const Code was = code_of(before);
  const Code is = code_of(after);
  for (const auto& [file, functions] : was) {
    const std::string to = most_like(file, is);
    if (to.empty() || most_like(to, was) != file) {
      continue;
    }
    files_[file] = to;
    for (const auto& [name, renamed] : pair_functions(functions, is.at(to))) {
      functions_[{file, name}] = {{to, renamed}, moved_by(functions.at(name), is.at(to).at(renamed))};
    }
  }
}

Place PlaceMap::in_after(const Place& before) const {
  const auto file = files_.find(before.file);
  if (file == files_.end()) {
    return before;
  }
  const auto function = functions_.find({before.file, before.function});
  if (function == functions_.end()) {
    return {file->second, before.line, before.function};
  }
  const std::int64_t line = before.line == 0 ? 0 : std::int64_t{before.line} + function->second.by;
  return {function->second.to.file, line < 0 ? 0 : static_cast<std::uint32_t>(line), function->second.to.name};
}

}  // namespace crosstalk::attribution::comparison
