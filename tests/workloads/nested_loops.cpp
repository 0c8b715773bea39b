// SPDX-License-Identifier: Apache-2.0
// Nests of loops whose traffic between caches is known: a stencil and a product of matrices, each whole and in blocks.
// Each also goes through simulated caches (LRU, write-back), which count the bytes that a sweep moves.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "counted_loops.h"
#include "workload.h"

namespace {

using workload::Flags;
using workload::thread_seconds;
using workload::Truth;

constexpr std::uint64_t line_bytes = 64;

/// A cache of sets of lines, the least recently used of which makes room.
class Cache {
 public:
  Cache(std::uint64_t kib, std::uint32_t ways, Cache* next) : ways_(ways), next_(next) {
    sets_.resize(kib * 1024 / line_bytes / ways, std::vector<Line>(ways));
  }
  void access(std::uint64_t line, bool store) {
    std::vector<Line>& set = sets_[line % sets_.size()];
    std::uint32_t at = 0;
    while (at < ways_ && set[at].number != line) {
      ++at;
    }
    if (at == ways_) {
      at = ways_ - 1;
      replace(set[at], line);
    }
    Line used = set[at];
    used.dirty = used.dirty || store;
    for (; at > 0; --at) {
      set[at] = set[at - 1];
    }
    set[0] = used;
  }
  /// Bytes that came from the next level or went there.
  std::uint64_t moved_bytes = 0;

 private:
  struct Line {
    std::uint64_t number = UINT64_MAX;
    bool dirty = false;
  };
  void replace(Line& victim, std::uint64_t line) {
    moved_bytes += victim.dirty ? 2 * line_bytes : line_bytes;
    if (next_ != nullptr) {
      if (victim.dirty) {
        next_->access(victim.number, true);
      }
      next_->access(line, false);
    }
    victim = {line, false};
  }

  std::uint32_t ways_;
  Cache* next_;
  std::vector<std::vector<Line>> sets_;
};

struct Caches {
  Cache l3, l2, l1;
  Caches(std::uint64_t l1_kib, std::uint64_t l2_kib, std::uint64_t l3_kib)
      : l3(l3_kib, 16, nullptr), l2(l2_kib, 16, &l3), l1(l1_kib, 12, &l2) {}
};

/// Numbers in memory.
struct Direct {
  static double load(const double& from) { return from; }
  static void store(double& to, double value) { to = value; }
};

/// The same through simulated caches.
struct Simulated {
  static inline Caches* caches = nullptr;
  static void touch(const double& number, bool store) {
    caches->l1.access(reinterpret_cast<std::uintptr_t>(&number) / line_bytes, store);
  }
  static double load(const double& from) {
    touch(from, false);
    return from;
  }
  static void store(double& to, double value) {
    touch(to, true);
    to = value;
  }
};

struct Square {
  explicit Square(std::size_t rows, std::size_t columns) : columns(columns), numbers(rows * columns, 1e-9) {}
  double& at(std::size_t row, std::size_t column) { return numbers[row * columns + column]; }
  std::size_t columns;
  std::vector<double> numbers;
};

struct Grids {
  static constexpr std::size_t rows = 514, columns = 8192, side = 512, block = 512, tile = 64;
  Square from{rows, columns}, to{rows, columns};
  Square a{side, side}, b{side, side}, c{side, side};
};

template <class Access>
[[gnu::always_inline]] inline void average(Grids& g, std::size_t row, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    Access::store(g.to.at(row, i), 0.25 * (Access::load(g.from.at(row, i - 1)) + Access::load(g.from.at(row, i + 1)) +
                                           Access::load(g.from.at(row - 1, i)) + Access::load(g.from.at(row + 1, i))));
  }
}

template <class Access>
[[gnu::noinline]] void stencil(Grids& g) {
  for (std::size_t row = 1; row + 1 < Grids::rows; ++row) {
    average<Access>(g, row, 1, Grids::columns - 1);
  }
}

template <class Access>
[[gnu::noinline]] void blocked_stencil(Grids& g) {
  for (std::size_t begin = 1; begin + 1 < Grids::columns; begin += Grids::block) {
    const std::size_t end = std::min(begin + Grids::block, Grids::columns - 1);
    for (std::size_t row = 1; row + 1 < Grids::rows; ++row) {
      average<Access>(g, row, begin, end);
    }
  }
}

template <class Access>
[[gnu::always_inline]] inline void add_row(Grids& g, std::size_t i, std::size_t k, std::size_t begin, std::size_t end) {
  const double factor = Access::load(g.a.at(i, k));
  for (std::size_t j = begin; j < end; ++j) {
    Access::store(g.c.at(i, j), Access::load(g.c.at(i, j)) + factor * Access::load(g.b.at(k, j)));
  }
}

