// SPDX-License-Identifier: Apache-2.0
// Threads that are renamed while they run, in all possible ways. Prints the last name of each, by thread id. Threads
// that still exist at the end are not joined: only an observer's own look can tell their names.
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "workload.h"

namespace {

using std::chrono::milliseconds;

std::map<pid_t, std::string> names;

pid_t own_tid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void work_for(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    __asm__ volatile("pause");
  }
}

void write_name(pid_t tid, const std::string& name) {
  const std::string path = "/proc/self/task/" + std::to_string(tid) + "/comm";
  const int file = ::open(path.c_str(), O_WRONLY);
  if (file < 0 || ::write(file, name.data(), name.size()) != static_cast<ssize_t>(name.size())) {
    std::perror(path.c_str());
    std::exit(1);
  }
  ::close(file);
}

/// Starts a thread that runs `body`; `last` is its final name.
std::thread start(const std::string& last, const std::function<void()>& body, pid_t* tid = nullptr) {
  std::atomic<pid_t> started = 0;
  std::thread thread([&started, body] {
    started = own_tid();
    body();
  });
  while (started == 0) {
    std::this_thread::yield();
  }
  names[started] = last;
  if (tid != nullptr) {
    *tid = started;
  }
  return thread;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Flags("renamed_threads", "threads that get names while they run").parse(argc, argv);
  pid_t written = 0;
  std::thread by_itself = start("by_itself", [] {
    work_for(milliseconds(300));
    ::pthread_setname_np(::pthread_self(), "by_itself");
    work_for(milliseconds(300));
  });
  std::thread by_prctl = start("by_prctl", [] {
    ::prctl(PR_SET_NAME, "first");
    work_for(milliseconds(300));
    ::prctl(PR_SET_NAME, "by_prctl");
  });
  std::thread short_one = start("short_one", [] {
    ::pthread_setname_np(::pthread_self(), "short_one");
    work_for(milliseconds(20));
  });
  std::atomic<bool> named = false;
  std::thread by_file = start(
      "by file",
      [&named] {
        while (!named) {
          work_for(milliseconds(10));
        }
        work_for(milliseconds(400));
      },
      &written);
  std::thread asleep = start("asleep", [] { ::pause(); });
  std::thread at_work = start("at_work", [] { work_for(milliseconds(60'000)); });
  work_for(milliseconds(200));
  write_name(written, "by file");
  named = true;
  ::pthread_setname_np(asleep.native_handle(), "asleep");
  ::pthread_setname_np(at_work.native_handle(), "at_work");
  ::pthread_setname_np(::pthread_self(), "the_first");
  names[own_tid()] = "the_first";
  by_itself.join(), by_prctl.join(), short_one.join(), by_file.join();
  work_for(milliseconds(1000));
  const char* separator = "{\"names\":{";
  for (const auto& [tid, name] : names) {
    std::printf("%s\"%d\":\"%s\"", separator, tid, name.c_str());
    separator = ",";
  }
  std::printf("}}\n");
  std::fflush(stdout);
  ::_exit(0);
}
