// SPDX-License-Identifier: Apache-2.0
#include "driver/words/source_notes.h"

#include <algorithm>
#include <map>

#include "attribution/groups.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;

/// Returns the files with any figures, each once, those with the most time or cost of communication first.
std::vector<std::string> files_of(const Analysis& analysis) {
  struct Weight {
    double self_s = 0, cost_s = 0;
    [[nodiscard]] double most() const { return std::max(self_s, cost_s); }
  };
  std::map<std::string, Weight> weights;
  for (const auto& row : analysis.communication.lines) {
    weights[row.file].cost_s += row.cost_s;
  }
  for (const auto& row : analysis.code_lines) {
    weights[row.file].self_s += row.self_s;
  }
  for (const auto& row : analysis.loops) {
    weights.try_emplace(row.file);
  }
  weights.erase("");
  std::vector<std::string> files;
  for (const auto& [file, weight] : weights) {
    files.push_back(file);
  }
  std::stable_sort(files.begin(), files.end(), [&](const std::string& a, const std::string& b) {
    return weights.at(a).most() > weights.at(b).most();
  });
  return files;
}

std::string listed(const std::vector<std::string>& files) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, files.size()); ++i) {
    text += (i == 0 ? "" : ", ") + files[i];
  }
  return files.size() > most ? text + " and " + std::to_string(files.size() - most) + " more" : text;
}

Result<std::string> choose(const std::vector<std::string>& files, std::string wanted) {
  while (wanted.starts_with("./")) {
    wanted.erase(0, 2);
  }
  if (files.empty()) {
    return fail(ErrorCode::not_found, "no source line is known; build the program with -g and keep its file in place");
  }
  if (wanted.empty()) {
    return files.front();
  }
  std::vector<std::string> fitting;
  for (const std::string& file : files) {
    if (file == wanted) {
      return file;
    }
    if (file.ends_with("/" + wanted)) {
      fitting.push_back(file);
    }
  }
  if (fitting.size() == 1) {
    return fitting.front();
  }
  return fail(ErrorCode::not_found,
              fitting.empty() ? wanted + ": nothing is known of such a source file; there are: " + listed(files)
                              : wanted + " may be several files, name one: " + listed(fitting));
}

void append(attribution::Matrix& to, const attribution::Matrix& cells) {
  to.insert(to.end(), cells.begin(), cells.end());
}

}  // namespace

Result<SourceNotes> source_notes(const Analysis& analysis, const std::string& wanted) {
  const auto file = choose(files_of(analysis), wanted);
  if (!file) {
    return analysis.program_missing.empty()
               ? tl::unexpected<Error>(file.error())
               : fail(ErrorCode::not_found, "no source line of the program is known: " + analysis.program_missing);
  }
  SourceNotes notes;
  notes.file = *file;
  for (const attribution::CodeLineRow& row : analysis.code_lines) {
    if (row.file == *file && row.line > 0) {
      notes.lines[row.line].share += row.share;
    }
  }
  for (const attribution::LineRow& row : analysis.communication.lines) {
    if (row.file != *file || row.line == 0) {
      continue;
    }
    LineNote& note = notes.lines[row.line];
    const bool consumes = row.role == attribution::Role::consumer;
    append(consumes ? note.consumed : note.produced, row.cells);
    if (consumes) {
      note.true_sharing = attribution::sum_amounts(note.true_sharing, row.true_sharing);
      note.false_sharing = attribution::sum_amounts(note.false_sharing, row.false_sharing);
    }
  }
  for (const attribution::LoopRow& row : analysis.loops) {
    if (row.file == *file && row.line_begin > 0) {
      notes.loops.push_back(row);
    }
  }
  std::stable_sort(notes.loops.begin(), notes.loops.end(),
                   [](const auto& a, const auto& b) { return a.depth < b.depth; });
  return notes;
}

}  // namespace crosstalk::driver
