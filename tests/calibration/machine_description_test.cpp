// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/machine_description.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "collectors/calibration/bench.h"

namespace crosstalk::collectors::calibration::machine_description_test {
namespace {

std::string cpuinfo(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  }
  return "";
}

TEST(MachineDescription, AgreesWithTheKernel) {
  const auto machine = describe_machine();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->identity.vendor, cpuinfo("vendor_id"));
  EXPECT_EQ(std::to_string(machine->identity.family), cpuinfo("cpu family"));
  EXPECT_EQ(std::to_string(machine->identity.model), cpuinfo("model\t"));
  EXPECT_EQ(std::to_string(machine->identity.stepping), cpuinfo("stepping"));
  EXPECT_EQ(machine->identity.name, cpuinfo("model name"));
  EXPECT_EQ(machine->processors.size(), static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(models::validate(*machine).has_value(), false) << "a machine without figures is no calibrated one";
}

TEST(MachineDescription, IsTheSameTwice) {
  EXPECT_TRUE(models::check_same_machine(*describe_machine(), *describe_machine()));
}

models::Machine two_packages_of_two_cores_of_two() {
  models::Machine m;
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu) {
    m.processors.push_back({cpu, cpu % 4, cpu % 4 / 2, 0});
  }
  m.caches = {{3, 1U << 20, 64, 0, {0, 1, 4, 5}}, {3, 1U << 20, 64, 0, {2, 3, 6, 7}}};
  return m;
}

TEST(MachineDescription, ChoosesOneProcessorOfEachCore) {
  const models::Machine m = two_packages_of_two_cores_of_two();
  EXPECT_EQ(one_of_each_core(m, {0, 1, 2, 3, 4, 5, 6, 7}), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(one_of_each_core(m, {4, 5, 7}), (std::vector<std::uint32_t>{4, 5, 7}));
  EXPECT_EQ(sharers(m, 3, {0, 1, 2, 3}), 2U);
  EXPECT_EQ(sharers(m, 3, {0}), 1U);
  EXPECT_EQ(sharers(m, 2, {0, 1}), 1U);
}

TEST(ProcessorPairs, AreAllWhereTheyAreFew) {
  const models::Machine m = two_packages_of_two_cores_of_two();
  EXPECT_EQ(choose_pairs(m, {0, 1, 2, 3, 4, 5, 6, 7}).size(), 28U);
  EXPECT_TRUE(choose_pairs(m, {3}).empty());
}

TEST(ProcessorPairs, AreSomeOfEachNearnessWhereTheyAreMany) {
  models::Machine m;
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < 64; ++cpu) {
    m.processors.push_back({cpu, cpu / 2, cpu / 32, 0});
    cpus.push_back(cpu);
  }
  const auto pairs = choose_pairs(m, cpus);
  EXPECT_EQ(pairs.size(), 3 * 24U);  // of one core, of one package, of two
  EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
  EXPECT_EQ(std::adjacent_find(pairs.begin(), pairs.end()), pairs.end());
  EXPECT_EQ(std::count_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.first / 2 == p.second / 2; }), 24);
  EXPECT_EQ(std::count_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.first / 32 != p.second / 32; }), 24);
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::machine_description_test
