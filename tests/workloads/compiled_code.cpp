// SPDX-License-Identifier: Apache-2.0
// Threads run a function that the program makes at run time, as a just-in-time compiler does, and count on one word. A
// jitdump names it for profilers, or nothing does.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

// count(word, n): 1: lock incq (%rdi); dec %rsi; jne 1b; ret
constexpr std::array<unsigned char, 10> code{0xf0, 0x48, 0xff, 0x07, 0x48, 0xff, 0xce, 0x75, 0xf7, 0xc3};
constexpr std::size_t page = 4096;
using Count = void (*)(std::uint64_t*, std::uint64_t);

alignas(workload::line_bytes) std::uint64_t counter;

void* make_code() {
  void* place = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(place, code.data(), code.size());
  mprotect(place, page, PROT_READ | PROT_EXEC);
  return place;
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Fields of the machine's byte order, one after the other.
class Bytes {
 public:
  template <class... Values>
  Bytes& add(Values... values) {
    (text_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return *this;
  }
  Bytes& add_text(const std::string& text) {
    text_ += text + '\0';
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string record(std::uint32_t id, const std::string& body) {
  return Bytes().add(id, static_cast<std::uint32_t>(16 + body.size()), monotonic_ns()).text() + body;
}

/// tools/perf/Documentation/jitdump-specification.txt. It is mapped executable, so that a profiler learns its place.
void write_jit_dump(const std::string& folder, std::uint64_t address) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  const std::uint64_t bytes = code.size();
  const std::string header = Bytes()
                                 .add(std::uint32_t{0x4a695444}, std::uint32_t{1}, std::uint32_t{40},
                                      std::uint32_t{EM_X86_64}, std::uint32_t{0}, pid, monotonic_ns(), std::uint64_t{0})
                                 .text();
  const std::string lines = Bytes()
                                .add(address, std::uint64_t{1}, address, std::uint32_t{7}, std::uint32_t{0})
                                .add_text("/made/Counting.java")
                                .text();
  const std::string load =
      Bytes()
          .add(pid, static_cast<std::uint32_t>(gettid()), address, address, bytes, std::uint64_t{1})
          .add_text("Counting.count")
          .text() +
      std::string(reinterpret_cast<const char*>(code.data()), code.size());
  const std::string path = folder + "/jit-" + std::to_string(pid) + ".dump";
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  const std::string whole = header + record(2, lines) + record(0, load);
  if (file < 0 || write(file, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()) ||
      mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) {
    std::perror("compiled_code");
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("compiled_code", "threads count in code that was made at run time");
  flags.number("--seconds", 1, 0.01, 3600, "run time");
  flags.choice("--names", {"none", "dump"}, "whether a jitdump in the current folder has the code's name");
  flags.parse(argc, argv);
  void* const place = make_code();
  if (flags.word("--names") == "dump") {
    std::array<char, page> folder{};
    if (getcwd(folder.data(), folder.size()) == nullptr) {
      std::perror("compiled_code");
      return 1;
    }
    write_jit_dump(folder.data(), reinterpret_cast<std::uint64_t>(place));
  }
  const auto count = reinterpret_cast<Count>(place);
  const Deadline deadline(flags.real("--seconds"));
  workload::run_crew(2, [&](int /*index*/) {
    while (!deadline.passed()) {
      count(&counter, 4096);
    }
  });
  std::printf("{\"counted\":%llu}\n", static_cast<unsigned long long>(counter));
  return 0;
}
