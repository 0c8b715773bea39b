// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/own_callees.h"

#include <algorithm>

#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "symbolizer/cfg/instructions.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {

std::vector<std::string> own_callees_of(const LoopRow& loop, const ProgramView& view) {
  std::vector<std::string> names;
  const auto code = innermost_loop(view.code(), {loop.module_file, loop.header});
  for (const symbolizer::Way& way :
       code && !is_runtime_library(loop.module) ? code->anatomy->ways(code->index) : std::vector<symbolizer::Way>()) {
    for (std::size_t i = 0; i < way.code.size(); ++i) {
      const auto instruction = symbolizer::decode(way.code[i], way.addresses[i]);
      if (!instruction || instruction->flow != symbolizer::Flow::call || instruction->target == 0 ||
          instruction->target == code->anatomy->function_begin()) {
        continue;
      }
      const symbolizer::CodeLocation& callee = view.code().locate({loop.module_file, instruction->target});
      if (callee.frames.empty() || is_unknown(callee.frames.back()) || is_library_code(callee.frames.back()) ||
          callee.frames.back().function.ends_with("@plt")) {
        continue;
      }
      const std::string name = in_short(callee.frames.back().function);
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

}  // namespace crosstalk::attribution
