// SPDX-License-Identifier: Apache-2.0
// Second opinion on the truths. A workload that is compiled with -fsanitize=thread reports each of its accesses to this
// file, which is linked in the sanitizer's place and applies the definitions to them, one by one, in their order:
//
//   communication i -> j: an access by j to a line whose most recent store was by i != j and came after j's own
//     previous access (or j has none). True sharing if the access overlaps a byte that i has stored since then.
//   invalidation i -> j: a store by i, no communication, to a line that j has only read since its last store.
//
// The results are printed with the truth (workload.h: accounts). Memory is shared, so that processes made by fork are
// accounted with their parent. Atomic accesses are made under a lock, so their order is exact; plain ones follow the
// call, which is as good if the program orders them itself.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "workload.h"

namespace {

constexpr std::size_t line_bytes = workload::line_bytes;
constexpr std::size_t max_parties = 12;  // threads of all processes, main included
constexpr std::size_t table_size = 1U << 16U;
constexpr std::size_t no_party = SIZE_MAX;

struct Counts {
  std::uint64_t true_sharing[max_parties][max_parties], false_sharing[max_parties][max_parties],
      invalidations[max_parties][max_parties];
};

/// Times count accesses from 1; 0 is never.
struct Line {
  std::uint64_t number;  // address / line_bytes; 0: free
  std::size_t last_storer;
  std::uint64_t last_store;
  std::uint64_t last_access[max_parties], last_read[max_parties];
  std::uint64_t stored[max_parties][line_bytes];  // when each byte was last stored
  Counts counts;
};

struct Books {
  std::atomic<std::uint32_t> holder;  // a thread; 0: nobody
  std::uint64_t now;
  pid_t party[max_parties];
  Line lines[table_size];
};

Books* books() {
  static Books* const made = [] {
    void* memory =
        mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("accountant: mmap");
      std::_Exit(1);
    }
    return static_cast<Books*>(memory);
  }();
  return made;
}

/// Before main, so before any fork.
[[gnu::constructor]] void open_books() { books(); }

/// While it lives, its thread is the only one that accounts.
class Turn {
 public:
  Turn() {
    const auto me = static_cast<std::uint32_t>(gettid());
    // Templates of the library that we use may be linked as the workload has them: with calls to here.
    nested_ = books()->holder.load(std::memory_order_relaxed) == me;
    for (std::uint32_t nobody = 0;
         !nested_ && !books()->holder.compare_exchange_weak(nobody, me, std::memory_order_acquire); nobody = 0) {
      sched_yield();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!nested_) {
      books()->holder.store(0, std::memory_order_release);
    }
  }
  [[nodiscard]] bool nested() const { return nested_; }

 private:
  bool nested_ = false;
};

std::size_t party_of(pid_t tid) {
  for (std::size_t n = 0; n < max_parties; ++n) {
    pid_t& entry = books()->party[n];
    if (entry == 0) {
      entry = tid;
    }
    if (entry == tid) {
      return n;
    }
  }
  std::fprintf(stderr, "accountant: more than %zu threads\n", max_parties);
  std::_Exit(1);
}

Line& line_at(std::uint64_t number) {
  for (std::uint64_t n = 0, at = number * 0x9e3779b97f4a7c15U; n < table_size; ++n, ++at) {
    Line& line = books()->lines[at % table_size];
    if (line.number == 0) {
      line.number = number;
      line.last_storer = no_party;
    }
    if (line.number == number) {
      return line;
    }
  }
  std::fprintf(stderr, "accountant: more than %zu lines\n", table_size);
  std::_Exit(1);
}

bool communicate(Line& line, std::size_t me, std::size_t begin, std::size_t end) {
  const std::size_t producer = line.last_storer;
  if (producer == no_party || producer == me || line.last_store < line.last_access[me]) {
    return false;
  }
  bool overlaps = false;
  for (std::size_t byte = begin; byte < end; ++byte) {
    overlaps |= line.stored[producer][byte] > line.last_access[me];
  }
  ++(overlaps ? line.counts.true_sharing : line.counts.false_sharing)[producer][me];
  return true;
}

void invalidate(Line& line, std::size_t me) {
  for (std::size_t other = 0; other < max_parties; ++other) {
    if (other != me && line.last_read[other] > line.last_store) {
      ++line.counts.invalidations[me][other];
    }
  }
}

/// One access to bytes [begin, end) of a line.
void account(std::uint64_t number, std::size_t me, std::size_t begin, std::size_t end, bool loads, bool stores) {
  Line& line = line_at(number);
  const std::uint64_t now = ++books()->now;
  const bool communicated = communicate(line, me, begin, end);
  if (stores) {
    if (!communicated) {
      invalidate(line, me);
    }
    for (std::size_t byte = begin; byte < end; ++byte) {
      line.stored[me][byte] = now;
    }
    line.last_store = now;
    line.last_storer = me;
  }
  if (loads && !stores) {
    line.last_read[me] = now;
  }
  line.last_access[me] = now;
}

void account(const Turn& turn, const volatile void* where, std::size_t bytes, bool loads, bool stores) {
  if (turn.nested()) {
    return;
  }
  const auto begin = reinterpret_cast<std::uint64_t>(where);
  const std::size_t me = party_of(gettid());
  for (std::uint64_t at = begin; at < begin + bytes;) {
    const std::uint64_t end = std::min(begin + bytes, (at / line_bytes + 1) * line_bytes);
    account(at / line_bytes, me, at % line_bytes, at % line_bytes + (end - at), loads, stores);
    at = end;
  }
}

