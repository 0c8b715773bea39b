// SPDX-License-Identifier: Apache-2.0
// wait_often WHAT SECONDS: threads that do little but wait for each other, at a mutex, a condition variable or a
// barrier of OpenMP. Counts for so long, after half a second in which a recording finds its pace, and prints
// nanoseconds of elapsed time and of all threads' CPU time for each time.
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    __asm__ volatile("" ::: "memory");
  }
}

/// Puts each thread on a processor of its own; on a busy machine they might take turns on one for a while.
void stay_on(int number) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set{};
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && number-- == 0) {
      cpu_set_t one{};
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
    }
  }
}

/// Counts rounds and times them.
class Meter {
 public:
  explicit Meter(double seconds) : seconds_(seconds) {}
  /// False: enough. By one thread, after `rounds` more.
  bool goes_on(long rounds) {
    constexpr double warming_s = 0.5;
    const double now = seconds_since(start_);
    if (!counting_ && now > warming_s) {
      counting_ = true;
      begin_ = Clock::now();
      cpu_ = cpu_seconds();
      return true;
    }
    rounds_ += counting_ ? rounds : 0;
    if (now > warming_s + seconds_) {
      const double each = 1e9 / static_cast<double>(std::max(rounds_, 1L));
      std::printf("%.2f %.2f\n", seconds_since(begin_) * each, (cpu_seconds() - cpu_) * each);
      return false;
    }
    return true;
  }

 private:
  double seconds_;
  Clock::time_point start_ = Clock::now(), begin_ = start_;
  double cpu_ = 0;
  long rounds_ = 0;
  bool counting_ = false;
};

constexpr long batch = 200;

/// `threads` take a mutex, work for less than a microsecond with it and for as long without it.
void at_mutex(int threads, Meter& meter) {
  std::mutex mutex;
  std::atomic<bool> over{false};
  const auto turn = [&] {
    for (long i = 0; i < batch; ++i) {
      {
        const std::lock_guard lock(mutex);
        work(200);
      }
      work(200);
    }
  };
  std::thread other;
  if (threads > 1) {
    other = std::thread([&] {
      stay_on(1);
      while (!over) {
        turn();
      }
    });
  }
  do {
    turn();
  } while (meter.goes_on(batch));
  over = true;
  if (other.joinable()) {
    other.join();
  }
}

/// Two threads wake each other by a condition variable.
void at_condition(Meter& meter) {
  std::mutex mutex;
  std::condition_variable changed;
  bool others = false, over = false;
  std::thread other([&] {
    stay_on(1);
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return others; });
      if (over) {
        return;
      }
      others = false;
      changed.notify_one();
    }
  });
  const auto give = [&] {
    std::unique_lock lock(mutex);
    others = true;
    changed.notify_one();
    changed.wait(lock, [&] { return !others; });
  };
  do {
    for (long i = 0; i < batch; ++i) {
      give();
    }
  } while (meter.goes_on(2 * batch));  // each of them waits once
  {
    const std::lock_guard lock(mutex);
    over = others = true;
  }
  changed.notify_one();
  other.join();
}

/// Threads work for half a microsecond between barriers.
void at_barrier(Meter& meter) {
  bool on = true;
#pragma omp parallel num_threads(2)
  {
    stay_on(omp_get_thread_num());
    while (on) {
      for (long i = 0; i < batch; ++i) {
        work(200);
#pragma omp barrier
      }
#pragma omp single
      on = meter.goes_on(batch);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  Meter meter(argc > 2 ? std::atof(argv[2]) : 1);
  stay_on(0);
  if (what == "free-mutex") {
    at_mutex(1, meter);
  } else if (what == "mutex") {
    at_mutex(2, meter);
  } else if (what == "condition") {
    at_condition(meter);
  } else if (what == "barrier") {
    at_barrier(meter);
  } else {
    std::fprintf(stderr, "wait_often: usage: wait_often free-mutex|mutex|condition|barrier SECONDS\n");
    return 2;
  }
  return 0;
}
