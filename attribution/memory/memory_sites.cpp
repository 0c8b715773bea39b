// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/memory_sites.h"

#include <optional>

namespace crosstalk::attribution {

MemorySites::MemorySites(const ProgramView& view, std::span<const LoopRow> loops) : view_(view) {
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    loop_of_[{loops[i].module_file, loops[i].header}] = i;
  }
}

std::uint32_t MemorySites::of(const MemorySample& sample) {
  const Moment moment = view_.moment(sample.thread, sample.time_ns);
  const auto place = sample.code != 0 ? view_.spaces().find(moment, sample.code) : std::nullopt;
  // Code without a file is different in each process, and in the kernel.
  const auto key = place ? std::tuple(place->file + 1, 0U, place->address)
                         : std::tuple(0U, moment.process.value * 2 + (sample.in_kernel ? 1U : 0U), sample.code);
  const auto [known, fresh] = ids_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (fresh) {
    sites_.push_back(look_up(sample, moment, place));
  }
  return known->second;
}

MemorySite MemorySites::look_up(const MemorySample& sample, Moment moment,
                                const std::optional<ModulePlace>& place) const {
  MemorySite site;
  site.instruction = place ? place->address : sample.code;
  if (sample.code == 0) {
    site.function = sample.in_kernel ? "[kernel]" : "[unknown]";
    return site;
  }
  const std::vector<symbolizer::Frame> frames = view_.frames(moment, sample.code);
  if (!frames.empty()) {
    site.function = frames.front().function;
    site.file = frames.front().source.file;
    site.line = frames.front().source.line;
  }
  if (!place) {
    return site;
  }
  const std::string& path = view_.spaces().files()[place->file].path;
  site.module = path.empty() ? "[vdso]" : path;
  const symbolizer::FunctionLoops* const loops = view_.code().loops(*place);
  const auto innermost = loops != nullptr ? loops->innermost(place->address) : std::nullopt;
  if (innermost && *innermost < loops->loops.size()) {
    const auto loop = loop_of_.find({place->file, loops->loops[*innermost].header});
    site.loop = loop == loop_of_.end() ? MemorySite::no_loop : loop->second;
  }
  return site;
}

}  // namespace crosstalk::attribution
