// SPDX-License-Identifier: Apache-2.0
// What a profile knows of the lines of one source file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attribution/model.h"
#include "base/result.h"

namespace crosstalk::driver {

struct LineNote {
  double share = 0;  // of all CPU time: of the line's own instructions
  // What the line waits for, and what waits for it; a line of inlined code may be several rows.
  attribution::Matrix consumed, produced;
  attribution::Amount true_sharing, false_sharing;  // of `consumed`
};

struct SourceNotes {
  std::string file;
  std::map<std::uint32_t, LineNote> lines;
  std::vector<attribution::LoopRow> loops;  // in this file, the outer ones first
  bool written_later = false;               // than the profile: the text may not be what was compiled
};

/// Of the file that `wanted` names: its path or the end of it. Empty: the file of the costliest line. An error names
/// the files that there are.
[[nodiscard]] Result<SourceNotes> source_notes(const attribution::Analysis& analysis, const std::string& wanted);

}  // namespace crosstalk::driver
