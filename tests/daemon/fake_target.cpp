// SPDX-License-Identifier: Apache-2.0
// fake_target MODE [ARG]: a small observed program for each situation that a session must handle.
#include "tests/daemon/fake_target.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

using crosstalk::daemon::test::FakeThread;
using crosstalk::daemon::test::map_arena;
using crosstalk::daemon::test::ring_of;

void sleep_ms(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

int write_samples(FakeThread& main, int count) {
  for (int i = 0; i < count; ++i) {
    main.sample(0x1000 + static_cast<std::uint64_t>(i), i % 10 == 0 ? 512 : 0);
    if (i % 50 == 49) {
      sleep_ms(20);
    }
  }
  main.message("a_message", "from the target");
  main.end();
  return 0;
}

/// Ends silently: by exec, in which the same pid attaches again.
int execute(FakeThread& main, char** argv) {
  main.sample(0x1000);
  char mode[] = "samples";
  char count[] = "3";
  char* arguments[] = {argv[0], mode, count, nullptr};
  ::execv("/proc/self/exe", arguments);
  return 98;
}

int fork_child(FakeThread& main, const crosstalk::profile::ArenaView& arena) {
  const pid_t child = ::fork();
  if (child == 0) {
    main.writer().detach();
    FakeThread of_child(arena, "child");
    of_child.attach_process(true);
    of_child.sample(0x2000);
    ::_exit(5);
  }
  ::waitpid(child, nullptr, 0);
  main.sample(0x1000);
  main.end();
  return 0;
}

/// `count` threads one after the other, each of which ends in an orderly way or (every fourth) silently.
int short_lived(FakeThread& main, const crosstalk::profile::ArenaView& arena, int count) {
  for (int i = 0; i < count; ++i) {
    std::thread([&arena, i] {
      FakeThread self(arena, "short");
      self.sample(0x3000 + static_cast<std::uint64_t>(i));
      if (i % 4 != 0) {
        self.end();
      }
    }).join();
    if (i % 8 == 7) {
      sleep_ms(10);
    }
  }
  main.end();
  return 0;
}

int fill_ring(FakeThread& main) {
  for (int i = 0; i < 20000; ++i) {
    main.sample(0x1000);
  }
  main.end();
  return 0;
}

/// Leaves a process behind that outlives the session.
int leave_child(FakeThread& main, const crosstalk::profile::ArenaView& arena) {
  if (::fork() == 0) {
    main.writer().detach();
    ::setsid();
    FakeThread of_child(arena, "daemon");
    of_child.attach_process(true);
    ::close(0), ::close(1), ::close(2);
    ::sleep(4);
    ::_exit(0);
  }
  sleep_ms(30);
  main.end();
  return 0;
}

/// Waits until the recorder has read all that is written; not for ever.
void until_read(FakeThread& thread) {
  for (int tries = 0; tries < 500 && thread.slot()->tail.load() != thread.slot()->head.load(); ++tries) {
    sleep_ms(10);
  }
}

/// Overwrites its own ring and head, as a faulty program may do.
int corrupt(FakeThread& main, const crosstalk::profile::ArenaView& arena) {
  constexpr int long_enough = 500;  // for a recorder on a busy machine to have looked again, ms
  main.sample(0x1000);
  until_read(main);
  main.sample(0x1001);
  std::memset(ring_of(arena, 0), 0xff, 4096);
  until_read(main);
  main.slot()->head.store(~std::uint64_t{0});
  sleep_ms(long_enough);
  main.sample(0x1002);
  sleep_ms(long_enough);
  main.sample(0x1003);
  main.end();
  return 0;
}

/// Samples at `rate` a second for `seconds`.
int steady(FakeThread& main, int rate, int seconds) {
  for (int i = 0; i < seconds * 100; ++i) {
    for (int k = 0; k < rate / 100; ++k) {
      main.sample(0x1000, k == 0 && i % 5 == 0 ? 4096 : 0);
    }
    sleep_ms(10);
  }
  main.end();
  return 0;
}

int wait_for_signal(FakeThread& main, const char* file) {
  main.sample(0x1000);
  std::fclose(std::fopen(file, "w"));  // ready
  for (int i = 0; i < 1000; ++i) {
    sleep_ms(10);
    main.sample(0x1000);
  }
  return 97;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "samples";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  const crosstalk::profile::ArenaView arena = map_arena();
  FakeThread main(arena, "main");
  if (mode == "unannounced") {  // a process_start that was lost
    main.sample(0x1000);
    main.end();
    return 0;
  }
  main.attach_process();
  if (mode == "samples") {
    return write_samples(main, number);
  }
  if (mode == "exec") {
    return execute(main, argv);
  }
  if (mode == "fork") {
    return fork_child(main, arena);
  }
  if (mode == "threads") {
    return short_lived(main, arena, number);
  }
  if (mode == "full") {
    return fill_ring(main);
  }
  if (mode == "leave") {
    return leave_child(main, arena);
  }
  if (mode == "corrupt") {
    return corrupt(main, arena);
  }
  if (mode == "steady") {
    return steady(main, number, argc > 3 ? std::atoi(argv[3]) : 2);
  }
  if (mode == "kill") {
    main.sample(0x1000);
    ::raise(SIGKILL);
  }
  if (mode == "wait") {
    return wait_for_signal(main, argv[2]);
  }
  return number;  // "exit"
}
