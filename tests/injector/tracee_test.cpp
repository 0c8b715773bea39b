// SPDX-License-Identifier: Apache-2.0
// Threads of a real process are stopped and made to call a function, again and again, and must not notice.
#include "collectors/injector/tracee.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <thread>

#include "collectors/injector/target_code.h"

namespace crosstalk::injector::tracee_test {
namespace {

struct Shared {
  std::atomic<std::uint64_t> calls, rounds, wrong, more;
  std::atomic<bool> over;
  char text[64];
};
Shared* shared = nullptr;

/// The called function: changes every register that a function may change.
extern "C" void called(const char* text, std::uint64_t more) {
  auto x = static_cast<double>(more);
  asm volatile("" : "+x"(x));
  asm volatile("pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm7, %%xmm7\n pcmpeqd %%xmm15, %%xmm15\n fninit\n fldpi"
               :
               :
               : "xmm0", "xmm7", "xmm15");
  for (std::size_t i = 0; i < sizeof shared->text - 1; ++i) {
    shared->text[i] = text[i];
    if (text[i] == 0) {
      break;
    }
  }
  shared->more = more;
  shared->calls.fetch_add(1);
}

/// Sums that live in vector registers, and a leaf function's variables in the red zone.
void compute() {
  while (!shared->over) {
    double a = 1;
    double b = 2;
    for (int i = 0; i < 100'000; ++i) {
      a += 0.5;
      b += 0.25;
      asm volatile("movq $77, -8(%%rsp)\n addsd %1, %0\n subsd %1, %0\n cmpq $77, -8(%%rsp)\n je 1f\n movq $1, %2\n 1:"
                   : "+x"(a), "+x"(b), "+m"(shared->wrong)
                   :
                   : "cc", "memory");
    }
    shared->wrong.fetch_add(a == 50'001 && b == 25'002 ? 0 : 1);
    shared->rounds.fetch_add(1);
  }
}

void wait_for_events() {
  int pipe[2];
  const int epoll = ::pipe(pipe) == 0 ? ::epoll_create1(0) : -1;
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, pipe[0], &wanted);
  while (!shared->over) {
    epoll_event event{};
    shared->wrong.fetch_add(::epoll_wait(epoll, &event, 1, 20) == 0 ? 0 : 1);
    shared->rounds.fetch_add(1);
  }
}

void stay_on_processor(unsigned cpu) {  // if there is one by this number
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

class Traced : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared = new (memory) Shared{};
  }
  void TearDown() override {
    shared->over = true;
    if (child_ > 0) {
      ::waitpid(child_, &status_, 0);
      EXPECT_TRUE(WIFEXITED(status_)) << status_;
    }
    ::munmap(shared, sizeof(Shared));
  }
  void run(void (*function)()) {
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it computes until it is told to end, which a killed test does not say
      function();
      ::_exit(0);
    }
    while (shared->rounds == 0) {
      ::usleep(1000);
    }
  }
  /// True: the call was sent, and has come to its end.
  bool call(std::uint64_t number, std::uint64_t restorer) {
    const std::uint64_t before = shared->calls;
    {
      auto stopped = Tracee::stop(child_, child_);
      if (!stopped || !*stopped) {
        return false;
      }
      const auto goes_on = resumed((*stopped)->thread().registers);
      if (!goes_on) {
        return false;
      }
      const auto frame = lay_out_call((*stopped)->thread(), *goes_on, reinterpret_cast<std::uint64_t>(&called),
                                      "argument", number, restorer);
      if (!frame || !(*stopped)->send(*frame)) {
        return false;
      }
    }
    for (int i = 0; i < 2000 && shared->calls == before; ++i) {
      ::usleep(500);
    }
    return shared->calls == before + 1 && shared->more == number && std::string(shared->text) == "argument";
  }

  pid_t child_ = -1;
  int status_ = 0;
};

TEST_F(Traced, AThreadThatComputesDoesNotNoticeItsCalls) {
  run(compute);
  TargetCode code(child_, "/nowhere/libcrosstalk.so");
  const auto restorer = code.restorer();
  ASSERT_TRUE(restorer);
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(call(i, *restorer)) << i;
  }
  const std::uint64_t rounds = shared->rounds;
  while (shared->rounds < rounds + 2) {
    ::usleep(1000);
  }
  EXPECT_EQ(shared->wrong, 0U);
}

