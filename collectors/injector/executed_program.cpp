// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/executed_program.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::injector {
namespace {

std::string start_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/auxv", std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

UniqueFd memory_of(pid_t pid) {
  return UniqueFd(::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
}

/// True if nobody has the memory any more. Memory in use can be read somewhere, or nothing is mapped there (EIO).
bool is_gone(const UniqueFd& memory) {
  char byte = 0;
  return memory.valid() && ::pread(memory.get(), &byte, 1, 0) == 0;
}

}  // namespace

ExecutedProgram::ExecutedProgram(pid_t pid) : pid_(pid), start_(start_of(pid)), memory_(memory_of(pid)) {}

std::string ExecutedProgram::what_became_of_it() const {
  constexpr std::uint64_t patience_ns = 200'000'000;
  constexpr timespec between_looks{0, 1'000'000};
  const bool gone = is_gone(memory_);
  // A process that ends loses its memory before /proc reports its end.
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  std::string now = start_of(pid_);
  for (; now.empty() && monotonic_ns() < until_ns; now = start_of(pid_)) {
    if (observer::has_ended(pid_)) {
      return "it has ended";
    }
    ::nanosleep(&between_looks, nullptr);
  }
  if (now.empty()) {
    return gone ? "it has ended" : std::string();
  }
  return gone || (!start_.empty() && now != start_) ? "it has executed another program meanwhile" : std::string();
}

}  // namespace crosstalk::injector
