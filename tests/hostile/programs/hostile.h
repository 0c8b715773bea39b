// SPDX-License-Identifier: Apache-2.0
// Shared by the hostile programs: CPU time to burn, so that they are sampled at work; a cache line to exchange, so that
// they are watched; and unbuffered output.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace hostile {

struct Behaviour {
  const char* name;
  int (*run)(int argc, char** argv);  // argv[0] is the word after the behaviour's name
};

/// Runs the behaviour that argv[1] names; main of each program. Ends with 2 if there is none.
int dispatch(std::initializer_list<Behaviour> behaviours, int argc, char** argv);

/// Writes a line to standard output, at once, as printf has it. Not for signal handlers.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
/// Writes `text` as it is, by one system call. Signal-safe.
void put(const char* text);
/// "yes" or "no".
inline const char* yes(bool value) { return value ? "yes" : "no"; }
/// Ends the program with 99, naming `what` and errno, unless `good`: a call failed that never does in a bare run.
void require(bool good, const char* what);

/// Seconds of a clock.
double seconds_of(clockid_t clock);
inline double now() { return seconds_of(CLOCK_MONOTONIC); }

/// A line that all threads store to.
struct alignas(64) Line {
  std::uint64_t words[8] = {};
};
extern Line shared_line;

/// Stores to the shared line until the calling thread has used `cpu_seconds` more CPU time.
void burn(double cpu_seconds);
/// Two threads do so at once: each has its own word of the line.
void exchange(double cpu_seconds);

/// Threads that store to the shared line during its lifetime. Each uses at most `cpu_seconds` of CPU time, so that a
/// program that hangs elsewhere does not burn for ever.
class Burners {
 public:
  explicit Burners(int count, double cpu_seconds = 30);
  ~Burners();
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Installs a handler; flags as in sigaction(2).
void handle(int signal_number, void (*handler)(int), int flags = 0);
void handle(int signal_number, void (*handler)(int, siginfo_t*, void*), int flags = SA_SIGINFO);

/// The lines of /proc/self/timers that begin a timer.
int timers_in_kernel();
/// Returns the value of a field of /proc/self/status, without leading blanks; empty if there is none.
std::string status_field(const char* name);
/// The threads of this process.
int threads_in_kernel();
/// How a child ended, in words: "exit 3", "signal 11".
std::string ending(int wait_status);
/// Waits for a child and says how it ended.
std::string end_of(pid_t child);

}  // namespace hostile
