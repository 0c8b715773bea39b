// SPDX-License-Identifier: Apache-2.0
// Shared by programs of loops that count their own work: arrays, the clock, visits, and the printed truth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace workload {

/// CPU time of the calling thread.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Doubles on pages of their own, touched.
class Array {
 public:
  explicit Array(std::size_t bytes)
      : count_(bytes / sizeof(double)),
        data_(static_cast<double*>(std::aligned_alloc(page, (bytes + page - 1) / page * page))) {
    std::fill(data_, data_ + count_, 1.0);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { std::free(data_); }
  [[nodiscard]] double* data() const { return data_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t count_;
  double* data_;
};

/// A loop, and what one of its iterations does.
template <class Data>
struct CountedLoop {
  const char* name;
  std::uint64_t (*run)(Data&, std::uint64_t n);  // does about `n` iterations and returns how many
  double per_s;                                  // iterations, about: sets the length of the first visit
  double flops, bytes;                           // bytes: to and from the core
  double memory_bytes;                           // to and from memory; -1: not known
  double l2_bytes = -1;                          // between L1D and L2; -1: not known
};

/// Runs each loop in visits of about `visit_s`, in turn, until it has taken its part of `seconds` of CPU time. Returns
/// the truth. `beside` is called after each visit.
template <class Data>
std::string run_counted(Data& data, const std::vector<CountedLoop<Data>>& loops, double seconds, double visit_s,
                        const std::function<void()>& beside = nullptr) {
  std::string text = "\"loops\":[";
  const char* comma = "";
  for (const CountedLoop<Data>& loop : loops) {
    double spent = 0;
    std::uint64_t iterations = 0;
    while (spent < seconds / static_cast<double>(loops.size())) {
      const double speed = spent > 0 ? static_cast<double>(iterations) / spent : loop.per_s;
      const double from = thread_seconds();
      iterations += loop.run(data, static_cast<std::uint64_t>(speed * visit_s) + 1);
      spent += thread_seconds() - from;
      if (beside) {
        beside();
      }
    }
    char row[300];
    std::snprintf(
        row, sizeof row,
        R"(%s{"function":"%s","iterations":%llu,"cpu_s":%.6f,"flops":%g,"bytes":%g,"memory_bytes":%g,"l2_bytes":%g})",
        comma, loop.name, static_cast<unsigned long long>(iterations), spent, loop.flops, loop.bytes, loop.memory_bytes,
        loop.l2_bytes);
    text += row;
    comma = ",";
  }
  return text + "]";
}

template <class Data>
std::vector<std::string> names_of(const std::vector<CountedLoop<Data>>& loops) {
  std::vector<std::string> names{"all"};
  for (const CountedLoop<Data>& loop : loops) {
    names.emplace_back(loop.name);
  }
  return names;
}

/// Those named `only`; all for "all".
template <class Data>
std::vector<CountedLoop<Data>> chosen(std::vector<CountedLoop<Data>> loops, const std::string& only) {
  std::erase_if(loops, [&](const CountedLoop<Data>& loop) { return only != "all" && only != loop.name; });
  return loops;
}

}  // namespace workload
