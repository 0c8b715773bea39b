// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/code_map.h"

#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {

std::optional<CodeLoop> innermost_loop(CodeMap& code, ModulePlace place) {
  symbolizer::LoopAnatomy* anatomy = code.loop_anatomy(place);
  const std::uint32_t index = anatomy != nullptr ? anatomy->innermost(place.address) : symbolizer::Loop::no_parent;
  return anatomy != nullptr && index < anatomy->loops() ? std::optional(CodeLoop{anatomy, index}) : std::nullopt;
}

symbolizer::Update update_at(CodeMap& code, ModulePlace place) {
  if (const symbolizer::LoopAnatomy* anatomy = code.loop_anatomy(place)) {
    place.address = anatomy->begin_of(place.address);
  }
  return symbolizer::update_of(code.bytes_at(place));
}

}  // namespace crosstalk::attribution
