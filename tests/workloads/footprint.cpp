// SPDX-License-Identifier: Apache-2.0
// footprint THREADS [lock|core|open]: after a second of work by so many threads beside the first, prints what
// /proc/self/status says of its memory, "VmSize VmRSS VmLck" in kB. With `lock` it has locked all of it, present and
// future, before the threads came; with `core` it ends in an abort(). With `open` it prints instead how many files it
// can open while its threads work, and how often its limit of descriptors was not what it was at first.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string status_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      return std::to_string(std::atol(line.c_str() + name.size() + 1));
    }
  }
  return "0";
}

/// Yields now and then: threads that switch often are watched in another way than others.
void work_until(const std::atomic<bool>& stop) {
  static std::atomic<unsigned long> shared{0};
  constexpr unsigned long often = 4096;
  for (unsigned long count = 0; !stop.load(std::memory_order_relaxed); ++count) {
    shared.fetch_add(1, std::memory_order_relaxed);
    if (count % often == 0) {
      std::this_thread::yield();
    }
  }
}

rlim_t descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

void open_all() {
  const rlim_t limit = descriptor_limit();
  long opened = 0;
  long moved = 0;
  while (::open("/dev/null", O_RDONLY) >= 0) {
    ++opened;
  }
  for (int i = 0; i < 100'000; ++i) {
    moved += descriptor_limit() == limit ? 0 : 1;
  }
  std::cout << opened << ' ' << moved << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  const char* what = argc > 2 ? argv[2] : "";
  if (std::strcmp(what, "lock") == 0 && ::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    std::perror("mlockall");
    return 1;
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&stop] { work_until(stop); });
  }
  std::atomic<bool> enough{false};
  std::thread clock([&enough] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    enough.store(true);
  });
  work_until(enough);
  clock.join();
  if (std::strcmp(what, "open") == 0) {
    open_all();
    std::_Exit(0);
  }
  const std::string size = status_of("VmSize");
  std::cout << size << ' ' << status_of("VmRSS") << ' ' << status_of("VmLck") << std::endl;
  if (std::strcmp(what, "core") == 0) {
    std::abort();
  }
  stop.store(true);
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
