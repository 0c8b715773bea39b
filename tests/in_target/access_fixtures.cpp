// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/access_fixtures.h"

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace crosstalk::test::FIXTURE_NAMESPACE {

namespace {

volatile std::uint64_t sink;
constexpr int count = 200;
int numbers[count];
double field[48][48], other_field[48][48];
char text[4096], copy[4096];

void scramble() {
  std::uint32_t state = 12345;
  for (int& n : numbers) {
    state = state * 1664525U + 1013904223U;
    n = static_cast<int>(state >> 8U);
  }
}

void quick_sort() {
  scramble();
  std::qsort(numbers, count, sizeof(int), [](const void* a, const void* b) {
    const int x = *static_cast<const int*>(a);
    const int y = *static_cast<const int*>(b);
    return (x > y) - (x < y);
  });
}

void standard_sort() {
  scramble();
  std::sort(std::begin(numbers), std::end(numbers));
}

void copy_loop() {
  for (std::size_t i = 0; i < sizeof(text); ++i) {
    const_cast<volatile char*>(copy)[i] = const_cast<volatile char*>(text)[i];
  }
}

void library_copies() {
  for (std::size_t bytes = 1; bytes < sizeof(text); bytes = bytes * 3 / 2 + 1) {
    std::memcpy(copy, text, bytes);
    std::memset(text, static_cast<int>(bytes), bytes);
    std::memmove(text + 1, text, bytes - 1);
    sink = static_cast<std::uint64_t>(std::memcmp(copy, text, bytes));
  }
}

void string_instructions() {
  void* to = copy;
  const void* from = text;
  std::size_t bytes = 100;
  asm volatile("cld; rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  bytes = 40;
  asm volatile("rep stosq" : "+D"(to), "+c"(bytes) : "a"(0) : "memory");
  asm volatile("lodsb; movsw; rep stosb" : "+D"(to), "+S"(from), "+c"(bytes) : : "rax", "memory");
}

void hash_table() {
  std::unordered_map<std::uint64_t, std::uint64_t> table;
  for (std::uint64_t i = 0; i < 120; ++i) {
    table[i * 7919 % 1009] += i;
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto found = table.find(i);
    sum += found == table.end() ? 1 : found->second;
  }
  sink = sum;
}

void tree() {
  std::map<std::string, int> words;
  for (int i = 0; i < 60; ++i) {
    words["word" + std::to_string(i * 37 % 61)] += i;
  }
  sink = words.size();
}

struct Node {
  Node* next = nullptr;
  std::uint64_t value = 0;
  std::uint32_t small = 0;
};

void list_walk() {
  static Node nodes[64];
  for (int i = 0; i < 64; ++i) {
    nodes[i].next = &nodes[(i * 29 + 1) % 64];
    nodes[i].value = static_cast<std::uint64_t>(i);
  }
  std::uint64_t sum = 0;
  const Node* node = nodes;
  for (int i = 0; i < 500; ++i, node = node->next) {
    sum += node->value ^ node->small;
  }
  sink = sum;
}

void stencil() {
  for (int i = 1; i < 47; ++i) {
    for (int j = 1; j < 47; ++j) {
      other_field[i][j] = 0.25 * (field[i - 1][j] + field[i + 1][j] + field[i][j - 1] + field[i][j + 1]);
    }
  }
}

void switches() {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < 400; ++i) {
    switch (numbers[i % count] & 7) {
      case 0:
        sum += i;
        break;
      case 1:
        sum ^= i << 3U;
        break;
      case 2:
        sum *= 3;
        break;
      case 3:
        sum -= static_cast<unsigned char>(text[i]);
        break;
      case 4:
        sum = sum / (i + 1) + sum % 7;
        break;
      case 5:
        sum = (sum >> 5U) | (sum << 59U);
        break;
      default:
        ++text[i];
    }
  }
  sink = sum;
}

void atomics() {
  static std::atomic<std::uint64_t> counters[8];
  for (std::uint64_t i = 0; i < 200; ++i) {
    std::atomic<std::uint64_t>& counter = counters[i % 8];
    counter.fetch_add(i);
    std::uint64_t seen = counter.load(std::memory_order_relaxed);
    while (!counter.compare_exchange_weak(seen, seen * 2 + 1)) {
    }
    counter.exchange(seen);
  }
  sink = counters[3].load();
}

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual int area() const = 0;
};
struct Square : Shape {
  int side = 3;
  [[nodiscard]] int area() const override { return side * side; }
};
struct Strip : Shape {
  int length = 5;
  [[nodiscard]] int area() const override { return length; }
};

void virtual_calls() {
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.reserve(50);
  for (int i = 0; i < 50; ++i) {
    shapes.push_back(i % 3 == 0 ? std::unique_ptr<Shape>(new Square) : std::unique_ptr<Shape>(new Strip));
  }
  int sum = 0;
  for (const auto& shape : shapes) {
    sum += shape->area();
  }
  sink = static_cast<std::uint64_t>(sum);
}

void formatting() {
  char line[128];
  for (int i = 0; i < 12; ++i) {
    std::snprintf(line, sizeof(line), "%d %s %.3f %lx", i, "text", i * 0.37, static_cast<unsigned long>(i) * 77777);
  }
  sink = std::strlen(line);
}

void narrow_integers() {
  std::uint8_t bytes[64];
  std::uint16_t words[64];
  std::iota(std::begin(bytes), std::end(bytes), std::uint8_t{3});
  for (unsigned i = 0; i < 64; ++i) {
    words[i] = static_cast<std::uint16_t>(bytes[i] * bytes[63 - i] + (i > 0 ? words[i - 1] : 0));
    bytes[i] = static_cast<std::uint8_t>(words[i] >> (i % 9));
  }
  sink = words[63];
}

/// Square roots until two steps hardly differ: a floating-point comparison ends the loop.
void newton() {
  double sum = 0;
  for (int i = 1; i < 120; ++i) {
    const double wanted = i * 0.73;
    double x = wanted;
    double step = 1;
    while (step > 1e-9 || step < -1e-9) {
      step = 0.5 * (x - wanted / x);
      x -= step;
    }
    sum += x;
  }
  field[0][0] = sum;
  sink = static_cast<std::uint64_t>(sum);
}

/// Searches a byte sixteen at a time, as libraries do.
void vector_search() {
  std::memset(text, 'a', sizeof text);
  std::uint64_t sum = 0;
  for (unsigned place = 7; place < 4000; place += 97) {
    text[place] = 'b';
    const __m128i wanted = _mm_set1_epi8('b');
    for (unsigned i = 0;; i += 16) {
      const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + i));
      const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(here, wanted)));
      if (found != 0) {
        sum += i + static_cast<unsigned>(__builtin_ctz(found));
        break;
      }
    }
    text[place] = 'a';
  }
  sink = sum;
}

