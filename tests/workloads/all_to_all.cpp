// SPDX-License-Identifier: Apache-2.0
// In each round every thread writes a letter to every other one, all meet, and every thread reads its mail: each pair
// communicates alike, by every line of a letter once a round. A given share of each letter is posted; the writer keeps
// and reads the rest alone, so the shared part of the work can be chosen.
#include <algorithm>
#include <optional>

#include "rendezvous.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Rendezvous;
using workload::Truth;

constexpr int max_threads = 64;
constexpr int max_lines = 256;

struct Letter {
  struct alignas(workload::line_bytes) Line {
    std::uint64_t word = 0;
  };
  Line lines[max_lines];
};
Letter mail[max_threads][max_threads];  // by sender and addressee
Letter kept[max_threads][max_threads];  // by writer, and the addressee of the rest

std::optional<Rendezvous> rendezvous;

struct Lengths {
  int posted = 0, kept = 0;  // lines
};

constexpr int write_line = __LINE__ + 3;
void write_letter(Letter& letter, int lines, std::uint64_t word) {
  for (int n = 0; n < lines; ++n) {
    __atomic_store_n(&letter.lines[n].word, word, __ATOMIC_RELAXED);
  }
}

constexpr int read_line = __LINE__ + 4;
std::uint64_t read_letter(const Letter& letter, int lines) {
  std::uint64_t sum = 0;
  for (int n = 0; n < lines; ++n) {
    sum += __atomic_load_n(&letter.lines[n].word, __ATOMIC_RELAXED);
  }
  return sum;
}

std::uint64_t read_mail(int me, int other, int lines, CostClock& clock) {
  clock.begin();
  const std::uint64_t sum = read_letter(mail[other][me], lines);
  clock.end(other + 1, workload::Sharing::same_word);
  return sum;
}

/// One thread's results: rounds; 0 if a letter did not hold its sender's text.
struct Correspondence {
  std::uint64_t rounds = 0;
  CostClock clock;
};

Correspondence correspond(int me, int threads, Lengths lines, const Deadline& deadline) {
  CostClock clock;
  const auto all_lines = static_cast<std::uint64_t>(lines.posted + lines.kept);
  bool all_right = true;
  std::uint64_t round = 0;
  do {
    ++round;
    for (int n = 1; n < threads; ++n) {
      const int other = (me + n) % threads;
      write_letter(mail[me][other], lines.posted, round);
      write_letter(kept[me][other], lines.kept, round);
    }
    rendezvous->meet();
    for (int n = 1; n < threads; ++n) {
      const int other = (me + n) % threads;
      const std::uint64_t sum = read_mail(me, other, lines.posted, clock) + read_letter(kept[me][other], lines.kept);
      all_right &= sum == round * all_lines;
    }
  } while (rendezvous->meet_again(deadline));
  return {all_right ? round : 0, clock};
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("all_to_all", "every thread writes to every other one in each round");
  flags.number("--threads", 3, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", 1, 1, max_lines, "cache lines of a letter");
  flags.number("--posted", max_lines, 0, max_lines,
               "lines of it that are posted, at most all; the rest is private work");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const int written = flags.integer("--lines");
  const int posted = std::min(flags.integer("--posted"), written);
  const Lengths lines{posted, written - posted};

  const Deadline deadline(flags.real("--seconds"));
  rendezvous.emplace(static_cast<std::uint32_t>(threads));
  std::vector<Correspondence> crew(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    crew[static_cast<std::size_t>(index - 1)] = correspond(index - 1, threads, lines, deadline);
  });

  Truth truth("all_to_all", threads + 1);
  if (posted > 0) {
    truth.add_data("mail", mail);
  }
  truth.sync = {"rendezvous"};
  truth.file = __FILE_NAME__;
  truth.producer_line = write_line;
  truth.consumer_line = read_line;
  for (int reader = 1; reader <= threads; ++reader) {
    const auto& [read, clock] = crew[static_cast<std::size_t>(reader - 1)];
    if (posted > 0) {
      truth.add_costs(reader, clock);
    }
    if (read == 0) {
      flags.refuse("a letter did not say what was written: this machine, or this program, is broken");
    }
    for (int writer = 1; writer <= threads; ++writer) {
      if (writer != reader) {
        truth.add_true(writer, reader, read * static_cast<std::uint64_t>(posted));
        // The first round finds nothing read yet.
        truth.add_invalidations(writer, reader, (read - 1) * static_cast<std::uint64_t>(posted));
      }
    }
  }
  truth.print(deadline.elapsed());
}