void plain(const volatile void* where, std::size_t bytes, bool stores) {
  const Turn turn;
  account(turn, where, bytes, !stores, stores);
}

/// The atomic access that `make` makes, at its place in the order.
template <class Value, class Make>
auto atomic(volatile Value* where, bool loads, bool stores, Make make) {
  const Turn turn;
  account(turn, where, sizeof(Value), loads, stores);
  return make();
}

std::string text(const std::vector<std::int32_t>& tids, const std::vector<workload::Range>& ranges,
                 std::uint64_t (Counts::*what)[max_parties][max_parties]) {
  std::vector<std::vector<std::uint64_t>> sums(tids.size(), std::vector<std::uint64_t>(tids.size()));
  for (const Line& line : books()->lines) {
    const bool counts = std::any_of(ranges.begin(), ranges.end(), [&](const workload::Range& range) {
      const std::uint64_t address = line.number * line_bytes;
      return address + line_bytes > range.begin && address < range.begin + range.bytes;
    });
    for (std::size_t row = 0; counts && row < tids.size(); ++row) {
      for (std::size_t column = 0; column < tids.size(); ++column) {
        sums[row][column] += (line.counts.*what)[party_of(tids[row])][party_of(tids[column])];
      }
    }
  }
  return workload::matrix_text(sums);
}

}  // namespace

namespace workload {

std::string accounts(const std::vector<std::int32_t>& tids, const std::vector<Range>& ranges) {
  const Turn turn;
  return "\"accounted_true\":" + text(tids, ranges, &Counts::true_sharing) +
         ",\"accounted_false\":" + text(tids, ranges, &Counts::false_sharing) +
         ",\"accounted_invalidations\":" + text(tids, ranges, &Counts::invalidations);
}

}  // namespace workload

// ---- what the compiler calls (gcc/sanitizer.def, tsan_interface.h)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* where, unsigned long bytes) { plain(where, bytes, false); }
void __tsan_write_range(void* where, unsigned long bytes) { plain(where, bytes, true); }
// clang calls these where the program calls, or the compiler makes, their namesakes.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  plain(from, bytes, false);
  plain(to, bytes, true);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  plain(from, bytes, false);
  plain(to, bytes, true);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  plain(to, bytes, true);
  return std::memset(to, value, bytes);
}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

#define ACCOUNT_PLAIN(BYTES)                                                     \
  void __tsan_read##BYTES(void* where) { plain(where, BYTES, false); }           \
  void __tsan_write##BYTES(void* where) { plain(where, BYTES, true); }           \
  void __tsan_unaligned_read##BYTES(void* where) { plain(where, BYTES, false); } \
  void __tsan_unaligned_write##BYTES(void* where) { plain(where, BYTES, true); } \
  void __tsan_volatile_read##BYTES(void* where) { plain(where, BYTES, false); }  \
  void __tsan_volatile_write##BYTES(void* where) { plain(where, BYTES, true); }
ACCOUNT_PLAIN(1)
ACCOUNT_PLAIN(2)
ACCOUNT_PLAIN(4)
ACCOUNT_PLAIN(8)
ACCOUNT_PLAIN(16)

#define ACCOUNT_CHANGE(BITS, TYPE, NAME)                                                               \
  TYPE __tsan_atomic##BITS##_##NAME(volatile TYPE* where, TYPE value, int) {                           \
    return atomic(where, true, true, [&] { return __atomic_##NAME(where, value, __ATOMIC_SEQ_CST); }); \
  }
#define ACCOUNT_EXCHANGE_IF(BITS, TYPE, NAME)                                                                     \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile TYPE* where, TYPE* expected, TYPE value, int, int) { \
    const Turn turn;                                                                                              \
    const bool changed =                                                                                          \
        __atomic_compare_exchange_n(where, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
    account(turn, where, sizeof(TYPE), true, changed);                                                            \
    return changed ? 1 : 0;                                                                                       \
  }
#define ACCOUNT_ATOMIC(BITS, TYPE)                                                                         \
  TYPE __tsan_atomic##BITS##_load(const volatile TYPE* where, int) {                                       \
    return atomic(where, true, false, [&] { return __atomic_load_n(where, __ATOMIC_SEQ_CST); });           \
  }                                                                                                        \
  void __tsan_atomic##BITS##_store(volatile TYPE* where, TYPE value, int) {                                \
    atomic(where, false, true, [&] { __atomic_store_n(where, value, __ATOMIC_SEQ_CST); });                 \
  }                                                                                                        \
  TYPE __tsan_atomic##BITS##_exchange(volatile TYPE* where, TYPE value, int) {                             \
    return atomic(where, true, true, [&] { return __atomic_exchange_n(where, value, __ATOMIC_SEQ_CST); }); \
  }                                                                                                        \
  ACCOUNT_CHANGE(BITS, TYPE, fetch_add)                                                                    \
  ACCOUNT_CHANGE(BITS, TYPE, fetch_sub)                                                                    \
  ACCOUNT_CHANGE(BITS, TYPE, fetch_and)                                                                    \
  ACCOUNT_CHANGE(BITS, TYPE, fetch_or)                                                                     \
  ACCOUNT_CHANGE(BITS, TYPE, fetch_xor)                                                                    \
  ACCOUNT_EXCHANGE_IF(BITS, TYPE, strong)                                                                  \
  ACCOUNT_EXCHANGE_IF(BITS, TYPE, weak)
ACCOUNT_ATOMIC(8, std::uint8_t)
ACCOUNT_ATOMIC(16, std::uint16_t)
ACCOUNT_ATOMIC(32, std::uint32_t)
ACCOUNT_ATOMIC(64, std::uint64_t)
}
