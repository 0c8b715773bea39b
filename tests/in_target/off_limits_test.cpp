// SPDX-License-Identifier: Apache-2.0
// Tests the memory that is never watched: the kernel's own pages, and nothing of the program's beside them.
#include "collectors/in_target/objects/off_limits.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace crosstalk::in_target::off_limits_test {
namespace {

constexpr std::uint64_t page = 4096;

struct Pages {
  std::uint64_t begin = 0, end = 0;
};

/// From the first [vvar...] to the end of [vdso].
Pages pages_of_kernel() {
  std::ifstream maps("/proc/self/maps");
  Pages pages;
  for (std::string line; std::getline(maps, line);) {
    const bool time = line.find("[vvar") != std::string::npos;
    if (time || line.find("[vdso]") != std::string::npos) {
      const std::uint64_t begin = std::stoull(line, nullptr, 16);
      pages.begin = pages.begin == 0 ? begin : pages.begin;
      pages.end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    }
  }
  return pages;
}

TEST(OffLimits, AreTheKernelsPagesAndNotWhatIsMappedBesideThem) {
  const Pages kernels = pages_of_kernel();
  ASSERT_GT(kernels.end, kernels.begin) << "this kernel gives no vdso";
  find_off_limits();
  for (std::uint64_t at = kernels.begin; at < kernels.end; at += page) {
    EXPECT_TRUE(off_limits(at)) << std::hex << at;
  }
  // An existing mapping there also belongs to the program.
  ::mmap(reinterpret_cast<void*>(kernels.begin - page), page, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  EXPECT_FALSE(off_limits(kernels.begin - 64));
  EXPECT_FALSE(off_limits(kernels.end));
  EXPECT_TRUE(holds_kernel_clocks(kernels.begin - page, 2 * page));
  EXPECT_FALSE(holds_kernel_clocks(kernels.begin - page, page));
}

}  // namespace
}  // namespace crosstalk::in_target::off_limits_test
