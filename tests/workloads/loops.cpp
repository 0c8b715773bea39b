// SPDX-License-Identifier: Apache-2.0
// Loops of known place and known CPU time: each is timed with the thread's CPU clock in visits of a few milliseconds,
// in an order that no sampling period can beat against.
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <thread>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Field {
  std::vector<double> a, b, c;
  std::vector<std::uint32_t> next;  // one cycle through all its elements
  explicit Field(std::size_t size) : a(size, 1), b(size, 2), c(size, 3), next(size) {
    std::vector<std::uint32_t> order(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      order[i] = i;
    }
    std::mt19937 random(7);
    for (std::size_t i = size - 1; i > 0; --i) {
      std::swap(order[i], order[random() % (i + 1)]);
    }
    for (std::size_t i = 0; i < size; ++i) {
      next[order[i]] = order[(i + 1) % size];
    }
  }
};

struct Place {
  int begin, end;  // first and last line of the loop
};

constexpr Place triad_place{__LINE__ + 2, __LINE__ + 4};
[[gnu::noinline]] double triad(Field& field) {
  for (std::size_t i = 0; i < field.a.size(); ++i) {
    field.a[i] = field.b[i] + 0.5 * field.c[i];
  }
  return field.a[1];
}

constexpr Place chase_place{__LINE__ + 3, __LINE__ + 5};
[[gnu::noinline]] double chase(Field& field) {
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < field.next.size() / 8; ++i) {
    at = field.next[at];
  }
  return at;
}

constexpr Place divide_place{__LINE__ + 3, __LINE__ + 5};
[[gnu::noinline]] double divide(Field& field) {
  double value = field.b[3];
  for (std::size_t i = 0; i < field.b.size() / 8; ++i) {
    value = 1.0 + 1.0 / value;
  }
  return value;
}

constexpr int matrix_size = 48;
constexpr Place multiply_place{__LINE__ + 2, __LINE__ + 11};
[[gnu::noinline]] double multiply(Field& field) {
  for (int i = 0; i < matrix_size; ++i) {
    for (int j = 0; j < matrix_size; ++j) {
      double sum = 0;
      for (int k = 0; k < matrix_size; ++k) {
        sum += field.b[static_cast<std::size_t>(i * matrix_size + k)] *
               field.c[static_cast<std::size_t>(k * matrix_size + j)];
      }
      field.a[static_cast<std::size_t>(i * matrix_size + j)] = sum;
    }
  }
  return field.a[0];
}

struct Kernel {
  const char* name;
  Place place;
  double (*run)(Field&);
  double visit_s;  // how long one visit lasts; sets its share of the whole
};
constexpr Kernel kernels[] = {
    {"triad", triad_place, triad, 0.008},
    {"chase", chase_place, chase, 0.004},
    {"divide", divide_place, divide, 0.005},
    {"multiply", multiply_place, multiply, 0.003},
};
constexpr std::size_t kernel_count = sizeof kernels / sizeof kernels[0];

struct Times {
  double of_kernel[kernel_count] = {};
  double total = 0;
  double check = 0;
};

Times run_kernels(unsigned seed, double seconds) {
  Field field(1U << 16U);
  Times times;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  const double begin = thread_seconds();
  while (thread_seconds() - begin < seconds) {
    for (std::size_t k = 0; k < kernel_count; ++k) {
      const double visit = kernels[k].visit_s * jitter(random);
      const double from = thread_seconds();
      double now = from;
      while (now - from < visit) {
        // Several rounds between two clock readings, which are system calls: a loop's known time includes them.
        for (int n = 0; n < 8; ++n) {
          times.check += kernels[k].run(field);
        }
        now = thread_seconds();
      }
      times.of_kernel[k] += now - from;
    }
  }
  times.total = thread_seconds() - begin;
  return times;
}

std::string describe(const std::vector<Times>& threads) {
  std::string text = "\"loops\":[";
  double total = 0;
  for (const Times& times : threads) {
    total += times.total;
  }
  for (std::size_t k = 0; k < kernel_count; ++k) {
    double seconds = 0;
    for (const Times& times : threads) {
      seconds += times.of_kernel[k];
    }
    char row[160];
    std::snprintf(row, sizeof row, "%s{\"function\":\"%s\",\"line_begin\":%d,\"line_end\":%d,\"cpu_s\":%.6f}",
                  k > 0 ? "," : "", kernels[k].name, kernels[k].place.begin, kernels[k].place.end, seconds);
    text += row;
  }
  return text + "],\"cpu_s\":" + std::to_string(total);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("loops", "loops that time themselves");
  flags.number("--threads", 2, 1, 64, "threads").number("--seconds", 3, 0.01, 3600, "CPU time of each thread");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");

  const Deadline clock(0);
  std::vector<Times> times(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    times[static_cast<std::size_t>(index - 1)] = run_kernels(static_cast<unsigned>(index), flags.real("--seconds"));
  });
  Truth truth("loops", threads + 1);
  truth.file = __FILE_NAME__;
  truth.print(clock.elapsed(), describe(times));
}
