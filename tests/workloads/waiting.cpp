// SPDX-License-Identifier: Apache-2.0
// Threads wait for each other, at one kind of place at a time, and time their waits by their own clocks. One JSON line:
// for each thread its id, its elapsed time, and its time on locks, at barriers, for conditions.
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"

namespace {

using Clock = std::chrono::steady_clock;
using workload::Flags;

constexpr int most_threads = 8;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Works for so long of elapsed time, whether or not it has a processor.
void work(double seconds) {
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < seconds;) {
    __builtin_ia32_pause();
  }
}

struct alignas(workload::line_bytes) Timed {
  long tid = 0;
  double elapsed = 0, waited = 0;
  Clock::time_point begin = Clock::now();
  void start() {
    tid = syscall(SYS_gettid);
    begin = Clock::now();
  }
  void stop() { elapsed = seconds_since(begin); }
  template <class Wait>
  void time(Wait wait) {
    const Clock::time_point before = Clock::now();
    wait();
    waited += seconds_since(before);
  }
};

Timed timed[most_threads];
int threads = 2;
int rounds = 0;
constexpr double unit = 0.002;  // s of work

void crew(const std::function<void(int)>& body) {
  std::vector<std::thread> members;
  for (int i = 1; i < threads; ++i) {
    members.emplace_back([&body, i] {
      timed[i].start();
      body(i);
      timed[i].stop();
    });
  }
  timed[0].start();
  body(0);
  timed[0].stop();
  for (std::thread& member : members) {
    member.join();
  }
}

/// The threads take turns in holding the object that the others wait for.
void take_turns(const std::function<void()>& take, const std::function<void()>& give_back) {
  crew([&](int me) {
    for (int i = 0; i < rounds; ++i) {
      timed[me].time(take);
      work(unit);
      give_back();
      work(unit / 4);
    }
  });
}

std::mutex a_mutex;
void at_mutex() {
  take_turns([] { a_mutex.lock(); }, [] { a_mutex.unlock(); });
}

pthread_rwlock_t a_rwlock = PTHREAD_RWLOCK_INITIALIZER;
void at_rwlock() {
  take_turns([] { pthread_rwlock_wrlock(&a_rwlock); }, [] { pthread_rwlock_unlock(&a_rwlock); });
}

void at_critical() {
#pragma omp parallel num_threads(threads)
  {
    Timed& mine = timed[omp_get_thread_num()];
    mine.start();
    for (int i = 0; i < rounds; ++i) {
      const Clock::time_point before = Clock::now();
#pragma omp critical
      {
        mine.waited += seconds_since(before);
        work(unit);
      }
      work(unit / 4);
    }
    mine.stop();
  }
}

/// Iterations dealt out in turn, part of each in the order of the loop.
void at_ordered() {
#pragma omp parallel num_threads(threads)
  {
    Timed& mine = timed[omp_get_thread_num()];
    mine.start();
#pragma omp for ordered schedule(static, 1)
    for (int i = 0; i < rounds * threads; ++i) {
      work(unit / 4);
      const Clock::time_point before = Clock::now();
#pragma omp ordered
      {
        mine.waited += seconds_since(before);
        work(unit);
      }
    }
    mine.stop();
  }
}

/// One thread makes a task more than there are threads and waits for all; the others wait at the end of that. Each
/// executes tasks meanwhile, which is no waiting.
void at_tasks() {
  static double busy[most_threads];
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    timed[me].start();
    for (int i = 0; i < rounds; ++i) {
      const Clock::time_point before = Clock::now();
      busy[me] = 0;
#pragma omp barrier
#pragma omp single
      {
        for (int task = 0; task <= threads; ++task) {
#pragma omp task
          {
            const Clock::time_point begin = Clock::now();
            work(unit);
            busy[omp_get_thread_num()] += seconds_since(begin);
          }
        }
#pragma omp taskwait
      }
      timed[me].waited += seconds_since(before) - busy[me];
    }
    timed[me].stop();
  }
}

pthread_barrier_t a_barrier;
void at_barrier() {
  pthread_barrier_init(&a_barrier, nullptr, static_cast<unsigned>(threads));
  crew([](int me) {
    for (int i = 0; i < rounds; ++i) {
      work(unit * (me + 1));
      timed[me].time([] { pthread_barrier_wait(&a_barrier); });
    }
  });
}

