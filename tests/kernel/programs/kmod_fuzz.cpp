// SPDX-License-Identifier: Apache-2.0
// Calls at random, from threads that share some contexts, for a number of seconds. The kernel's log shows the faults;
// here calls must only return errnos that the interface knows.
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "kmod_context.h"

using namespace kmod_test;

namespace {

constexpr int kFiles = 12;
constexpr int kThreads = 4;
const std::set<int> kKnown = {0,     EPERM,  EACCES, EFAULT, EINVAL, ERANGE, EOPNOTSUPP, EBUSY, ENXIO,
                              ESRCH, EDQUOT, ENOMEM, ENOTTY, EAGAIN, EINTR,  EBADF,      ESPIPE};

std::array<std::atomic<int>, kFiles> files;
std::array<std::atomic<std::uint64_t>, 32> calls;
alignas(64) std::uint64_t the_word = 0;

/// True for signals that end a faulty program, and for those that the C library keeps for itself.
bool is_reserved(int number) {
  return (number >= 32 && number < SIGRTMIN) || number == SIGSEGV || number == SIGBUS || number == SIGILL ||
         number == SIGFPE || number == SIGTRAP || number == SIGABRT;
}

class Fuzzer {
 public:
  explicit Fuzzer(unsigned seed) : random_(seed) {}

