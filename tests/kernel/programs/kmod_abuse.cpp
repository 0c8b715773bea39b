// SPDX-License-Identifier: Apache-2.0
// Contexts in unintended uses: mappings moved, cut, handed on and kept; signals that are not taken; set-ups that fail
// half way, ten thousand times; threads that switch, map and close each other's. As root, in a guest.
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <memory>
#include <thread>

#include "kmod_process.h"

using namespace kmod_test;

namespace {

alignas(64) std::uint64_t the_word = 0;

// ---- mappings ----

Context* sampled_context() {
  auto* context = new Context;
  CHECK_EQUAL(context->setup(usual_setup()), 0);
  CHECK(context->map() != nullptr);
  CHECK_EQUAL(context->enable(), 0);
  return context;
}

/// In shapes that the module did not make; then it still samples.
void mappings() {
  const std::unique_ptr<Context> context(sampled_context());
  const std::size_t bytes = context->status().ring_bytes;
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  auto* second = static_cast<char*>(mmap(nullptr, bytes, kBoth, MAP_SHARED, context->fd(), 0));
  CHECK(second != MAP_FAILED);
  store_until_sampled(&the_word, *context, 10);
  CHECK_EQUAL(__atomic_load_n(&reinterpret_cast<crosstalk_ibs_ring*>(second)->head, __ATOMIC_ACQUIRE) >= 10, true);
  auto* place = static_cast<char*>(mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* moved = static_cast<char*>(mremap(second, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place));
  CHECK(moved == place);
  CHECK(mremap(moved, 0, bytes, MREMAP_MAYMOVE) == MAP_FAILED);  // would be another mapping that mmap() never saw
  CHECK_EQUAL(error_of(mprotect(moved, bytes, PROT_NONE)), 0);
  CHECK_EQUAL(error_of(mprotect(moved + 4096, 4096, kBoth)), 0);
  CHECK_EQUAL(error_of(madvise(moved + 4096, 8192, MADV_DONTNEED)), 0);
  madvise(moved, bytes, MADV_REMOVE);
  madvise(moved, bytes, MADV_HUGEPAGE);
  madvise(moved, bytes, MADV_MERGEABLE);
  CHECK(mmap(moved + 4096, 4096, kBoth, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == moved + 4096);
  CHECK_EQUAL(error_of(munmap(moved + 8192, bytes - 8192)), 0);
  CHECK_EQUAL(error_of(mlock(moved, 4096)) != 0 || munlock(moved, 4096) == 0, true);
  CHECK(error_of(ftruncate(context->fd(), 0)) != 0);
  CHECK(error_of(fallocate(context->fd(), 0, 0, 4096)) != 0);
  const int read_only = open(kDevice, O_RDONLY);
  crosstalk_ibs_setup fetch = usual_setup();
  fetch.flavour = CROSSTALK_IBS_FETCH;
  CHECK_EQUAL(error_of(ioctl(read_only, CROSSTALK_IBS_IOC_SETUP, &fetch)), 0);
  CHECK(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, read_only, 0) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(nullptr, bytes, kBoth, MAP_SHARED, read_only, 0) == MAP_FAILED && errno == EACCES);
  close(read_only);
  store_until_sampled(&the_word, *context, context->status().samples + 20);
  CHECK_EQUAL(error_of(munmap(place, 2 * bytes)), 0);  // the rest of it holds the file
}

/// Pages that something else holds when file and mapping are gone: they stay those of the ring, until they are let go.
void pages_in_a_pipe() {
  constexpr std::size_t kBytes = std::size_t{4096} * 8;
  std::array<int, 2> ends{};
  CHECK_EQUAL(error_of(pipe(ends.data())), 0);
  {
    const std::unique_ptr<Context> context(sampled_context());
    store_until_sampled(&the_word, *context, 50);
    iovec pages{context->ring(), kBytes};
    CHECK_EQUAL(vmsplice(ends[1], &pages, 1, 0), static_cast<ssize_t>(kBytes));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::vector<char> text(kBytes);
  CHECK_EQUAL(read(ends[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  CHECK(reinterpret_cast<crosstalk_ibs_ring*>(text.data())->head >= 50);
  close(ends[0]);
  close(ends[1]);
}

/// The mapping outlives the descriptor, and samples come; and a child that its parent lets have the mapping outlives
/// it.
void mapping_outlives_all() {
  const pid_t parent = fork();
  if (parent == 0) {
    Context* context = sampled_context();
    crosstalk_ibs_ring* ring = context->ring();
    close(context->fd());
    const std::uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    CHECK(store_until(&the_word, [&] { return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) > head + 20; }));
    CHECK_EQUAL(error_of(madvise(ring, 4096 + 4096 * 128, MADV_DOFORK)), 0);
    if (fork() == 0) {
      usleep(300'000);
      const std::uint64_t last = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
      store_often(&the_word, 1'000'000);
      CHECK_EQUAL(__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), last);  // its own work is not in there
      _exit(failures == 0 ? 0 : 1);
    }
    _exit(failures == 0 ? 0 : 1);
  }
  CHECK_EQUAL(exit_status_of(parent), 0);
  usleep(600'000);
}

// ---- signals ----

void signals_that_are_not_taken() {
  crosstalk_ibs_setup setup = usual_setup();
  setup.signal = static_cast<unsigned>(SIGRTMIN + 4);
  std::signal(SIGRTMIN + 4, SIG_IGN);
  {
    const Context context;
    CHECK_EQUAL(context.setup(setup), 0);
    CHECK_EQUAL(context.enable(), 0);
    store_until_sampled(&the_word, context, 50);
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 4);
  std::signal(SIGRTMIN + 4, [](int) {});
  as_nobody([&] {
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_SIGPENDING, &none);
    const Context context;
    CHECK_EQUAL(context.setup(setup), 0);
    CHECK_EQUAL(context.enable(), 0);
    store_until_sampled(&the_word, context, 50);
    CHECK_EQUAL(context.disable(), 0);
    CHECK_EQUAL(context.status().signals, 0U);
    CHECK(context.status().signals_lost > 0);
  });
}

// ---- memory ----

/// "Slab:  516 kB", of /proc/meminfo; "VmPin:", of /proc/self/status.
long kilobytes(const char* path, const char* name) {
  long kb = -1;
  std::array<char, 256> line{};
  const std::string format = std::string(name) + ": %ld";
  FILE* file = std::fopen(path, "r");
  while (file != nullptr && std::fgets(line.data(), line.size(), file) != nullptr) {
    std::sscanf(line.data(), format.c_str(), &kb);
  }
  std::fclose(file);
  return kb;
}

void open_and_fail(int round) {
  const Context context;
  crosstalk_ibs_setup setup = usual_setup();
  setup.records = 32U << (round % 6);
  CHECK_EQUAL(context.setup(setup), 0);
  const Context second;  // at each of the steps that can fail
  CHECK_EQUAL(second.setup(setup), EBUSY);
  setup.flavour = CROSSTALK_IBS_FETCH;
  setup.records = 1U << 19;
  CHECK_EQUAL(second.setup(setup), EDQUOT);
  setup.records = 31;
  CHECK_EQUAL(second.setup(setup), EINVAL);
}

/// Ten thousand times; afterwards the user's share is whole, and the kernel's memory as before.
void leaks() {
  const long pinned = kilobytes("/proc/self/status", "VmPin");
  for (int round = 0; round < 1'000; ++round) {
    open_and_fail(round);
  }
  const long before = kilobytes("/proc/meminfo", "MemAvailable");
  for (int round = 0; round < 10'000; ++round) {
    open_and_fail(round);
  }
  const long lost = before - kilobytes("/proc/meminfo", "MemAvailable");
  CHECK_FOUND(lost < 10'000, std::to_string(lost) + " KiB");  // a page for each would be 40,000
  CHECK_EQUAL(kilobytes("/proc/self/status", "VmPin"), pinned);
  const Context whole;
  crosstalk_ibs_setup setup = usual_setup();
  setup.records = 1U << 18;
  CHECK_EQUAL(whole.setup(setup), 0);
}

// ---- races ----

/// Threads that switch, reset, set the pace, map and close the contexts of two threads that run, for some seconds.
void races() {
  std::array<std::atomic<int>, 4> files{-1, -1, -1, -1};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      const auto first = static_cast<std::size_t>(worker) * 2;
      while (!done) {
        for (std::size_t i = 0; i < 2; ++i) {
          const int fd = open(kDevice, O_RDWR | O_NONBLOCK);
          const int old = files.at(first + i).exchange(fd);
          if (old >= 0) {
            close(old);
          }
          crosstalk_ibs_setup setup = usual_setup();
          setup.flavour = i == 0 ? CROSSTALK_IBS_OP : CROSSTALK_IBS_FETCH;
          setup.period = 50'000;
          setup.random = 0;
          setup.records = 64;
          ioctl(fd, CROSSTALK_IBS_IOC_SETUP, &setup);
          ioctl(fd, CROSSTALK_IBS_IOC_ENABLE, 0);
        }
        store_often(&the_word, 100'000);
      }
    });
  }
  for (int breaker = 0; breaker < 4; ++breaker) {
    threads.emplace_back([&, breaker] {
      const crosstalk_ibs_period period{30'000, 10'000};
      for (std::size_t i = 0; !done; ++i) {
        const int fd = files.at(i % 4);
        ioctl(fd, i % 8 < 4 ? CROSSTALK_IBS_IOC_DISABLE : CROSSTALK_IBS_IOC_ENABLE, 0);
        ioctl(fd, breaker == 1 ? CROSSTALK_IBS_IOC_RESET : CROSSTALK_IBS_IOC_PERIOD, breaker == 1 ? nullptr : &period);
        if (breaker == 2) {
          void* place = mmap(nullptr, 4096 + 64 * 128, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
          if (place != MAP_FAILED) {
            std::memset(place, static_cast<int>(i), 4096);
            munmap(place, 4096 + 64 * 128);
          }
        }
        if (breaker == 3 && i % 50 == 0) {
          const pid_t child = fork();
          if (child == 0) {
            if (i % 100 == 0) {
              execl("/usr/bin/true", "true", nullptr);
            }
            _exit(0);
          }
          waitpid(child, nullptr, 0);
        }
      }
    });
  }
  usleep(4'000'000);
  done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& file : files) {
    close(file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_to_nobody();
  return run_checks({{"mappings", mappings},
                     {"pages_in_a_pipe", pages_in_a_pipe},
                     {"mapping_outlives_all", mapping_outlives_all},
                     {"signals_that_are_not_taken", signals_that_are_not_taken},
                     {"leaks", leaks},
                     {"races", races}},
                    argc, argv);
}