/// A loop whose threads have unlike work, with a barrier inside the region.
void at_team_barrier() {
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    timed[me].start();
    for (int i = 0; i < rounds; ++i) {
      work(unit * (me + 1));
      const Clock::time_point before = Clock::now();
#pragma omp barrier
      timed[me].waited += seconds_since(before);
    }
    timed[me].stop();
  }
}

/// The same with a region each time: the barrier is that at its end. The thread that begins the region waits until it
/// is back from it, the others until the last one is done: then they are free for another region.
void at_region_end() {
  Clock::time_point done[most_threads];
  for (int i = 0; i < rounds; ++i) {
#pragma omp parallel num_threads(threads)
    {
      const int me = omp_get_thread_num();
      if (i == 0) {
        timed[me].start();
      }
      work(unit * (me + 1));
      done[me] = Clock::now();
    }
    const Clock::time_point back = Clock::now();
    const Clock::time_point last = *std::max_element(done, done + threads);
    for (int me = 0; me < threads; ++me) {
      const Clock::time_point until = me == 0 ? back : last;
      timed[me].waited += std::chrono::duration<double>(until - done[me]).count();
      timed[me].elapsed = std::chrono::duration<double>(until - timed[me].begin).count();
    }
  }
}

/// Threads hand a number round.
std::condition_variable a_condition;
int turn = 0;
void at_condition() {
  crew([](int me) {
    for (int i = 0; i < rounds; ++i) {
      std::unique_lock lock(a_mutex);
      while (turn != me) {
        timed[me].time([&] { a_condition.wait(lock); });
      }
      work(unit);
      turn = (turn + 1) % threads;
      a_condition.notify_all();
    }
  });
}

sem_t turns[most_threads];
void at_semaphore() {
  for (int i = 0; i < threads; ++i) {
    sem_init(&turns[i], 0, i == 0 ? 1 : 0);
  }
  crew([](int me) {
    for (int i = 0; i < rounds; ++i) {
      timed[me].time([me] { sem_wait(&turns[me]); });
      work(unit);
      sem_post(&turns[(me + 1) % threads]);
    }
  });
}

std::atomic<int> a_word{0};
void at_atomic() {
  crew([](int me) {
    for (int i = 0; i < rounds; ++i) {
      timed[me].time([me] {
        for (int now = a_word.load(); now != me; now = a_word.load()) {
          a_word.wait(now);
        }
      });
      work(unit);
      a_word.store((me + 1) % threads);
      a_word.notify_all();
    }
  });
}

struct Place {
  const char* class_name;
  void (*run)();
};
const std::map<std::string, Place> places = {
    {"mutex", {"lock", at_mutex}},
    {"rwlock", {"lock", at_rwlock}},
    {"critical", {"lock", at_critical}},
    {"ordered", {"lock", at_ordered}},
    {"barrier", {"barrier", at_barrier}},
    {"team", {"barrier", at_team_barrier}},
    {"region", {"barrier", at_region_end}},
    {"tasks", {"barrier", at_tasks}},
    {"condition", {"condition", at_condition}},
    {"semaphore", {"condition", at_semaphore}},
    {"atomic", {"condition", at_atomic}},
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags("waiting", "threads wait for each other and time that");
  std::vector<std::string> names;
  for (const auto& [name, place] : places) {
    names.push_back(name);
  }
  flags.choice("--at", names, "what they wait at");
  flags.number("--threads", 2, 2, most_threads, "threads").number("--rounds", 100, 1, 100000, "waits of each");
  flags.parse(argc, argv);
  threads = flags.integer("--threads");
  rounds = flags.integer("--rounds");
  const Place& place = places.at(flags.word("--at"));
  place.run();
  std::printf(R"({"at":"%s","class":"%s","threads":[)", flags.word("--at").c_str(), place.class_name);
  for (int i = 0; i < threads; ++i) {
    std::printf(R"(%s{"tid":%ld,"elapsed_s":%.6f,"waited_s":%.6f})", i == 0 ? "" : ",", timed[i].tid, timed[i].elapsed,
                timed[i].waited);
  }
  std::printf("]}\n");
}
