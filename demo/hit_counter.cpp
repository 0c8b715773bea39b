// SPDX-License-Identifier: Apache-2.0
// A small server's statistics, as they are often written: each worker has its own counters in an array, so that no lock
// is needed. Two workers' counters share a cache line, which makes the program several times slower than necessary:
// false sharing in `worker_statistics`. One field, `latest`, is shared on purpose.
//
// `hit_counter --padded` keeps the workers' counters apart.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int workers = 4;
constexpr std::uint64_t requests_each = 25'000'000;

struct WorkerStatistics {
  std::uint64_t requests = 0;
  std::uint64_t bytes_sent = 0;
};

struct alignas(128) PaddedStatistics : WorkerStatistics {};

alignas(128) WorkerStatistics worker_statistics[workers];
PaddedStatistics padded_statistics[workers];

struct alignas(128) Server {
  std::uint64_t latest = 0;
};
Server server;

std::uint64_t next_size(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> 48U;
}

void serve(int worker, WorkerStatistics& statistics) {
  std::uint64_t state = static_cast<std::uint64_t>(worker) + 1;
  for (std::uint64_t n = 0; n < requests_each; ++n) {
    const std::uint64_t size = next_size(state);
    __atomic_fetch_add(&statistics.requests, 1, __ATOMIC_RELAXED);  // atomic, for a status page may read it
    __atomic_fetch_add(&statistics.bytes_sent, size, __ATOMIC_RELAXED);
    if (n % 256 == 0) {
      __atomic_store_n(&server.latest, n, __ATOMIC_RELAXED);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool padded = argc == 2 && std::string_view(argv[1]) == "--padded";
  if (argc > 1 && !padded) {
    std::fprintf(stderr, "hit_counter: usage: hit_counter [--padded]; found '%s'\n", argv[1]);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> crew;
  for (int worker = 0; worker < workers; ++worker) {
    WorkerStatistics& statistics = padded ? padded_statistics[worker] : worker_statistics[worker];
    crew.emplace_back([worker, &statistics] { serve(worker, statistics); });
  }
  for (std::thread& thread : crew) {
    thread.join();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu requests in %.2f s\n", static_cast<unsigned long long>(workers * requests_each), took.count());
}
