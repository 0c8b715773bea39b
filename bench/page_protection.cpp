// SPDX-License-Identifier: Apache-2.0
// Protects a page of its own from stores, by userfaultfd, and measures how the next store is told. Two threads wait for
// a word of command; one of them stores to a random byte of the page each round. Prints one line of JSON.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t page_bytes = 4096, huge_bytes = 2 << 20;
constexpr int stop = -1, idle = -2;

[[noreturn]] void give_up(const char* what) {
  std::printf("{\"failed\": \"%s: %s\"}\n", what, std::strerror(errno));
  std::exit(0);
}

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// A userfaultfd with the features that tell who stores where; -1: refused.
int open_uffd(int flags) {
  const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags));
  if (fd < 0) {
    return -1;
  }
  uffdio_api api{UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_EXACT_ADDRESS, 0};
  if (ioctl(fd, UFFDIO_API, &api) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

char* pages(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    give_up("mmap");
  }
  return static_cast<char*>(memory);
}

bool watch(int fd, const char* begin, std::size_t bytes) {
  uffdio_register range{{reinterpret_cast<std::uint64_t>(begin), bytes}, UFFDIO_REGISTER_MODE_WP, 0};
  return ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

bool protect(int fd, const char* page, bool on) {
  uffdio_writeprotect range{{reinterpret_cast<std::uint64_t>(page), page_bytes},
                            on ? static_cast<std::uint64_t>(UFFDIO_WRITEPROTECT_MODE_WP) : 0};
  return ioctl(fd, UFFDIO_WRITEPROTECT, &range) == 0;
}

/// A thread that stores when it is told to.
struct Storer {
  explicit Storer(char* its_page) : page(its_page), thread([this] { run(); }) {}
  ~Storer() {
    order.store(stop);
    thread.join();
  }
  Storer(const Storer&) = delete;
  Storer& operator=(const Storer&) = delete;

  void run() {
    tid.store(static_cast<int>(syscall(SYS_gettid)));
    for (int offset = idle; offset != stop; offset = order.load()) {
      if (offset == idle) {
        std::this_thread::yield();
        continue;
      }
      begun = Clock::now();
      __atomic_store_n(page + offset, 1, __ATOMIC_RELAXED);
      ended = Clock::now();
      order.store(idle);
    }
  }

  char* page;
  std::atomic<int> order{idle}, tid{0};
  Clock::time_point begun, ended;  // of its last store
  std::thread thread;
};

struct Round {
  double arm_us = 0, message_us = 0, resume_us = 0;
  bool right_thread = false, right_byte = false;
};

Round one_round(int fd, Storer& storer, int offset) {
  Round round;
  const auto arming = Clock::now();
  if (!protect(fd, storer.page, true)) {
    give_up("UFFDIO_WRITEPROTECT");
  }
  round.arm_us = us_since(arming);
  storer.order.store(offset);
  pollfd ready{fd, POLLIN, 0};
  uffd_msg message{};
  while (read(fd, &message, sizeof message) != sizeof message) {
    poll(&ready, 1, 1000);
  }
  const auto told = Clock::now();
  round.right_thread =
      message.event == UFFD_EVENT_PAGEFAULT && static_cast<int>(message.arg.pagefault.feat.ptid) == storer.tid.load();
  round.right_byte = message.arg.pagefault.address == reinterpret_cast<std::uint64_t>(storer.page) + offset;
  const auto resuming = Clock::now();
  if (!protect(fd, storer.page, false)) {
    give_up("UFFDIO_WRITEPROTECT");
  }
  while (storer.order.load() != idle) {
    std::this_thread::yield();
  }
  round.message_us = std::chrono::duration<double, std::micro>(told - storer.begun).count();
  round.resume_us = std::chrono::duration<double, std::micro>(storer.ended - resuming).count();
  return round;
}

std::string listed(const std::vector<Round>& rounds, double Round::*figure) {
  std::ostringstream text;
  for (const Round& round : rounds) {
    text << (text.tellp() > 0 ? ", " : "") << round.*figure;
  }
  return "[" + text.str() + "]";
}

/// True if a load from the protected page is told.
bool tells_loads(int fd, const char* page) {
  protect(fd, page, true);
  const auto value = __atomic_load_n(page, __ATOMIC_RELAXED);
  pollfd ready{fd, POLLIN, 0};
  const bool told = poll(&ready, 1, 20) > 0;
  protect(fd, page, false);
  return told || value > 1;
}

/// Tells whether a read() into the protected page "waits" for its release, or fails.
std::string kernels_store(int flags) {
  const int fd = open_uffd(flags);
  char* const page = pages(page_bytes);
  page[0] = 0;
  if (fd < 0 || !watch(fd, page, page_bytes) || !protect(fd, page, true)) {
    return "refused";
  }
  std::string outcome;
  std::thread reader([&] {
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    outcome = read(zero, page, 8) == 8 ? "waits" : std::strerror(errno);
    close(zero);
  });
  pollfd ready{fd, POLLIN, 0};
  const bool told = poll(&ready, 1, 200) > 0;
  protect(fd, page, false);
  reader.join();
  close(fd);
  return told || outcome != "waits" ? outcome : "passes untold";
}

/// True if a page of initialised variables can be protected, which is a private mapping of a file.
bool protects_file_pages(int fd) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* const memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    give_up("mapping a file");
  }
  std::memset(memory, 1, 1);
  return watch(fd, static_cast<char*>(memory), page_bytes);
}