TEST_F(Traced, AWaitThatAStopWouldEndGoesOn) {
  run(wait_for_events);
  TargetCode code(child_, "/nowhere/libcrosstalk.so");
  const auto restorer = code.restorer();
  ASSERT_TRUE(restorer);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(call(i, *restorer)) << i;
  }
  const std::uint64_t rounds = shared->rounds;
  while (shared->rounds < rounds + 2) {
    ::usleep(1000);
  }
  EXPECT_EQ(shared->wrong, 0U);
}

TEST_F(Traced, ItsStackIsReadToItsEnd) {
  run(compute);
  TargetCode code(child_, "/nowhere/libcrosstalk.so");
  const auto stopped = Tracee::stop(child_, child_);
  ASSERT_TRUE(stopped && *stopped);
  const auto stack = code.stack_of((*stopped)->registers());
  ASSERT_GT(stack.size(), 3U);
  EXPECT_TRUE(stack.back().outermost);
  EXPECT_EQ(stack.back().owner, CodeOwner::program);
  EXPECT_EQ(stack[stack.size() - 2].name, "__libc_start_main");
}

TEST_F(Traced, SignalsThatComeMeanwhileArrive) {
  run(+[] {
    struct sigaction action {};
    action.sa_handler = [](int) { shared->more.fetch_add(1); };
    ::sigaction(SIGUSR2, &action, nullptr);
    compute();
  });
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t before = shared->more;
    ::kill(child_, SIGUSR2);
    { const auto stopped = Tracee::stop(child_, child_); }
    for (int wait = 0; wait < 2000 && shared->more == before; ++wait) {
      ::usleep(500);
    }
    ASSERT_EQ(shared->more, before + 1);
  }
}

/// While a first thread is traced that cannot be stopped at the moment, another one executes a program. The other
/// thread hardly gets its processor, so the tracer sees the first thread end and looks again before its number has a
/// new owner.
TEST_F(Traced, AFirstThreadThatEndsAsAnotherExecutesIsGone) {
  run(+[] {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    std::thread([] {
      ::usleep(150'000);
      stay_on_processor(0);
      const sched_param none{};
      ::sched_setscheduler(0, SCHED_IDLE, &none);
      ::execl("/bin/sleep", "sleep", "1", nullptr);
    }).detach();
    if (::vfork() == 0) {  // for as long as this child lives, nothing but a kill reaches its parent
      shared->rounds = 1;
      const timespec longer{2, 0};
      ::nanosleep(&longer, nullptr);
      ::_exit(0);
    }
  });
  const pid_t busy = ::fork();
  if (busy == 0) {
    stay_on_processor(0);
    ::alarm(1);
    for (volatile unsigned n = 0;; n = n + 1) {
    }
  }
  const pid_t tracer = ::fork();  // not its parent, whose the number remains
  if (tracer == 0) {
    stay_on_processor(1);
    ::alarm(30);  // waiting for it for ever fails, too
    const auto stopped = Tracee::stop(child_, child_);
    const auto again = Tracee::stop(child_, child_);
    ::_exit((stopped && !*stopped ? 0 : 1) + (again && *again ? 0 : 2));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(busy, &status, 0), busy);
  ASSERT_EQ(::waitpid(tracer, &status, 0), tracer);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: what has ended was stopped, 2: who has its number now was not";
}

TEST(Doing, IsReadOffWhatTheKernelSays) {
  EXPECT_EQ(doing_by("running\n"), Doing::runs);
  EXPECT_EQ(doing_by("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f00\n"), Doing::waits_quietly);
  EXPECT_EQ(doing_by("232 0x4 0x7f 0x1 0xffffffff 0x0 0x0 0x7ffe 0x7f00\n"), Doing::other);  // epoll_wait
  EXPECT_EQ(doing_by("-1 0x7ffe 0x7f00\n"), Doing::other);
  EXPECT_EQ(doing_by(""), Doing::other);
}

}  // namespace
}  // namespace crosstalk::injector::tracee_test
