// SPDX-License-Identifier: Apache-2.0
// Threads mark their work, and time it by their own clocks. One JSON line: for each thread and region, by path, its
// entries, and its elapsed and CPU time in s.
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "include/crosstalk/region.h"
#include "workload.h"

namespace {

using workload::Flags;

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Sums {
  long entries = 0;
  double elapsed = 0, cpu = 0;
};
struct alignas(workload::line_bytes) Thread {
  long tid = 0;
  std::map<std::string, Sums> regions;
};

/// Times a region from outside of its marks.
class Timed {
 public:
  Timed(Thread& thread, const char* path) : sums_(thread.regions[path]) {}
  ~Timed() {
    ++sums_.entries;
    sums_.elapsed += now(CLOCK_MONOTONIC) - elapsed_;
    sums_.cpu += now(CLOCK_THREAD_CPUTIME_ID) - cpu_;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Sums& sums_;
  double elapsed_ = now(CLOCK_MONOTONIC), cpu_ = now(CLOCK_THREAD_CPUTIME_ID);
};

void compute(double seconds) {
  for (const double begin = now(CLOCK_THREAD_CPUTIME_ID); now(CLOCK_THREAD_CPUTIME_ID) - begin < seconds;) {
    for (int i = 0; i < 200; ++i) {
      __builtin_ia32_pause();
    }
  }
}

std::mutex lock;

/// "step": computes, sleeps, and holds a lock that the others want.
void step(Thread& me, double share) {
  const Timed timed(me, "step");
  const crosstalk::Region region("step");
  {
    const Timed inner(me, "step > compute");
    const crosstalk::Region computing("compute");
    compute(0.008 * share);
  }
  {
    const Timed inner(me, "step > sleep");
    crosstalk_begin("sleep");
    usleep(3000);
    crosstalk_end();
  }
  const Timed inner(me, "step > locked");
  const crosstalk::Region locked("locked");
  const std::lock_guard<std::mutex> guard(lock);
  compute(0.002);
}

void work(Thread& me, int rounds, double share) {
  me.tid = syscall(SYS_gettid);
  for (int i = 0; i < rounds; ++i) {
    step(me, share);
  }
  const Timed timed(me, "ticks");
  const crosstalk::Region region("ticks");
  for (int i = 0; i < 20000; ++i) {
    const crosstalk::Region tick("tick");
  }
  me.regions["ticks > tick"].entries = 20000;
}

// ----------------------------------------------------------------------------------------- Marks that do not match

jmp_buf back;

__attribute__((noinline)) void leave_by_jump() {
  crosstalk_begin("left");
  compute(0.02);
  longjmp(back, 1);
}

void nest(int depth) {
  const crosstalk::Region region("deep");
  if (depth > 1) {
    nest(depth - 1);
  }
}

/// Each of these leaves marks that do not match, or more than there is room for; later regions are measured as usual.
void misuse(Thread& me) {
  me.tid = syscall(SYS_gettid);
  crosstalk_end();
  if (setjmp(back) == 0) {
    leave_by_jump();
  }
  {
    const Timed timed(me, "after");
    const crosstalk::Region region("after");
    compute(0.1);
  }
  nest(40);
  {
    const crosstalk::Region region("in the parent");
    const pid_t child = fork();
    if (child == 0) {
      crosstalk_end();  // not open here
      {
        const crosstalk::Region own("in the child");
        compute(0.05);
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  try {
    const crosstalk::Region region("thrown");
    throw 1;
  } catch (int) {
  }
  const crosstalk::Region null(nullptr);
  crosstalk_begin("open at the end");
  for (int i = 0; i < 400; ++i) {
    const crosstalk::Region region(("number " + std::to_string(i)).c_str());
  }
}

void print(const std::vector<Thread>& threads) {
  std::printf("{\"workload\":\"regions\",\"threads\":[");
  for (std::size_t i = 0; i < threads.size(); ++i) {
    std::printf("%s{\"tid\":%ld,\"regions\":{", i == 0 ? "" : ",", threads[i].tid);
    const char* comma = "";
    for (const auto& [path, sums] : threads[i].regions) {
      std::printf("%s\"%s\":{\"entries\":%ld,\"elapsed_s\":%.6f,\"cpu_s\":%.6f}", comma, path.c_str(), sums.entries,
                  sums.elapsed, sums.cpu);
      comma = ",";
    }
    std::printf("}}");
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("regions", "threads that mark what they do, and time it");
  flags.number("--rounds", 60, 1, 100000, "how often each thread steps");
  flags.choice("--do", {"steps", "misuse"}, "steps, or marks that do not match");
  flags.parse(argc, argv);
  const int rounds = flags.integer("--rounds");
  const bool steps = flags.word("--do") == "steps";
  std::vector<Thread> threads(steps ? 3 : 1);
  std::vector<std::thread> crew;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    crew.emplace_back([&, i] { steps ? work(threads[i], rounds, i == 0 ? 2 : 1) : misuse(threads[i]); });
  }
  for (std::thread& thread : crew) {
    thread.join();
  }
  print(threads);
  return 0;
}
