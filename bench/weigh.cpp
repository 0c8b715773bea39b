// SPDX-License-Identifier: Apache-2.0
// weigh FILE COMMAND [ARG...]: runs the command and writes its cost to FILE as one line of JSON: seconds, CPU seconds
// and peak resident bytes of its process tree. A small program of its own, because a process begins with the peak
// memory of its parent. Ends with the command's status, 128+N for signal N.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

bool write_result(const char* path, double seconds, const rusage& usage) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::fprintf(stderr, "weigh: %s cannot be written: %s\n", path, std::strerror(errno));
    return false;
  }
  std::fprintf(file, "{\"seconds\":%.6f,\"cpu_s\":%.6f,\"peak_bytes\":%ld}\n", seconds,
               seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), usage.ru_maxrss * 1024);
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "weigh: usage: weigh FILE COMMAND [ARG...]\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    std::fprintf(stderr, "weigh: %s: %s\n", argv[2], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    std::fprintf(stderr, "weigh: no child: %s\n", std::strerror(errno));
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!write_result(argv[1], took.count(), usage)) {
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
