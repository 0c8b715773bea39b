// SPDX-License-Identifier: Apache-2.0
// A source file, with the cost of each line beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "driver/options/source_file.h"
#include "driver/terminal/canvas.h"
#include "driver/words/source_notes.h"

namespace crosstalk::driver {

/// Renders the report's head and the file. Leaves out lines far from any line with figures; with `line` (not 0), shows
/// only lines around it. `text` absent: the source is not here, and only lines with figures are listed.
[[nodiscard]] std::string render_source(const attribution::Analysis& analysis, const SourceNotes& notes,
                                        const std::optional<std::vector<std::string>>& text, std::uint32_t line,
                                        TextStyle style);

}  // namespace crosstalk::driver
