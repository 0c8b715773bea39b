// SPDX-License-Identifier: Apache-2.0
// Loops of many shapes that count their own iterations and time themselves with the thread's CPU clock, in an order and
// in visits of lengths that no sampling period can beat against. Iterations are those of the machine code's loop: a
// body that handles four elements is one. Built without unrolling and vectorising, so that the machine code has the
// source's loop.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "counted_loops.h"
#include "workload.h"

namespace {

using workload::Flags;
using workload::thread_seconds;
using workload::Truth;

using Pair = double __attribute__((vector_size(16)));

constexpr std::size_t big = 1U << 20U;  // elements of 8 bytes
constexpr std::size_t long_text = 1U << 27U;
constexpr std::size_t small = 1U << 10U;  // elements in the first-level cache

struct Data {
  std::vector<double> a = std::vector<double>(big, 1.5);
  std::vector<double> b = std::vector<double>(big, 0.25);
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(small, 7);
  std::vector<unsigned char> text = std::vector<unsigned char>(long_text, 7);
  std::vector<std::uint32_t> next = std::vector<std::uint32_t>(small);
  std::vector<double> roots = std::vector<double>(small);
  std::vector<char> marks = std::vector<char>(std::size_t{16} << 12U);
  std::uint64_t sink = 0;
  std::uint64_t steps = 0;  // of loops inside others
  std::uint64_t shared = 0;
  double real_sink = 0;
  Data() {
    std::mt19937 random(7);
    for (double& root : roots) {
      root = std::uniform_real_distribution<double>(2, 5000)(random);
    }
    for (std::size_t i = 15; i < marks.size(); i += std::size_t{16} * (2 + random() % 5)) {
      marks[i] = 1;
    }
    marks.back() = 1;
    for (std::size_t i = 0; i < small; ++i) {
      next[i] = static_cast<std::uint32_t>((i * 389 + 1) % small);
    }
  }
};

/// Each runs about `n` units of work and returns the iterations of its loop.
using Run = std::uint64_t (*)(Data&, std::uint64_t n);

[[gnu::noinline]] std::uint64_t count_up(Data& data, std::uint64_t n) {
  std::uint64_t x = data.sink;
  for (std::uint64_t i = 0; i < n; ++i) {
    x = x * 3 + i;
  }
  data.sink = x;
  return n;
}

[[gnu::noinline]] std::uint64_t count_down(Data& data, std::uint64_t n) {
  double x = data.real_sink;
  for (std::uint64_t i = n; i != 0; --i) {
    x = x * 0.5 + 1.25;
  }
  data.real_sink = x;
  return n;
}

[[gnu::noinline]] std::uint64_t narrow_counter(Data& data, std::uint64_t n) {
  const auto end = static_cast<std::uint32_t>(n);
  std::uint64_t x = data.sink;
  for (std::uint32_t i = 0; i != end; ++i) {
    x = (x ^ i) * 5;
  }
  data.sink = x;
  return end;
}

[[gnu::noinline]] std::uint64_t unrolled(Data& data, std::uint64_t n) {
  const std::size_t mask = small - 1;
  double x = 0;
  double y = 0;
  double z = 0;
  double w = 0;
  std::uint64_t i = 0;
  for (; i < 4 * n; i += 4) {
    const double* at = &data.b[i & mask];
    x += at[0] * 1.5;
    y += at[1] * 1.5;
    z += at[2] * 1.5;
    w += at[3] * 1.5;
  }
  data.real_sink += x + y + z + w;
  return i / 4;
}

[[gnu::noinline]] std::uint64_t vectorised(Data& data, std::uint64_t n) {
  const Pair scale = {0.5, 0.5};
  const std::uint64_t rounds = n / (big / 32) + 1;
  auto* to = reinterpret_cast<Pair*>(data.a.data());
  const auto* from = reinterpret_cast<const Pair*>(data.b.data());
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < big / 32; ++i) {
      to[i] = from[i] * scale + to[i];
    }
  }
  return rounds * (big / 32);
}

