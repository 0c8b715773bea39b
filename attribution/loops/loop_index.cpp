// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/loop_index.h"

#include "attribution/loops/loop_progress.h"

namespace crosstalk::attribution {

LoopIndex::LoopIndex(const ProgramView& view, std::span<const LoopRow> loops) : view_(view) {
  for (std::size_t i = 0; i < loops.size(); ++i) {
    by_place_[{loops[i].module_file, loops[i].header}] = i;
  }
}

std::optional<std::size_t> LoopIndex::innermost(ModulePlace place) const {
  auto loop = innermost_loop(view_.code(), place);
  while (loop) {
    const auto found = by_place_.find({place.file, loop->anatomy->header(loop->index)});
    if (found != by_place_.end()) {
      return found->second;
    }
    const symbolizer::FunctionLoops* all = view_.code().loops(place);
    const std::uint32_t parent =
        all != nullptr && loop->index < all->loops.size() ? all->loops[loop->index].parent : loop->index;
    loop = parent < loop->index ? std::optional(CodeLoop{loop->anatomy, parent}) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace crosstalk::attribution
