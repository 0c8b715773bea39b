// SPDX-License-Identifier: Apache-2.0
// Text of a condition, applied to a comparison: it is read or refused in one line, and judging it never fails.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "attribution/comparison/condition.h"

namespace {

using namespace crosstalk::attribution::comparison;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

Comparison made() {
  Comparison c;
  c.before_cpu_s = c.after_cpu_s = 1;
  Row row;
  row.subject.name = "counters";
  row.before.cost = row.after.cost = row.before.gain = row.after.gain = exactly(0.5);
  row.verdict = Verdict::same;
  c.total = row;
  c.objects = c.lines = {row};
  return c;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Comparison comparison = made();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto condition = parse_condition(text);
  if (!condition) {
    require(!condition.error().message.empty());
    return 0;
  }
  require(condition->text == text);
  require(condition->threshold == condition->threshold);
  const Judgement judgement = judge(*condition, comparison);
  require(judgement.judged || !judgement.holds);
  static_cast<void>(matches(condition->name, text));
  return 0;
}
