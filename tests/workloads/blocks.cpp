// SPDX-License-Identifier: Apache-2.0
// Threads exchange heap blocks of one allocation site: all of them alike, one nearly all the time, or each pair of
// threads a block of its own.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

constexpr int pairs = 2;
constexpr std::uint32_t rarely = 32;  // one access in so many is to a block that is not the hot one

struct Node {
  std::uint64_t exchanged = 0;
  std::uint64_t unused[15] = {};
};

constexpr int allocating_line = __LINE__ + 5;
std::vector<std::unique_ptr<Node>> make_nodes(int count) {
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Node* const node = new Node;
    nodes.emplace_back(node);
  }
  return nodes;
}

/// Pairs run in turns, so that both threads of each have a processor if there are two.
void await_turn(std::uint32_t pair, const Deadline& deadline) {
  constexpr double turn_s = 0.02;
  while (static_cast<std::uint32_t>(deadline.elapsed() / turn_s) % pairs != pair && !deadline.passed()) {
    usleep(500);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("blocks", "threads exchange heap blocks of one allocation site");
  flags.number("--seconds", 2, 0.01, 3600, "run time").number("--blocks", 12, 2, 4096, "blocks");
  flags.number("--hot", 1, 1, 4096, "number of the block that --use hot means, from 1");
  flags.choice("--use", {"alike", "hot", "pairs"},
               "who uses which: all threads all blocks, nearly only one, a pair each");
  flags.parse(argc, argv);
  const bool alike = flags.word("--use") == "alike";
  const bool by_pairs = flags.word("--use") == "pairs";
  const auto blocks = static_cast<std::uint32_t>(flags.integer("--blocks"));
  const auto hot = static_cast<std::uint32_t>(flags.integer("--hot")) - 1;
  if (hot >= blocks) {
    flags.refuse("--hot " + std::to_string(hot + 1) + " is more than --blocks " + std::to_string(blocks));
  }
  const auto nodes = make_nodes(static_cast<int>(blocks));
  const Deadline deadline(flags.real("--seconds"));
  workload::run_crew(by_pairs ? 2 * pairs : 2, [&](int index) {
    const std::uint32_t pair = static_cast<std::uint32_t>(index - 1) / 2;
    std::uint32_t at = 0;
    for (std::uint32_t n = 1; (n & 4095U) != 0 || !deadline.passed(); ++n) {
      if (by_pairs && (n & 4095U) == 0) {
        await_turn(pair, deadline);
      }
      if (by_pairs) {
        at = pair;
      } else if (alike || n % rarely == 0) {
        at = at + 1 < blocks ? at + 1 : 0;
      }
      Node& node = *nodes[by_pairs || alike || n % rarely == 0 ? at : hot];
      __atomic_fetch_add(&node.exchanged, 1, __ATOMIC_RELAXED);
    }
  });
  std::printf("{\"blocks\":%u,\"line\":%d}\n", blocks, allocating_line);
  return 0;
}
