// SPDX-License-Identifier: Apache-2.0
// One thread publishes a number, and all others read it before it publishes the next: true sharing from the writer to
// every reader. Each reader acknowledges through a line of its own, which only synchronises.
#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_readers = 63;
constexpr std::uint64_t over = UINT64_MAX;

struct alignas(workload::line_bytes) News {
  std::uint64_t number = 1;  // the old news, which nobody has stored: all readers know it before the first is out
};
News news;

struct alignas(workload::line_bytes) Receipt {
  std::uint64_t number = 0;
};
Receipt receipts[max_readers];

constexpr int consumer_line = __LINE__ + 6;
std::uint64_t read_news(Receipt& receipt) {
  std::uint64_t last = __atomic_load_n(&news.number, __ATOMIC_ACQUIRE);
  __atomic_store_n(&receipt.number, last, __ATOMIC_RELEASE);
  std::uint64_t read = 0;
  for (unsigned spins = 0; last != over;) {
    const std::uint64_t number = __atomic_load_n(&news.number, __ATOMIC_ACQUIRE);
    if (number == last) {
      workload::relax(spins, true);
      continue;
    }
    ++read;
    last = number;
    __atomic_store_n(&receipt.number, number, __ATOMIC_RELEASE);
  }
  return read;
}

void await_receipts(int readers, std::uint64_t number) {
  for (int reader = 0; reader < readers; ++reader) {
    for (unsigned spins = 0; __atomic_load_n(&receipts[reader].number, __ATOMIC_ACQUIRE) != number;) {
      workload::relax(spins, true);
    }
  }
}

constexpr int producer_line = __LINE__ + 6;
void write_news(int readers, const Deadline& deadline) {
  await_receipts(readers, 1);
  for (std::uint64_t number = 2;; ++number) {
    const bool stop = (number & 63U) == 0 && deadline.passed();
    const std::uint64_t published = stop ? over : number;
    __atomic_store_n(&news.number, published, __ATOMIC_RELEASE);
    await_receipts(readers, published);
    if (stop) {
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("one_writer_many_readers", "one thread publishes, the others read");
  flags.number("--threads", 3, 2, max_readers + 1, "the writer and its readers");
  flags.number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");

  const Deadline deadline(flags.real("--seconds"));
  std::vector<std::uint64_t> read(static_cast<std::size_t>(threads) + 1);
  workload::run_crew(threads, [&](int index) {
    if (index == 1) {
      write_news(threads - 1, deadline);
    } else {
      read[static_cast<std::size_t>(index)] = read_news(receipts[index - 2]);
    }
  });

  Truth truth("one_writer_many_readers", threads + 1);
  truth.add_data("news", news);
  truth.sync = {"receipts"};
  truth.file = __FILE_NAME__;
  truth.producer_line = producer_line;
  truth.consumer_line = consumer_line;
  for (int reader = 2; reader <= threads; ++reader) {
    truth.add_true(1, reader, read[static_cast<std::size_t>(reader)]);
    truth.add_invalidations(1, reader, read[static_cast<std::size_t>(reader)]);
  }
  truth.print(deadline.elapsed());
}