  void step() {
    const unsigned action = pick(16);
    ++calls[action];
    const int fd = files[pick(kFiles)];
    switch (action) {
      case 0:
        return reopen();
      case 1:
        return known(ioctl(fd, CROSSTALK_IBS_IOC_SETUP, random_setup()));
      case 2:
        return known(ioctl(fd, CROSSTALK_IBS_IOC_ENABLE, 0));
      case 3:
        return known(ioctl(fd, CROSSTALK_IBS_IOC_DISABLE, 0));
      case 4:
        return known(ioctl(fd, CROSSTALK_IBS_IOC_RESET, 0));
      case 5:
        return known(ioctl(fd, CROSSTALK_IBS_IOC_STATUS, &page_));
      case 6:
        return known(ioctl(fd, random_(), random_pointer()));
      case 7:
        return known(ioctl(fd, _IOC(pick(4), CROSSTALK_IBS_MAGIC, pick(8), pick(200)), random_pointer()));
      case 8:
        return map(fd);
      case 9:
        return known(read(fd, random_pointer(), pick(100'000)));
      case 10:
        return scribble();
      case 11:
        return wait_for(fd);
      case 12:
        return duplicate(fd);
      case 13:
        return follow(fd);
      case 14:
        return change_period(fd);
      default:
        return store_often(&the_word, 1 + pick(100'000));
    }
  }

  ~Fuzzer() { unmap(); }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  static void known(long result) {
    const int error = error_of(result);
    CHECK_FOUND(kKnown.count(error) == 1, std::strerror(error));
  }

  void reopen() {
    const int fd = open(kDevice, O_RDWR | (pick(4) == 0 ? 0 : O_NONBLOCK));
    const int old = files[pick(kFiles)].exchange(fd);
    if (old >= 0) {
      close(old);
    }
  }

  /// Mostly valid with one or two fields at random.
  const crosstalk_ibs_setup* random_setup() {
    setup_ = usual_setup();
    setup_.flavour = pick(2);
    setup_.records = 1U << pick(13);
    setup_.period = 20'000 + pick(2'000'000);
    setup_.random = pick(4) == 0 ? pick(100'000) : 0;
    setup_.signal = pick(3) == 0 ? static_cast<unsigned>(SIGUSR1) : 0;
    setup_.watermark = pick(40);
    setup_.flags = pick(32) & (CROSSTALK_IBS_MEMORY_ONLY | CROSSTALK_IBS_KERNEL | CROSSTALK_IBS_PHYSICAL);
    if (pick(3) == 0) {
      auto* words = reinterpret_cast<std::uint32_t*>(&setup_);
      words[pick(sizeof(setup_) / 4)] = pick(2) == 0 ? static_cast<unsigned>(random_()) : pick(256);
    }
    if (is_reserved(static_cast<int>(setup_.signal))) {
      setup_.signal = SIGUSR2;
    }
    return &setup_;
  }

  /// One of our own threads or processes, by the memory of one of them.
  void follow(int fd) {
    const int memory = open(pick(2) == 0 ? "/proc/self/mem" : "/proc/1/mem", O_RDONLY | O_CLOEXEC);
    const crosstalk_ibs_follow wanted{sizeof(wanted), static_cast<int>(getpid() + pick(8)),
                                      pick(8) == 0 ? static_cast<int>(pick(30)) : memory, 0, 0};
    known(ioctl(fd, CROSSTALK_IBS_IOC_FOLLOW, &wanted));
    close(memory);
  }

  void change_period(int fd) {
    const crosstalk_ibs_period wanted{20'000 + pick(2'000'000), pick(2) == 0 ? pick(100'000) : 0};
    known(ioctl(fd, CROSSTALK_IBS_IOC_PERIOD, &wanted));
  }

  void* random_pointer() {
    switch (pick(5)) {
      case 0:
        return nullptr;
      case 1:
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a pointer to anywhere is what is wanted
        return reinterpret_cast<void*>((static_cast<std::uint64_t>(random_()) << 32) | random_());
      case 2:
        return mapped_ != nullptr ? mapped_ : page_.data();
      default:
        return page_.data();
    }
  }

  void unmap() {
    if (mapped_ != nullptr) {
      munmap(mapped_, bytes_);
      mapped_ = nullptr;
    }
  }

  void map(int fd) {
    unmap();
    crosstalk_ibs_status status{};
    known(ioctl(fd, CROSSTALK_IBS_IOC_STATUS, &status));
    bytes_ = pick(4) == 0 ? std::size_t{4096} * (1 + pick(40)) : status.ring_bytes;
    void* place = mmap(nullptr, bytes_, static_cast<int>(pick(8)), pick(4) == 0 ? MAP_PRIVATE : MAP_SHARED, fd,
                       pick(8) == 0 ? 4096 * pick(5) : 0);
    if (place != MAP_FAILED) {
      mapped_ = static_cast<char*>(place);
      writable_ = mprotect(mapped_, bytes_, PROT_READ | PROT_WRITE) == 0;
    }
  }

  void scribble() {
    if (mapped_ == nullptr || !writable_) {
      return;
    }
    for (int i = 0; i < 20; ++i) {
      reinterpret_cast<std::uint64_t*>(mapped_)[pick(pick(2) == 0 ? 32 : 512)] = random_();
    }
  }

  void wait_for(int fd) {
    pollfd poll_fd{fd, static_cast<short>(random_()), 0};
    known(poll(&poll_fd, 1, static_cast<int>(pick(3))));
  }

  /// Another descriptor of the same context, in another place; and a child that holds it for a moment.
  void duplicate(int fd) {
    const int old = files[pick(kFiles)].exchange(fd < 0 ? -1 : dup(fd));
    if (old >= 0) {
      close(old);
    }
    if (pick(50) == 0) {
      const pid_t child = fork();
      if (child == 0) {
        ioctl(fd, CROSSTALK_IBS_IOC_ENABLE, 0);
        store_often(&the_word, 100'000);
        _exit(0);
      }
      if (child > 0) {
        waitpid(child, nullptr, 0);
      }
    }
  }

  std::mt19937 random_;
  crosstalk_ibs_setup setup_{};
  alignas(64) std::array<char, 1 << 17> page_{};
  char* mapped_ = nullptr;
  std::size_t bytes_ = 0;
  bool writable_ = false;
};

/// A signal to each thread now and then: calls that sleep are interrupted, also those that nothing else would wake.
void interrupt_all() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    syscall(SYS_tgkill, getpid(), std::atoi(task.path().filename().c_str()), SIGUSR2);
  }
}

/// Threads come and go, so that contexts outlive them.
void run_threads(double seconds, unsigned seed) {
  const double end = seconds_of(CLOCK_MONOTONIC) + seconds;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([end, seed, i] {
      for (unsigned round = 0; seconds_of(CLOCK_MONOTONIC) < end; ++round) {
        std::thread([&] {
          auto fuzzer = std::make_unique<Fuzzer>(seed + 1000 * i + 7919 * round);
          for (int step = 0; step < 300; ++step) {
            fuzzer->step();
          }
        }).join();
      }
    });
  }
  std::atomic<bool> done{false};
  std::thread interrupter([&done] {
    while (!done) {
      usleep(50'000);
      interrupt_all();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  interrupter.join();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 60;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  struct sigaction action {};  // without SA_RESTART
  action.sa_handler = [](int) {};
  for (int number = 1; number <= SIGRTMAX; ++number) {  // the module may be asked for any of them
    if (!is_reserved(number)) {
      sigaction(number, &action, nullptr);
    }
  }
  for (auto& file : files) {
    file = open(kDevice, O_RDWR | O_NONBLOCK);
    CHECK(file >= 0);
  }
  run_threads(seconds, seed);
  std::uint64_t sum = 0;
  for (const auto& count : calls) {
    sum += count;
  }
  std::printf("%.0f s, seed %u: %llu calls\n", seconds, seed, static_cast<unsigned long long>(sum));
  return failures == 0 ? 0 : 1;
}
