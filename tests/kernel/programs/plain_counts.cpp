// SPDX-License-Identifier: Apache-2.0
// Runs a command, and prints to FILE how often each event happened in it and in all that it starts, counted by the
// kernel from its exec to its end, as `perf stat` does.
//
//   plain_counts FILE COMMAND...
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace {

struct Event {
  const char* name;
  std::uint64_t config;
  int fd;
};
std::array<Event, 3> events = {{{"cycles", 0x3c, -1}, {"instructions", 0xc0, -1}, {"branches", 0xc4, -1}}};

struct Counted {
  std::uint64_t count, enabled_ns, running_ns;
};

bool open_event(Event& event, pid_t process) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_RAW;
  attr.size = sizeof attr;
  attr.config = event.config;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.exclude_kernel = 1;
  attr.inherit = 1;
  attr.disabled = 1;
  attr.enable_on_exec = 1;
  event.fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, process, -1, -1, PERF_FLAG_FD_CLOEXEC));
  return event.fd >= 0;
}

/// The child that becomes the command once `begin` says so.
[[noreturn]] void become(char** command, int begin) {
  char byte = 0;
  if (read(begin, &byte, 1) == 1) {
    execvp(command[0], command);
    std::perror(command[0]);
  }
  _exit(127);
}

int print_counts(const char* path) {
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) {
    std::perror(path);
    return 1;
  }
  std::fputs("{", file);
  for (const Event& event : events) {
    Counted counted{};
    if (read(event.fd, &counted, sizeof counted) != static_cast<ssize_t>(sizeof counted)) {
      std::perror(event.name);
      return 1;
    }
    std::fprintf(file, "\"%s\": {\"count\": %llu, \"enabled_ns\": %llu, \"running_ns\": %llu}%s", event.name,
                 static_cast<unsigned long long>(counted.count), static_cast<unsigned long long>(counted.enabled_ns),
                 static_cast<unsigned long long>(counted.running_ns), &event == &events.back() ? "}\n" : ", ");
  }
  return std::fclose(file) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::array<int, 2> ends{};
  if (argc < 3 || pipe(ends.data()) != 0) {
    std::fprintf(stderr, "plain_counts FILE COMMAND...\n");
    return 2;
  }
  const pid_t child = fork();
  if (child == 0) {
    become(argv + 2, ends[0]);
  }
  for (Event& event : events) {
    if (child < 0 || !open_event(event, child)) {
      std::perror(event.name);
      return 1;  // the child reads the end of the pipe
    }
  }
  int status = 0;
  if (write(ends[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "plain_counts: the command ended with status %d\n", status);
    return 1;
  }
  return print_counts(argv[1]);
}
