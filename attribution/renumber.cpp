// SPDX-License-Identifier: Apache-2.0
#include "attribution/renumber.h"

#include <algorithm>
#include <set>

namespace crosstalk::attribution {
namespace {

using NumberOf = std::function<std::uint32_t(std::uint32_t)>;

void renumber(Matrix& cells, const NumberOf& number_of) {
  for (Cell& cell : cells) {
    cell.producer = number_of(cell.producer);
    cell.consumer = number_of(cell.consumer);
  }
  std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return a.producer != b.producer ? a.producer < b.producer : a.consumer < b.consumer;
  });
}

void renumber(Communication& communication, const NumberOf& number_of) {
  renumber(communication.cells, number_of);
  renumber(communication.invalidations, number_of);
  for (LineRow& row : communication.lines) {
    renumber(row.cells, number_of);
  }
  for (LinePair& row : communication.line_pairs) {
    renumber(row.cells, number_of);
  }
  for (ObjectRow& row : communication.objects) {
    renumber(row.cells, number_of);
    for (OffsetRow& offset : row.offsets) {
      offset.thread = number_of(offset.thread);
    }
  }
  for (SampledUse& use : communication.sampled_uses) {
    std::set<std::uint32_t> threads;
    for (const std::uint32_t thread : use.threads) {
      threads.insert(number_of(thread));
    }
    use.threads = std::move(threads);
  }
  if (communication.unseen) {
    for (UnseenOfConsumer& row : communication.unseen->consumers) {
      row.consumer = number_of(row.consumer);
    }
  }
}

}  // namespace

void renumber_threads(Analysis& analysis, const NumberOf& number_of) {
  for (ThreadSummary& thread : analysis.threads) {
    thread.index = number_of(thread.index);
  }
  std::sort(analysis.threads.begin(), analysis.threads.end(),
            [](const ThreadSummary& a, const ThreadSummary& b) { return a.index < b.index; });
  renumber(analysis.communication, number_of);
  for (LoopRow& loop : analysis.loops) {
    for (LoopThread& thread : loop.threads) {
      thread.thread = number_of(thread.thread);
    }
  }
  analysis.wait_places.clear();
  analysis.regions.clear();
  analysis.memory = {};
}

}  // namespace crosstalk::attribution