[[gnu::noinline]] std::uint64_t strided(Data& data, std::uint64_t n, std::uint64_t stride) {
  std::uint64_t sum = 0;
  const std::uint64_t end = n * stride;
  for (std::uint64_t i = 0; i != end; i += stride) {
    sum += data.words[i & (small - 1)];
  }
  data.sink += sum;
  return n;
}
std::uint64_t strided_by_three(Data& data, std::uint64_t n) {
  volatile std::uint64_t stride = 3;  // so that it is in a register
  return strided(data, n, stride);
}

[[gnu::noinline]] std::uint64_t pointer_bump(Data& data, std::uint64_t n) {
  std::uint64_t sum = 0;
  const std::uint64_t length = std::min<std::uint64_t>(n, long_text);
  const unsigned char* const end = data.text.data() + length;
  for (const unsigned char* p = data.text.data(); p != end; ++p) {
    sum = sum * 5 + *p;
  }
  data.sink += sum;
  return length;
}

[[gnu::noinline]] std::uint64_t short_inner(Data& data, std::uint64_t n) {
  const std::uint64_t rounds = n / small + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < small; ++i) {
      data.a[i] = data.a[i] * 0.5 + data.b[i];
    }
  }
  return rounds * small;
}

[[gnu::noinline]] std::uint64_t sentinel(Data& data, std::uint64_t n) {
  unsigned char& last = data.text[std::min<std::uint64_t>(n, long_text - 1)];
  last = 0;
  const unsigned char* p = data.text.data();
  while (*p != 0) {
    ++p;
  }
  last = 7;
  return static_cast<std::uint64_t>(p - data.text.data());
}

[[gnu::noinline]] std::uint64_t lea_countdown(Data& data, std::uint64_t n) {
  std::uint64_t x = data.sink;
  std::uint64_t left = n;
  // NOLINTNEXTLINE(hicpp-no-assembler): the shape is what is wanted
  asm volatile(
      "1: lea (%0,%0,4), %0\n"
      "   lea -1(%1), %1\n"
      "   test %1, %1\n"
      "   jne 1b\n"
      : "+r"(x), "+r"(left)::"cc");
  data.sink = x;
  return n;
}

[[gnu::noinline]] std::uint64_t outer_only(Data& data, std::uint64_t n) {
  std::uint64_t total = data.sink;
  const std::uint64_t rounds = n / 64 + 1;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (std::uint64_t x = (i & 0xfffU) | 1; x != 1;
         x = (x & 1U) != 0 ? 3 * x + 1 : x / 2) {  // Collatz: nothing counts it
      total ^= x;
    }
  }
  data.sink = total;
  return rounds;
}

[[gnu::noinline]] std::uint64_t early_exit(Data& data, std::uint64_t n) {
  std::uint64_t i = 0;
  std::uint32_t at = 0;
  for (; i < n; ++i) {
    at = data.next[at];
    if (at == small) {  // never, but who knows
      break;
    }
  }
  data.sink += at;
  return i;
}

[[gnu::noinline]] std::uint64_t branches(Data& data, std::uint64_t n) {
  std::uint64_t x = data.sink | 1;
  for (std::uint64_t i = 0; i < n; ++i) {
    x ^= x << 13U, x ^= x >> 7U, x ^= x << 17U;
    if ((x & 3U) == 0) {
      x = x * 7 + x / 3 + i;
      data.words[x & (small - 1)] = 7;
    }
  }
  data.sink = x;
  return n;
}

/// Returns how often the branch of branches() is taken: computed again afterwards, so that its loop need not count.
[[gnu::noinline]] std::uint64_t branches_taken(std::uint64_t x, std::uint64_t n) {
  std::uint64_t taken = 0;
  x |= 1;
  for (std::uint64_t i = 0; i < n; ++i) {
    x ^= x << 13U, x ^= x >> 7U, x ^= x << 17U;
    if ((x & 3U) == 0) {
      x = x * 7 + x / 3 + i;
      ++taken;
    }
  }
  return taken;
}

