// SPDX-License-Identifier: Apache-2.0
#include "hostile.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

namespace hostile {

Line shared_line;

int dispatch(std::initializer_list<Behaviour> behaviours, int argc, char** argv) {
  const std::string what = argc >= 2 ? argv[1] : "";
  for (const Behaviour& behaviour : behaviours) {
    if (what == behaviour.name) {
      return behaviour.run(argc - 2, argv + 2);
    }
  }
  std::fprintf(stderr, "'%s' is no behaviour; these are:\n", what.c_str());
  for (const Behaviour& behaviour : behaviours) {
    std::fprintf(stderr, "  %s\n", behaviour.name);
  }
  return 2;
}

void put(const char* text) {
  for (std::size_t left = std::strlen(text); left > 0;) {
    const ssize_t written = write(STDOUT_FILENO, text, left);
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      _exit(98);
    }
    text += written;
    left -= static_cast<std::size_t>(written);
  }
}

void say(const char* format, ...) {
  char line[1024];
  std::va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  const std::size_t end = std::min(static_cast<std::size_t>(length), sizeof line - 2);
  line[end] = '\n';
  line[end + 1] = '\0';
  put(line);
}

void require(bool good, const char* what) {
  if (!good) {
    say("%s: %s", what, std::strerror(errno));
    _exit(99);
  }
}

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

namespace {

void burn_word(std::uint64_t& word, double cpu_seconds, const std::atomic<bool>* stop) {
  const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
  for (std::uint32_t n = 1;; ++n) {
    __atomic_store_n(&word, n, __ATOMIC_RELAXED);
    if ((n & 0x1fffU) == 0 && ((stop != nullptr && *stop) || seconds_of(CLOCK_THREAD_CPUTIME_ID) > end)) {
      return;
    }
  }
}

}  // namespace

void burn(double cpu_seconds) { burn_word(shared_line.words[0], cpu_seconds, nullptr); }

void exchange(double cpu_seconds) {
  std::thread other([=] { burn_word(shared_line.words[1], cpu_seconds, nullptr); });
  burn_word(shared_line.words[0], cpu_seconds, nullptr);
  other.join();
}

struct Burners::State {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

Burners::Burners(int count, double cpu_seconds) : state_(std::make_unique<State>()) {
  for (int n = 0; n < count; ++n) {
    State* state = state_.get();
    state->threads.emplace_back([=] { burn_word(shared_line.words[2 + n % 6], cpu_seconds, &state->stop); });
  }
}

Burners::~Burners() {
  state_->stop = true;
  for (std::thread& thread : state_->threads) {
    thread.join();
  }
}

void handle(int signal_number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  require(sigaction(signal_number, &action, nullptr) == 0, "sigaction");
}

void handle(int signal_number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = flags | SA_SIGINFO;
  require(sigaction(signal_number, &action, nullptr) == 0, "sigaction");
}

int timers_in_kernel() {
  std::ifstream file("/proc/self/timers");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    count += line.rfind("ID:", 0) == 0 ? 1 : 0;
  }
  return count;
}

std::string status_field(const char* name) {
  std::ifstream file("/proc/self/status");
  const std::string begin = std::string(name) + ":";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(begin, 0) == 0) {
      const std::size_t value = line.find_first_not_of(" \t", begin.size());
      return value == std::string::npos ? "" : line.substr(value);
    }
  }
  return "";
}

namespace {

int threads_listed() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  require(folder != nullptr, "/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    count += entry->d_name[0] != '.' ? 1 : 0;
  }
  closedir(folder);
  return count;
}

}  // namespace

// A joined thread may be listed for a moment longer: the kernel wakes the waiter before it removes the thread.
int threads_in_kernel() {
  constexpr int looks = 20;
  int least = threads_listed();
  for (int i = 0; i < looks && least > 1; ++i) {
    usleep(1000);
    least = std::min(least, threads_listed());
  }
  return least;
}

std::string ending(int wait_status) {
  if (WIFEXITED(wait_status)) {
    return "exit " + std::to_string(WEXITSTATUS(wait_status));
  }
  return "signal " + std::to_string(WTERMSIG(wait_status));
}

std::string end_of(pid_t child) {
  int status = 0;
  pid_t waited = -1;
  do {
    waited = waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  return waited > 0 ? ending(status) : "not waited for";
}

}  // namespace hostile
