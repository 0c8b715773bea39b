// SPDX-License-Identifier: Apache-2.0
// A million samples: their size on disk, and that all of them are read. Times are printed, not judged: a test
// machine may be busy.
#include <array>
#include <chrono>
#include <random>

#include "tests/profile/profile_files.h"

namespace crosstalk::profile::sizes_test {
namespace {

constexpr int sample_count = 250'000;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A loop's registers: its counter, two values it computes, and half of the time it is another loop.
void move_on(std::mt19937_64& random, Registers& registers) {
  registers[Register::rax] += random() % 10'000'000;
  registers[Register::rdx] = random() % 1'000'000;
  registers[Register::rsi] = random();
  if (random() % 2 == 0) {
    registers[Register::rsp] = 0x7f0000700000 + random() % 64 * 16;
    registers[Register::rdi] = 0x7f0000000000 + random() % 0x10000000;
    registers[Register::rcx] = random() % 1000;
    registers[Register::r8] = random() % 0x10000000;
  }
}

/// As eight threads of a program of a few hundred hot instructions would give them.
void put_samples(ProfileWriter& writer) {
  std::mt19937_64 random(1);  // NOLINT: the same file each time
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(writer.put(test::a_thread(i)));
  }
  SampleRow row = test::a_sample();
  std::array<Registers, 8> registers{};
  for (int i = 0; i < sample_count; ++i) {
    row.thread = ThreadId{static_cast<std::uint32_t>(random() % 8)};
    row.time_ns += random() % 1'000'000;
    row.ip = 0x555555554000 + random() % 0x4000;
    row.access_ip = row.ip - random() % 8;
    row.address = 0x7f0000000000 + random() % 0x10000000;
    row.cpu_ns = 4'000'000 + random() % 20000;
    row.watch = WatchId{i % 50 == 0 ? static_cast<std::uint32_t>(i / 50) : 0U};
    row.stack = StackId{i % 20 == 0 ? static_cast<std::uint32_t>(i / 20) : 0U};
    row.cpu = static_cast<std::uint16_t>(random() % 64);
    move_on(random, registers.at(row.thread.value));
    row.registers = registers.at(row.thread.value);
    ASSERT_TRUE(writer.put(row));
  }
}

TEST(Sizes, SamplesTakeLessThanEightyBytesEach) {
  const test::Directory directory;
  const std::string path = directory / "p.db";
  auto begin = std::chrono::steady_clock::now();
  ProfileWriter writer = test::created(path);
  ASSERT_TRUE(writer.put(test::a_session()));
  ASSERT_TRUE(writer.put(test::a_process(0)));
  put_samples(writer);
  ASSERT_TRUE(writer.finish());
  std::printf("written in %.3f s\n", seconds_since(begin));
  const double bytes = static_cast<double>(std::filesystem::file_size(path)) / sample_count;
  std::printf("%.1f bytes a sample\n", bytes);
  EXPECT_LT(bytes, 80);

  begin = std::chrono::steady_clock::now();
  const Result<ProfileReader> reader = ProfileReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  int samples = 0;
  std::uint64_t cpu_ns = 0;
  ASSERT_TRUE(reader->for_each_sample([&](const SampleRow& row) {
    ++samples;
    cpu_ns += row.cpu_ns;
  }));
  std::printf("read in %.3f s\n", seconds_since(begin));
  EXPECT_EQ(samples, sample_count);
  EXPECT_GT(cpu_ns, std::uint64_t{sample_count} * 4'000'000);
}

}  // namespace
}  // namespace crosstalk::profile::sizes_test
