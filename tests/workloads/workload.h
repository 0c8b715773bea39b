// SPDX-License-Identifier: Apache-2.0
// Shared by the workloads: checked options, a crew of threads, and the printed truth.
//
// A workload is a small program whose communication between threads is known, because it forces it. It prints one line
// of JSON to stdout: the result of a perfect profiler. Thread indices are creation order, main is 0; rows are producers
// (they stored), columns consumers (they accessed next). Lines used only to synchronise are not in the matrix; they are
// named in `sync`. `invalidations` has a row for each storing thread and a column for each thread whose copy is lost;
// it is null, with the reason beside it, if the program does not force their number. `true_cost` and `false_cost` are
// the consumers' lost time, in s by their own clocks (cost_clock.h); null if the program does not time itself.
//
// Shared words are accessed with the __atomic builtins, not std::atomic, so that the access belongs to the
// workload's own source line and not to one of the library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cost_clock.h"

namespace workload {

inline constexpr std::size_t line_bytes = 64;

/// Command-line flags, all `--name value`. parse() ends the process with status 2 and one line that has the given and
/// the allowed values; with `--help` it prints them and ends with 0.
class Flags {
 public:
  Flags(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}
  Flags& number(const std::string& name, double initial, double low, double high, const std::string& help);
  Flags& choice(const std::string& name, const std::vector<std::string>& words, const std::string& help);
  void parse(int argc, char** argv);

  [[nodiscard]] double real(const std::string& name) const { return numbers_.at(name).value; }
  /// Refuses anything but a whole number.
  [[nodiscard]] int integer(const std::string& name) const;
  [[nodiscard]] const std::string& word(const std::string& name) const { return choices_.at(name).value; }
  /// Ends the process as parse() does.
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  struct Number {
    double value = 0, low = 0, high = 0;
    std::string help;
  };
  struct Choice {
    std::string value;
    std::vector<std::string> words;
    std::string help;
  };
  void set(const std::string& name, const std::string& text);
  [[noreturn]] void print_help() const;

  std::string program_, purpose_;
  std::map<std::string, Number> numbers_;
  std::map<std::string, Choice> choices_;
};

/// A time at which to stop. Each thread asks its own clock, so that stopping shares nothing.
class Deadline {
 public:
  explicit Deadline(double seconds);
  [[nodiscard]] bool passed() const;
  /// Seconds since it was made.
  [[nodiscard]] double elapsed() const;

 private:
  std::int64_t begin_ns_, end_ns_;
};

struct Range {
  std::uint64_t begin = 0, bytes = 0;
};

/// Returns the counts of an accountant of every access on the lines of `ranges`, as `"name":value` pairs; tids[n] is
/// thread n. Only programs that are built with one (accountant.cpp) have it.
[[gnu::weak]] std::string accounts(const std::vector<std::int32_t>& tids, const std::vector<Range>& ranges);

using Matrix = std::vector<std::vector<std::uint64_t>>;
/// As JSON.
std::string matrix_text(const Matrix& matrix);

/// The known truth. Counts are communications on data lines.
class Truth {
 public:
  /// `threads` counts main.
  Truth(std::string workload, int threads);
  void add_true(int producer, int consumer, std::uint64_t count);
  void add_false(int producer, int consumer, std::uint64_t count);
  /// Stores of `writer` to a line that `reader` has only read since the last store to it.
  void add_invalidations(int writer, int reader, std::uint64_t count);
  /// Adds the times that `consumer` measured.
  void add_costs(int consumer, const CostClock& clock);

  /// A variable that holds data; the first is the one that a report is to name first.
  template <class Variable>
  void add_data(const std::string& name, const Variable& variable) {
    add_data(name, &variable, sizeof variable);
  }
  void add_data(const std::string& name, const void* begin, std::size_t bytes);

  bool exact = true;                  // false: the matrices hold proportions, not counts
  std::string invalidations_unknown;  // why they are; empty: they are known
  std::vector<std::string> sync;      // variables that only synchronise
  std::string file;                   // of the lines below
  int producer_line = 0, consumer_line = 0;

  /// One line of JSON on stdout. `extra` is spliced in: empty, or `"name":value` pairs.
  void print(double seconds, const std::string& extra = "") const;

 private:
  static std::uint64_t sum(const Matrix& matrix);
  std::string workload_;
  std::vector<std::string> data_;
  std::vector<Range> ranges_;
  Matrix true_, false_, invalidations_;
  std::vector<std::vector<double>> true_cost_s_, false_cost_s_;  // empty: not timed
};

/// Notes that the calling thread is thread `index` of the truth. run_crew() does it for its own; main is noted by
/// Truth::print().
void note_thread(int index);
/// Notes that thread `index` is another, or a process of one thread.
void note_thread(int index, std::int32_t tid);

/// Starts `count` threads, lets them go at one time, and joins them. `body` is given 1..count.
void run_crew(int count, const std::function<void(int)>& body);

void yield_processor();

/// In a loop that waits for another thread: polite to the other hardware thread, and once in a while to the
/// other software threads, which may have no processor to run on.
inline void relax(unsigned& spins, bool yields) {
  __builtin_ia32_pause();
  if (yields && (++spins & 31U) == 0) {
    yield_processor();
  }
}

}  // namespace workload
