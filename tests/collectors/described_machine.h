// SPDX-License-Identifier: Apache-2.0
// Machines that are described in machines/, as the kernel would show them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "collectors/pmu/machine_description.h"

namespace crosstalk::collectors {

/// The files of a machine below a folder that is gone at the end.
class Machine {
 public:
  explicit Machine(const std::string& name)
      : root_(std::filesystem::temp_directory_path() / ("machine-" + name + "-" + std::to_string(getpid()))) {
    std::ifstream lines(std::string(CROSSTALK_MACHINES) + "/" + name + ".txt");
    EXPECT_TRUE(lines) << name;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos) {
        continue;  // the name
      }
      const std::filesystem::path path = root_ / line.substr(0, tab);
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::app) << line.substr(tab + 1) << '\n';
    }
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  [[nodiscard]] MachineDescription description() const { return describe_machine(root_); }

 private:
  std::filesystem::path root_;
};

inline MachineDescription described(const std::string& name) { return Machine(name).description(); }

}  // namespace crosstalk::collectors