[[gnu::noipa]] double called(double x, double y) { return (x + y) * 0.5; }
[[gnu::noinline]] std::uint64_t with_calls(Data& data, std::uint64_t n) {
  double x = data.real_sink;
  for (std::uint64_t i = 0; i < n; ++i) {
    x = (x * 0.5 + 1.25) * 0.5 + 1.5;
    x = called(x * 0.5 + 1.75, 3);
  }
  data.real_sink = x;
  return n;
}

/// Roots by Newton's steps until one is small: a floating-point comparison ends the inner loop.
[[gnu::noinline]] std::uint64_t newton(Data& data, std::uint64_t n) {
  const std::uint64_t rounds = n / 8 + 1;
  double total = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const double wanted = data.roots[i & (small - 1)];
    double x = wanted;
    double step = 0;
    do {
      step = (x - wanted / x) * 0.5;
      x -= step;
      ++data.steps;
    } while (step > 1e-7);  // from above, steps are positive
    total += x;
  }
  data.real_sink += total;
  return rounds;
}

/// Searches a byte 16 at a time: 2 to 6 times, by chance.
[[gnu::noinline]] std::uint64_t vector_search(Data& data, std::uint64_t n) {
  using Bytes = char __attribute__((vector_size(16)));
  const Bytes wanted = Bytes{} + 1;
  const std::uint64_t rounds = n / 8 + 1;
  const char* const begin = data.marks.data();
  const char* const end = begin + data.marks.size();
  const char* p = begin;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (;;) {
      Bytes here;
      __builtin_memcpy(&here, p, sizeof here);
      p += sizeof here;
      ++data.steps;
      if (__builtin_ia32_pmovmskb128(here == wanted) != 0) {
        break;
      }
    }
    data.sink += static_cast<std::uint64_t>(*(p - 1));
    if (p == end) {
      p = begin;
    }
  }
  return rounds;
}

/// Counts up by compare and exchange, repeated until it succeeds: alone, so that it succeeds at once. One in eight
/// takes another path.
[[gnu::noinline]] std::uint64_t retried_exchange(Data& data, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t seen = __atomic_load_n(&data.shared, __ATOMIC_RELAXED);
    std::uint64_t next = 0;
    do {
      next = seen + 1;
      if ((seen & 7U) == 0) {
        next += 2;
        asm volatile("" : "+r"(next));  // NOLINT(hicpp-no-assembler): a jump, no conditional move
      }
    } while (!__atomic_compare_exchange_n(&data.shared, &seen, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
  return n;
}

struct Shape {
  const char* name;
  Run run;
  double units_per_s;       // about; sets the length of the first visit
  bool outermost;           // the loop that is counted: else the innermost
  double flops, bytes;      // of one iteration, with what it calls; -1: not fixed, or not by what is written here
  double branch_bytes = 0;  // of the branch of branches(): the word, and the vector's pointer, loaded each time
  double step_flops = 0;    // of one step of the loop inside, which counts them: data.steps
  double step_bytes = 0;
  bool decided =
      false;  // by numbers, vectors or exchanges: how its iterations go; one of those that --only decided runs
};
constexpr Shape shapes[] = {
    {"count_up", count_up, 8e8, false, 0, 0},
    {"count_down", count_down, 3.5e8, false, 2, 0},
    {"narrow_counter", narrow_counter, 8e8, false, 0, 0},
    {"unrolled", unrolled, 5e8, false, 8, 32},
    {"vectorised", vectorised, 1.4e9, false, 4, 48},
    {"strided", strided_by_three, 1e9, false, 0, 8},
    {"pointer_bump", pointer_bump, 1e9, false, 0, 1},
    {"short_inner", short_inner, 8e8, false, 2, 24},
    {"sentinel", sentinel, 1e9, false, 0, 1},
    {"lea_countdown", lea_countdown, 1.5e9, false, 0, 0},
    {"outer_only", outer_only, 4e8, true, -1, -1},
    {"early_exit", early_exit, 6e8, false, 0, 4},
    {"branches", branches, 2e8, false, 0, 0, 16},
    {"with_calls", with_calls, 6e7, false, 8, -1},
    {"newton", newton, 2e8, true, 1, 8, 0, 4, 0, true},
    {"vector_search", vector_search, 2e9, true, 0, 17, 0, 0, 24, true},
    {"retried_exchange", retried_exchange, 2e8, true, 0, 24, 0, 0, 0, true},
};
constexpr std::size_t shape_count = sizeof shapes / sizeof shapes[0];

struct Times {
  double cpu_s[shape_count] = {};
  double units[shape_count] = {};  // that were asked for
  std::uint64_t iterations[shape_count] = {};
  double more_bytes[shape_count] = {};  // than the fixed ones, in all
  double more_flops[shape_count] = {};
};

/// Returns the measured rate so far: machines differ by more than visits may.
double units_per_s(std::size_t shape, const Times& times) {
  constexpr double most = 10;  // times what is usual: some shapes do not do all that they are asked for
  const double usual = shapes[shape].units_per_s;
  return times.cpu_s[shape] > 0 ? std::min(times.units[shape] / times.cpu_s[shape], most * usual) : usual;
}

Times run_shapes(double seconds, double visit_s, double spread, const std::string& only) {
  Data data;
  Times times;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> jitter(1 - spread, 1 + spread);
  const double begin = thread_seconds();
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < shape_count; ++k) {
    if (only == shapes[k].name || only == (shapes[k].decided ? "decided" : "all")) {
      order.push_back(k);
    }
  }
  while (thread_seconds() - begin < seconds) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t k : order) {
      const auto n = static_cast<std::uint64_t>(units_per_s(k, times) * visit_s * jitter(random)) + 1;
      const std::uint64_t before = data.sink;
      const std::uint64_t steps = data.steps;
      const double from = thread_seconds();
      times.iterations[k] += shapes[k].run(data, n);
      times.cpu_s[k] += thread_seconds() - from;
      times.units[k] += static_cast<double>(n);
      times.more_bytes[k] += shapes[k].step_bytes * static_cast<double>(data.steps - steps);
      times.more_flops[k] += shapes[k].step_flops * static_cast<double>(data.steps - steps);
      if (shapes[k].branch_bytes > 0) {
        times.more_bytes[k] += shapes[k].branch_bytes * static_cast<double>(branches_taken(before, n));
      }
    }
  }
  return times;
}