template <class Access>
[[gnu::noinline]] void product(Grids& g) {
  for (std::size_t i = 0; i < Grids::side; ++i) {
    for (std::size_t k = 0; k < Grids::side; ++k) {
      add_row<Access>(g, i, k, 0, Grids::side);
    }
  }
}

template <class Access>
[[gnu::noinline]] void blocked_product(Grids& g) {
  for (std::size_t k0 = 0; k0 < Grids::side; k0 += Grids::tile) {
    for (std::size_t j0 = 0; j0 < Grids::side; j0 += Grids::tile) {
      for (std::size_t i = 0; i < Grids::side; ++i) {
        for (std::size_t k = k0; k < k0 + Grids::tile; ++k) {
          add_row<Access>(g, i, k, j0, j0 + Grids::tile);
        }
      }
    }
  }
}

template <void (*nest)(Grids&)>
std::uint64_t times(Grids& grids, std::uint64_t runs) {
  for (std::uint64_t run = 0; run < runs; ++run) {
    nest(grids);
  }
  return runs;
}

struct Nest {
  const char* name;
  std::uint64_t (*run)(Grids&, std::uint64_t runs);
  void (*simulate)(Grids&);
  double flops;  // of a run
};

const std::array<Nest, 4> nests = {{
    {"stencil", times<stencil<Direct>>, stencil<Simulated>, 4.0 * (Grids::rows - 2) * (Grids::columns - 2)},
    {"blocked_stencil", times<blocked_stencil<Direct>>, blocked_stencil<Simulated>,
     4.0 * (Grids::rows - 2) * (Grids::columns - 2)},
    {"product", times<product<Direct>>, product<Simulated>, 2.0 * Grids::side* Grids::side* Grids::side},
    {"blocked_product", times<blocked_product<Direct>>, blocked_product<Simulated>,
     2.0 * Grids::side* Grids::side* Grids::side},
}};

const Nest& chosen(const Flags& flags) {
  for (const Nest& nest : nests) {
    if (flags.word("--only") == nest.name) {
      return nest;
    }
  }
  flags.refuse("there is no such nest");
}

/// Bytes for each operation that a run moves when another one was before.
std::string simulated(Grids& grids, const Nest& nest, const Flags& flags) {
  const auto kib = [&](const char* name) { return static_cast<std::uint64_t>(flags.integer(name)); };
  const auto caches = std::make_unique<Caches>(kib("--l1"), kib("--l2"), kib("--l3"));
  Simulated::caches = caches.get();
  nest.simulate(grids);
  const std::array<std::uint64_t, 3> before = {caches->l1.moved_bytes, caches->l2.moved_bytes, caches->l3.moved_bytes};
  nest.simulate(grids);
  const auto each = [&](const Cache& cache, std::uint64_t until) {
    return static_cast<double>(cache.moved_bytes - until) / nest.flops;
  };
  char text[200];
  std::snprintf(text, sizeof text, R"("bytes_a_flop":{"l2":%.6g,"l3":%.6g,"memory":%.6g})", each(caches->l1, before[0]),
                each(caches->l2, before[1]), each(caches->l3, before[2]));
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("nested_loops", "nests of loops whose traffic between caches is known");
  flags.number("--seconds", 2, 0.1, 3600, "CPU time of the thread")
      .number("--l1", 48, 1, 1048576, "KiB of the simulated caches")
      .number("--l2", 1024, 1, 1048576, "of level 2")
      .number("--l3", 32768, 1, 1048576, "of level 3");
  std::vector<std::string> names;
  for (const Nest& nest : nests) {
    names.emplace_back(nest.name);
  }
  flags.choice("--only", names, "the nest to run").choice("--print", {"truth", "traffic"}, "traffic: simulate alone");
  flags.parse(argc, argv);
  const Nest& nest = chosen(flags);
  const auto grids = std::make_unique<Grids>();
  if (flags.word("--print") == "traffic") {
    std::printf("{%s}\n", simulated(*grids, nest, flags).c_str());
    return 0;
  }
  const double begin = thread_seconds();
  const std::vector<workload::CountedLoop<Grids>> loops = {{nest.name, nest.run, 1, nest.flops, -1, -1}};
  const std::string counted = workload::run_counted(*grids, loops, flags.real("--seconds"), 0);
  Truth truth("nested_loops", 1);
  truth.file = __FILE_NAME__;
  truth.print(thread_seconds() - begin, counted);
}