void library_searches() {
  std::memset(text, 'x', sizeof text);
  std::uint64_t sum = 0;
  for (unsigned bytes = 1; bytes < 3000; bytes = bytes * 5 / 3 + 1) {
    text[bytes] = 0;
    sum += std::strlen(text);
    sum += std::memchr(text, 0, sizeof text) != nullptr ? 1 : 0;
    sum += std::strchr(text, 'y') == nullptr ? 1 : 0;
    sum += static_cast<std::uint64_t>(std::strcmp(text, text + 1) > 0);
    text[bytes] = 'x';
  }
  sink = sum;
}

/// Counts a number up while it is smaller than another that is rounded and converted.
void conversions() {
  std::uint64_t sum = 0;
  float single = 0.5F;
  for (int i = 0; i < 150; ++i) {
    single = single * 1.07F + static_cast<float>(i % 5);
    const auto whole = static_cast<int>(single);
    sum += static_cast<std::uint64_t>(whole & 7);
    if (static_cast<double>(whole) > single - 0.25) {
      ++sum;
    }
    for (int k = 0; k < (whole & 3); ++k) {
      sum += 3;
    }
    single = single > 1e6F ? 0.25F : single;
  }
  sink = sum;
}

void bit_counts() {
  scramble();
  std::uint64_t sum = 0;
  for (const int n : numbers) {
    auto bits = static_cast<std::uint64_t>(static_cast<unsigned>(n)) | 1U;
    while (bits != 0) {
      sum += static_cast<unsigned>(__builtin_ctzll(bits));
      bits &= bits - 1;
    }
  }
  sink = sum;
}

}  // namespace

extern const Fixture fixtures[] = {
    {"quick_sort", quick_sort},
    {"standard_sort", standard_sort},
    {"copy_loop", copy_loop},
    {"library_copies", library_copies},
    {"hash_table", hash_table},
    {"tree", tree},
    {"list_walk", list_walk},
    {"stencil", stencil},
    {"switches", switches},
    {"atomics", atomics},
    {"virtual_calls", virtual_calls},
    {"formatting", formatting},
    {"narrow_integers", narrow_integers},
    {"string_instructions", string_instructions},
    {"newton", newton},
    {"vector_search", vector_search},
    {"library_searches", library_searches},
    {"conversions", conversions},
    {"bit_counts", bit_counts},
};
extern const int fixture_count = sizeof(fixtures) / sizeof(fixtures[0]);

}  // namespace crosstalk::test::FIXTURE_NAMESPACE