std::string describe(const Times& times) {
  std::string text = "\"loops\":[";
  const char* comma = "";
  for (std::size_t k = 0; k < shape_count; ++k) {
    if (times.iterations[k] == 0) {
      continue;
    }
    char row[240];
    std::snprintf(row, sizeof row,
                  R"(%s{"function":"%s","outermost":%s,"iterations":%llu,"cpu_s":%.6f,"flops":%g,"bytes":%g})", comma,
                  shapes[k].name, shapes[k].outermost ? "true" : "false",
                  static_cast<unsigned long long>(times.iterations[k]), times.cpu_s[k],
                  shapes[k].flops + times.more_flops[k] / static_cast<double>(times.iterations[k]),
                  shapes[k].bytes + times.more_bytes[k] / static_cast<double>(times.iterations[k]));
    text += row;
    comma = ",";
  }
  return text + "]";
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("loop_rates", "loops that count their iterations");
  flags.number("--seconds", 10, 0.1, 3600, "CPU time of the thread")
      .number("--visit", 0.06, 0.0001, 10, "about how long a visit of a loop lasts, s")
      .number("--spread", 0.35, 0, 0.9, "by which part visits are longer or shorter, by chance");
  std::vector<std::string> names{"all", "decided"};  // all: but those
  for (const Shape& shape : shapes) {
    names.emplace_back(shape.name);
  }
  flags.choice("--only", names, "the loop to run");
  flags.parse(argc, argv);
  const double begin = thread_seconds();
  Times times;
  workload::run_crew(1, [&](int) {
    times = run_shapes(flags.real("--seconds"), flags.real("--visit"), flags.real("--spread"), flags.word("--only"));
  });
  Truth truth("loop_rates", 2);
  truth.file = __FILE_NAME__;
  truth.print(thread_seconds() - begin, describe(times));
}