std::size_t huge_kb() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string name;
  std::size_t kb = 0;
  while (file >> name && name != "AnonHugePages:") {
  }
  file >> kb;
  return kb;
}

/// Huge pages, in KiB, before a page in one of them is protected and after.
std::pair<std::size_t, std::size_t> splitting() {
  const int fd = open_uffd(0);
  char* memory = pages(2 * huge_bytes);
  memory += huge_bytes - reinterpret_cast<std::uintptr_t>(memory) % huge_bytes;
  madvise(memory, huge_bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, huge_bytes);
  const std::size_t before = huge_kb();
  if (fd < 0 || !watch(fd, memory, huge_bytes) || !protect(fd, memory, true)) {
    give_up("protecting a part of a huge page");
  }
  const std::size_t after = huge_kb();
  close(fd);
  return {before, after};
}

}  // namespace

int main(int count, char** arguments) {
  const int wanted = count > 1 ? std::atoi(arguments[1]) : 500;
  const int fd = open_uffd(0);
  if (fd < 0) {
    give_up("userfaultfd");
  }
  char* const page = pages(page_bytes);
  std::fill_n(page, page_bytes, 0);
  if (!watch(fd, page, page_bytes)) {
    give_up("UFFDIO_REGISTER");
  }
  std::vector<Round> rounds;
  {
    Storer storers[] = {Storer(page), Storer(page)};
    while (storers[0].tid.load() == 0 || storers[1].tid.load() == 0) {
      std::this_thread::yield();
    }
    std::mt19937 random(1);
    for (int i = 0; i < wanted; ++i) {
      rounds.push_back(one_round(fd, storers[random() % 2], static_cast<int>(random() % page_bytes)));
    }
  }
  const auto right = [&](bool Round::*what) {
    return std::count_if(rounds.begin(), rounds.end(), [&](const Round& round) { return round.*what; });
  };
  const bool loads = tells_loads(fd, page);
  const bool file_pages = protects_file_pages(fd);
  close(fd);
  const auto [before, after] = splitting();
  std::printf(
      "{\"rounds\": %zu, \"right_thread\": %td, \"right_byte\": %td, \"loads\": %s, \"file_pages\": %s, \"kernel\": "
      "\"%s\", "
      "\"kernel_user_mode_only\": \"%s\", \"huge_kb\": [%zu, %zu], \"arm_us\": %s, \"message_us\": %s, \"resume_us\": "
      "%s}\n",
      rounds.size(), right(&Round::right_thread), right(&Round::right_byte), loads ? "true" : "false",
      file_pages ? "true" : "false", kernels_store(0).c_str(), kernels_store(UFFD_USER_MODE_ONLY).c_str(), before,
      after, listed(rounds, &Round::arm_us).c_str(), listed(rounds, &Round::message_us).c_str(),
      listed(rounds, &Round::resume_us).c_str());
  return 0;
}
