// SPDX-License-Identifier: Apache-2.0
// A program that does a server's work, with many threads at once: allocates, locks, computes, waits in every way that a
// stop could disturb, starts threads and gets signals. It checks itself: a wait that ends with an error, a wrong sum,
// or a request without an answer is a failure. Prints its work, and the longest time that one of its computing threads
// stood still.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> over{false};
std::atomic<std::uint64_t> operations{0}, failures{0}, signals{0};
std::atomic<std::int64_t> longest_gap_ns{0};
std::mutex lock;
std::condition_variable ready;
std::uint64_t shared = 0;

void fail(const char* what) {
  failures.fetch_add(1);
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
}

void note_gap(Clock::time_point& last) {
  const auto now = Clock::now();
  const std::int64_t gap = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last).count();
  last = now;
  std::int64_t known = longest_gap_ns.load();
  while (known < gap && !longest_gap_ns.compare_exchange_weak(known, gap)) {
  }
}

/// Keeps its sum in vector registers over the whole loop.
double compute(double step) {
  double a = 0, b = 1, c = 2, d = 3;
  for (int i = 0; i < 4000; ++i) {
    a += step;
    b += step;
    c += step;
    d += step;
    asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));
  }
  return a + b + c + d;
}

/// Reads the allocated text for a good part of the time, so that some of a profile's samples fall into its blocks.
void check(const std::string& text) {
  for (int pass = 0; pass < 50; ++pass) {
    std::size_t right = 0;
    for (const char& letter : text) {
      right += letter == 'x' ? 1 : 0;
      asm volatile("" : "+r"(right));
    }
    if (right != text.size()) {
      fail("a text is wrong");
    }
  }
}

void work() {
  const double expected = compute(0.5);
  auto last = Clock::now();
  while (!over.load(std::memory_order_relaxed)) {
    for (int i = 0; i < 8; ++i) {
      if (compute(0.5) != expected) {
        fail("a sum is wrong");
      }
      note_gap(last);
    }
    const auto text = std::make_unique<std::string>(300 + operations % 1000, 'x');
    check(*text);
    {
      const std::lock_guard held(lock);
      shared += text->size();
    }
    ready.notify_one();
    operations.fetch_add(1, std::memory_order_relaxed);
  }
}

void wait_for_others() {
  while (!over) {
    std::unique_lock held(lock);
    const std::uint64_t before = shared;
    ready.wait_for(held, std::chrono::milliseconds(50), [&] { return shared != before || over; });
  }
}

void sleep_often() {
  while (!over) {
    const timespec some{0, 2'000'000};
    if (::nanosleep(&some, nullptr) != 0) {
      fail("nanosleep");
    }
    if (::poll(nullptr, 0, 2) != 0) {
      fail("poll");
    }
  }
}

void answer(int in, int out) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, in, &wanted);
  for (char request = 0; request != 'q';) {
    epoll_event event{};
    if (::epoll_wait(epoll, &event, 1, -1) != 1 || ::read(in, &request, 1) != 1 || ::write(out, &request, 1) != 1) {
      fail("answering");
    }
  }
  ::close(epoll);
}

void ask(int out, int in) {
  while (!over) {
    char answered = 0;
    if (::write(out, "?", 1) != 1 || ::read(in, &answered, 1) != 1 || answered != '?') {
      fail("asking");
    }
    operations.fetch_add(1, std::memory_order_relaxed);
  }
  char last = 0;
  if (::write(out, "q", 1) != 1 || ::read(in, &last, 1) != 1) {
    fail("asking");
  }
}

void start_threads() {
  while (!over) {
    std::thread([] { operations.fetch_add(1, std::memory_order_relaxed); }).join();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void on_signal(int /*number*/) { signals.fetch_add(1, std::memory_order_relaxed); }

void on_end(int /*number*/) { over.store(true); }

/// Waits for the end, as most threads of a large server do.
void idle(int in) {
  char last = 0;
  if (::read(in, &last, 1) != 0) {
    fail("idling");
  }
}

/// All threads except the workers leave the signals to those, whose calls they do not interrupt.
void block_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 5;
  int threads = 16;
  int idlers = 0;  // beside them
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) {
      seconds = std::atof(argv[i + 1]);
    } else {
      (std::strcmp(argv[i], "--idle") == 0 ? idlers : threads) = std::atoi(argv[i + 1]);
    }
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = on_end;
  sigaction(SIGTERM, &action, nullptr);
  int requests[2];
  int answers[2];
  int silent[2];
  if (::pipe(requests) != 0 || ::pipe(answers) != 0 || ::pipe(silent) != 0) {
    return 2;
  }
  std::vector<std::thread> all;
  for (int i = 6; i < threads; ++i) {
    all.emplace_back(work);
  }
  block_signal();
  all.emplace_back(wait_for_others);
  all.emplace_back(sleep_often);
  all.emplace_back(answer, requests[0], answers[1]);
  all.emplace_back(ask, requests[1], answers[0]);
  all.emplace_back(start_threads);
  for (int i = 0; i < idlers; ++i) {
    all.emplace_back(idle, silent[0]);
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end && !over) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(::getpid(), SIGUSR1);
  }
  over = true;
  ::close(silent[1]);
  for (std::thread& thread : all) {
    thread.join();
  }
  std::printf("{\"operations\": %llu, \"failures\": %llu, \"signals\": %llu, \"longest_gap_ms\": %.2f}\n",
              static_cast<unsigned long long>(operations), static_cast<unsigned long long>(failures),
              static_cast<unsigned long long>(signals), static_cast<double>(longest_gap_ns) / 1e6);
  return failures == 0 ? 0 : 1;
}
