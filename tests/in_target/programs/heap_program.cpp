// SPDX-License-Identifier: Apache-2.0
// Every allocating function: the block is found at its ends and in the middle, with the caller as its site;
// results, failures and errno are those of the allocator.
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "tests/in_target/guest_core.h"

namespace {

extern "C" const char __executable_start;  // NOLINT: the linker's names
extern "C" const char etext;

bool in_this_program(std::uint64_t address) {
  return address >= reinterpret_cast<std::uint64_t>(&__executable_start) &&
         address < reinterpret_cast<std::uint64_t>(&etext);
}

const auto find = GUEST(guest_find_block);
const auto blocks_made = GUEST(guest_blocks_made);

void expect_block(const void* block, std::size_t bytes, bool mapping = false) {
  CHECK(block != nullptr);
  const auto* bytes_of = static_cast<const char*>(block);
  bool first = true;
  for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
    GuestBlock found{};
    CHECK(find(bytes_of + at, &found) == 1);
    CHECK(found.begin == reinterpret_cast<std::uint64_t>(block));
    CHECK(found.bytes == bytes);
    CHECK(in_this_program(found.site));
    CHECK((found.is_mapping != 0) == mapping);
    CHECK((found.first_report != 0) == first);
    first = false;
  }
}

void the_c_functions() {
  expect_block(malloc(40), 40);
  expect_block(malloc(1), 1);
  expect_block(malloc(300'000), 300'000);
  auto* zeroed = static_cast<char*>(calloc(7, 11));
  expect_block(zeroed, 77);
  for (int i = 0; i < 77; ++i) {
    CHECK(zeroed[i] == 0);
  }
  void* grown = realloc(nullptr, 24);
  expect_block(grown, 24);
  grown = realloc(grown, 5000);
  expect_block(grown, 5000);
  grown = realloc(grown, 100);  // in place
  expect_block(grown, 100);
  CHECK(realloc(grown, 0) == nullptr);
  expect_block(reallocarray(nullptr, 10, 10), 100);
  expect_block(memalign(64, 200), 200);
  expect_block(aligned_alloc(128, 256), 256);
  expect_block(valloc(100), 100);
  expect_block(pvalloc(4096), 4096);
  void* aligned = nullptr;
  CHECK(posix_memalign(&aligned, 256, 1000) == 0);
  CHECK(reinterpret_cast<std::uint64_t>(aligned) % 256 == 0);
  expect_block(aligned, 1000);
  free(aligned);
  free(malloc(0));
}

void the_operators() {
  expect_block(::operator new(48), 48);
  expect_block(::operator new[](72), 72);
  expect_block(::operator new(49, std::nothrow), 49);
  expect_block(::operator new[](50, std::nothrow), 50);
  void* wide = ::operator new (130, std::align_val_t{64});
  CHECK(reinterpret_cast<std::uint64_t>(wide) % 64 == 0);
  expect_block(wide, 130);
  expect_block(::operator new[](131, std::align_val_t{64}), 131);
  expect_block(::operator new (132, std::align_val_t{64}, std::nothrow), 132);
  expect_block(::operator new[](133, std::align_val_t{64}, std::nothrow), 133);
  ::operator delete (wide, std::align_val_t{64});
}

/// `new[]` calls `new`, which calls malloc(), and all three are interposed: still one block.
template <class Allocate>
void expect_one(Allocate allocate) {
  const unsigned before = blocks_made();
  allocate();
  CHECK(blocks_made() == before + 1);
}

void each_block_once() {
  expect_one([] { free(malloc(40)); });
  expect_one([] { ::operator delete(::operator new(48)); });
  expect_one([] { ::operator delete[](::operator new[](72)); });
  expect_one([] { ::operator delete(::operator new(49, std::nothrow)); });
  expect_one([] { ::operator delete[](::operator new[](50, std::nothrow)); });
  constexpr std::align_val_t wide{64};
  expect_one([] { ::operator delete(::operator new(130, wide), wide); });
  expect_one([] { ::operator delete[](::operator new[](131, wide), wide); });
  expect_one([] { ::operator delete(::operator new(132, wide, std::nothrow), wide); });
  expect_one([] { ::operator delete[](::operator new[](133, wide, std::nothrow), wide); });
}

void failures() {
  volatile std::size_t huge = ~std::size_t{0} / 2;
  errno = 0;
  CHECK(malloc(huge) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(calloc(huge, 4) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(reallocarray(nullptr, huge, 4) == nullptr && errno == ENOMEM);
  void* out = nullptr;
  errno = 5;
  CHECK(posix_memalign(&out, 3, 8) == EINVAL && errno == 5);
  CHECK(::operator new(huge, std::nothrow) == nullptr);
  bool thrown = false;
  try {
    static_cast<void>(::operator new(huge));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
  errno = 7;
  free(malloc(10));
  CHECK(errno == 7);
  CHECK(mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
}

void mappings() {
  const std::size_t bytes = 1 << 20;
  GuestBlock found{};
  void* anonymous = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect_block(anonymous, bytes, true);
  CHECK(munmap(anonymous, bytes) == 0);
  CHECK(find(anonymous, &found) == 0);

  const int fd = memfd_create("heap_program", 0);
  CHECK(ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  expect_block(shared, bytes, true);
  void* moved = mremap(shared, bytes, 2 * bytes, MREMAP_MAYMOVE);
  expect_block(moved, 2 * bytes, true);
  void* private_file = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(find(private_file, &found) == 0 || found.begin != reinterpret_cast<std::uint64_t>(private_file));
  void* reserved = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(find(reserved, &found) == 0 || found.begin != reinterpret_cast<std::uint64_t>(reserved));
}

/// Neighbours of one size stay distinct, and the newest owner of memory is named.
void many() {
  std::vector<char*> blocks;
  blocks.reserve(2000);
  for (int i = 0; i < 2000; ++i) {
    blocks.push_back(static_cast<char*>(malloc(24)));
  }
  for (char* block : blocks) {
    expect_block(block, 24);
  }
  auto* old_block = static_cast<char*>(malloc(3000));
  free(old_block);
  auto* small = static_cast<char*>(malloc(700));
  expect_block(small, 700);
  free(small);
}

/// Blocks of many threads, each in an arena of its own, are all found once the full table is in use. A second arena
/// brings it into use; blocks that are allocated at that moment may be lost.
void threads() {
  std::thread([] { free(malloc(100)); }).join();
  std::vector<std::thread> all;
  all.reserve(8);
  for (int t = 0; t < 8; ++t) {
    all.emplace_back([] {
      for (std::size_t i = 1; i < 2000; ++i) {
        auto* block = static_cast<char*>(malloc(i));
        memset(block, 1, i);
        GuestBlock found{};
        CHECK(find(block, &found) == 1 && found.bytes == i);
        free(block);
      }
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
}

/// Left-out blocks are never mistaken for earlier ones at their place.
void over_the_threshold_and_back() {
  GuestBlock found{};
  GUEST(guest_track_blocks)(1, 0);
  char* early = static_cast<char*>(malloc(48));
  char* large = static_cast<char*>(malloc(2000));
  GUEST(guest_track_blocks)(1, 512);
  CHECK(find(early, &found) == 1 && found.bytes == 48);  // it lives on
  CHECK(find(large + 1999, &found) == 1 && found.bytes == 2000);
  large = static_cast<char*>(realloc(large, 100));  // in place
  CHECK(find(large + 50, &found) == 0);
  large = static_cast<char*>(realloc(large, 3000));
  CHECK(find(large + 50, &found) == 1 && found.bytes == 3000);
  free(large);
  for (int i = 0; i < 100; ++i) {  // some lie where it was
    char* small = static_cast<char*>(malloc(400));
    CHECK(find(small, &found) == 0 && find(small + 399, &found) == 0);
  }
  for (int i = 0; i < 100; ++i) {  // a listed block's place for one of each operator that is not
    void* listed = ::operator new(600);
    expect_block(listed, 600);
    ::operator delete(listed);
    void* small = i % 2 == 0 ? ::operator new(500) : ::operator new[](500, std::nothrow);
    CHECK(find(small, &found) == 0);
    ::operator delete(small);
  }
  GUEST(guest_track_blocks)(1, 0);
  expect_block(malloc(400), 400);
  expect_block(::operator new(500), 500);
}

void thresholds_and_forks() {
  GuestBlock found{};
  GUEST(guest_track_blocks)(1, 1000);
  char* small = static_cast<char*>(malloc(600));
  char* large = static_cast<char*>(malloc(1600));
  CHECK(find(small, &found) == 0 || found.bytes != 600);
  CHECK(find(large, &found) == 1 && found.bytes == 1600 && found.first_report == 1);
  CHECK(find(large, &found) == 1 && found.first_report == 0);
  GUEST(guest_blocks_after_fork)();
  CHECK(find(large, &found) == 1 && found.first_report == 1);
  GUEST(guest_track_blocks)(0, 0);
  large = static_cast<char*>(malloc(2600));
  CHECK(find(large, &found) == 0 || found.bytes != 2600);
}

}  // namespace

int main() {
  the_c_functions();
  the_operators();
  each_block_once();
  failures();
  mappings();
  many();
  threads();
  over_the_threshold_and_back();
  thresholds_and_forks();
  return 0;
}
