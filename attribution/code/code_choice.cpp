// SPDX-License-Identifier: Apache-2.0
#include "attribution/code/code_choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "attribution/program/program_view.h"
#include "base/number.h"

namespace crosstalk::attribution {
namespace {

/// "ns::f" from "ns::f(int)"; keeps the signs of operators.
std::string without_parameters(const std::string& function) {
  const std::size_t open = function.find('(', function.find("operator()") == std::string::npos
                                                  ? 0
                                                  : function.find("operator()") + std::string("operator()").size());
  return open == std::string::npos || open == 0 ? function : function.substr(0, open);
}

/// "ns::f" from "ns::f<int>"; keeps template arguments of scopes.
std::string without_arguments(const std::string& function) {
  if (!function.ends_with('>')) {
    return function;
  }
  std::size_t depth = 0;
  for (std::size_t at = function.size(); at-- > 0;) {
    depth += function[at] == '>' ? 1 : 0;
    depth -= function[at] == '<' && depth > 0 ? 1 : 0;
    if (depth == 0) {
      return function.substr(0, at);
    }
  }
  return function;
}

bool is_called(const std::string& function, const std::string& wanted) {
  const std::string bare = without_parameters(function);
  const std::string plain = without_arguments(bare);
  const auto ends = [&](const std::string& name) {
    return name == wanted || name.ends_with("::" + wanted) || name.ends_with(" " + wanted);
  };
  return function == wanted || ends(bare) || ends(plain);
}

/// "counters.cpp" from "./counters.cpp".
std::string without_here(std::string name) {
  while (name.starts_with("./")) {
    name.erase(0, 2);
  }
  return name;
}

bool is_file(const std::string& file, const std::string& wanted) {
  return file == wanted || file.ends_with("/" + wanted);
}

/// The module and address in "libx.so+0x1234".
std::optional<std::pair<std::string, std::uint64_t>> place_in_module(const std::string& name) {
  const std::size_t plus = name.rfind("+0x");
  if (plus == std::string::npos) {
    return std::nullopt;
  }
  const auto address = whole_number<std::uint64_t>(std::string_view(name).substr(plus + 3), 16);
  return address ? std::optional(std::pair{name.substr(0, plus), *address}) : std::nullopt;
}

bool fits(const CodeCandidate& candidate, const CodeWanted& wanted) {
  const auto file = [&](const std::string& name) { return is_file(name, wanted.name); };
  if (std::any_of(candidate.files.begin(), candidate.files.end(), file)) {
    return true;
  }
  if (wanted.line != 0) {
    return false;
  }
  if (const auto place = place_in_module(wanted.name)) {
    return base_name(candidate.module) == base_name(place->first) && candidate.begin <= place->second &&
           place->second < std::max(candidate.end, candidate.begin + 1);
  }
  return std::any_of(candidate.names.begin(), candidate.names.end(),
                     [&](const std::string& name) { return is_called(name, wanted.name); });
}

std::string some_of(const std::vector<CodeCandidate>& candidates) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) {
    text += (i == 0 ? "" : ", ") + candidates[i].function +
            (candidates[i].refusal.empty() ? "" : " (" + candidates[i].refusal + ")");
  }
  return candidates.size() > most ? text + " and " + std::to_string(candidates.size() - most) + " more" : text;
}

}  // namespace

bool is_of_line(std::span<const symbolizer::Frame> frames, const CodeWanted& wanted) {
  const std::string file = without_here(wanted.name);
  return wanted.line != 0 && std::any_of(frames.begin(), frames.end(), [&](const symbolizer::Frame& frame) {
           return frame.source.line == wanted.line && is_file(frame.source.file, file);
         });
}

Result<std::vector<std::size_t>> choose_code(const std::vector<CodeCandidate>& candidates, const CodeWanted& wanted) {
  if (candidates.empty()) {
    return fail(ErrorCode::not_found, "no code was sampled, so that no instruction has figures");
  }
  const std::string name = without_here(wanted.name);
  std::vector<std::size_t> chosen;
  std::string refusals;  // the first of them
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool wanted_one = name.empty() ? i == 0 : fits(candidates[i], {name, wanted.line});
    if (wanted_one && candidates[i].refusal.empty()) {
      chosen.push_back(i);
    } else if (wanted_one && refusals.empty()) {
      refusals = candidates[i].function + ": " + candidates[i].refusal;
    }
  }
  if (!chosen.empty()) {
    return chosen;
  }
  return refusals.empty() ? fail(ErrorCode::not_found, name + ": nothing is known of such a function or source file; " +
                                                           "there are: " + some_of(candidates))
                          : fail(ErrorCode::not_found, refusals);
}

}  // namespace crosstalk::attribution
