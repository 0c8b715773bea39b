// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/program.h"

#include <algorithm>

namespace crosstalk::simulation {
namespace {

/// How many owners a part has lines for: a pair, a thread, or all together.
std::uint32_t owners(const Part& part, std::uint32_t threads) {
  switch (part.pattern) {
    case Pattern::ping_pong:
    case Pattern::false_sharing:
      return threads / 2;
    case Pattern::ring:
    case Pattern::private_data:
      return threads;
    case Pattern::all_to_all:
    case Pattern::own_words:
    case Pattern::one_writer_many_readers:
      break;
  }
  return 1;
}

// Different lines use different words, so that no word is special.
std::uint32_t word_of(std::uint32_t line, std::uint32_t which) { return (line * 3 + which * 5) % words_in_line; }

}  // namespace

Program::Program(const Scenario& scenario) : scenario_(scenario), first_line_(scenario.parts.size()) {
  for (const bool of_private : {false, true}) {
    first_private_ = lines_;
    for (std::size_t i = 0; i < scenario.parts.size(); ++i) {
      const Part& part = scenario.parts[i];
      if ((part.pattern == Pattern::private_data) == of_private) {
        first_line_[i] = lines_;
        lines_ += part.lines * owners(part, scenario.threads);
      }
    }
  }
}

std::uint32_t Program::line_of(const Part& part, std::uint32_t first, std::uint32_t owner, Random& random) const {
  return first + owner * part.lines + below(random, part.lines);
}

void Program::visit(std::uint32_t thread, Random& random, std::vector<Access>& out) const {
  double at = unit(random);
  std::size_t index = 0;
  while (index + 1 < scenario_.parts.size() && at >= scenario_.parts[index].share) {
    at -= scenario_.parts[index++].share;
  }
  const Part& part = scenario_.parts[index];
  const std::uint32_t first = first_line_[index];
  const auto load_and_store = [&](std::uint32_t owner, std::uint32_t which) {
    const std::uint32_t line = line_of(part, first, owner, random);
    const std::uint32_t word = word_of(line, which);
    if (part.atomic) {
      out.push_back({line, word, AccessKind::load_store});
      return;
    }
    for (std::uint32_t i = 0; i <= part.own_loads; ++i) {
      out.push_back({line, word, AccessKind::load});
    }
    out.push_back({line, word, AccessKind::store});
  };
  const auto one = [&](std::uint32_t owner, AccessKind kind) {
    const std::uint32_t line = line_of(part, first, owner, random);
    const std::uint32_t word =
        part.whole_lines ? static_cast<std::uint32_t>(below(random, words_in_line)) : word_of(line, 0);
    const std::uint32_t loads = kind == AccessKind::load ? part.own_loads : 0;
    for (std::uint32_t i = 0; i <= (part.whole_lines ? words_in_line - 1 : loads); ++i) {
      out.push_back({line, part.whole_lines ? (word + i) % words_in_line : word, kind});
    }
  };
  switch (part.pattern) {
    case Pattern::ping_pong:
      return load_and_store(thread / 2, 0);
    case Pattern::false_sharing:
      return load_and_store(thread / 2, thread % 2);
    case Pattern::all_to_all:
      return load_and_store(0, 0);
    case Pattern::own_words:
      return load_and_store(0, thread);
    case Pattern::ring:
      return unit(random) < 0.5 ? one(thread, AccessKind::store)
                                : one((thread + scenario_.threads - 1) % scenario_.threads, AccessKind::load);
    case Pattern::one_writer_many_readers:
      return one(0, thread == 0 ? AccessKind::store : AccessKind::load);
    case Pattern::private_data:
      return one(thread, AccessKind::load);
  }
}

}  // namespace crosstalk::simulation
