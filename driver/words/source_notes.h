// SPDX-License-Identifier: Apache-2.0
// Figures of the lines of one source file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "base/result.h"

namespace crosstalk::driver {

struct LineNote {
  double share = 0;  // of all CPU time, in the line's own instructions
  // Cells that this line consumes and produces; a line of inlined code may have several rows.
  attribution::Matrix consumed, produced;
  attribution::Amount true_sharing, false_sharing;  // of `consumed`
};

struct SourceNotes {
  std::string file;
  std::map<std::uint32_t, LineNote> lines;
  std::vector<attribution::LoopRow> loops;  // in this file, the outer ones first
  bool written_later = false;               // later than the profile: the text may differ from the compiled one
};

/// Returns the notes of the file that `wanted` names by its path or the end of its path. Empty: the file with
/// the most time or cost. An error lists the known files.
[[nodiscard]] Result<SourceNotes> source_notes(const attribution::Analysis& analysis, const std::string& wanted);

}  // namespace crosstalk::driver
