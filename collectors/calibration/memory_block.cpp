// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/memory_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/number.h"

namespace crosstalk::collectors::calibration {
namespace {

constexpr std::uint64_t huge_page = 2U << 20;
constexpr std::uint64_t kilobyte = 1024;

std::uint64_t small_page() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// The number in "AnonHugePages:     2048 kB", in bytes; 0 when there is none.
std::uint64_t bytes_of(const std::string& line) {
  const std::size_t digit = line.find_first_of("0123456789", line.find(':'));
  return digit == std::string::npos ? 0 : leading_number<std::uint64_t>(line.substr(digit)).value_or(0) * kilobyte;
}

bool begins_with_address(const std::string& line, std::uint64_t& begin, std::uint64_t& end) {
  std::string_view rest = line;
  const auto first = take_leading<std::uint64_t>(rest, 16);
  const auto last = rest.starts_with('-') ? leading_number<std::uint64_t>(rest.substr(1), 16) : std::nullopt;
  begin = first.value_or(0);
  end = last.value_or(0);
  return first && last;
}

}  // namespace

MemoryBlock::~MemoryBlock() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapping_bytes_);
  }
}

Result<MemoryBlock> MemoryBlock::map(std::uint64_t bytes, std::uint64_t deadline_ns) {
  MemoryBlock block;
  const std::uint64_t mapped = bytes + huge_page;
  void* const mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return fail(ErrorCode::system, std::to_string(bytes) + " bytes of memory cannot be had: " + std::strerror(errno));
  }
  block.mapping_ = mapping;
  block.mapping_bytes_ = mapped;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  block.begin_ = static_cast<std::byte*>(mapping) + ((huge_page - address % huge_page) % huge_page);
  block.bytes_ = bytes;
  static_cast<void>(::madvise(block.begin_, bytes, MADV_HUGEPAGE));  // small pages will do
  for (std::uint64_t at = 0; at < bytes; at += small_page()) {
    if (at % huge_page == 0 && monotonic_ns() > deadline_ns) {
      return fail(ErrorCode::system, "only " + std::to_string(at >> 20U) + " of " + std::to_string(bytes >> 20U) +
                                         " MiB were there in time: the machine is too busy");
    }
    block.begin_[at] = std::byte{0};
  }
  return block;
}

std::uint64_t MemoryBlock::page_bytes() const {
  std::ifstream maps("/proc/self/smaps");
  const auto from = reinterpret_cast<std::uintptr_t>(begin_);
  std::uint64_t begin = 0, end = 0, huge = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (begins_with_address(line, begin, end)) {
      ours = begin < from + bytes_ && end > from;
    } else if (ours && line.starts_with("AnonHugePages:")) {
      huge += bytes_of(line);
    }
  }
  return huge > bytes_ / 2 ? huge_page : small_page();
}

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) {
      return bytes_of(line);
    }
  }
  return 0;
}

}  // namespace crosstalk::collectors::calibration
