// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace crosstalk::service {

/// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() : name_(::testing::TempDir() + "crosstalk-XXXXXX") { EXPECT_NE(::mkdtemp(name_.data()), nullptr); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(name_, error);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return name.empty() ? name_ : name_ + "/" + name; }
  /// Writes a shell script; returns its path.
  [[nodiscard]] std::string script(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << "#!/bin/sh\n" << text << "\n";
    ::chmod(path(name).c_str(), 0755);
    return path(name);
  }
  /// The content of a file; empty: there is none.
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string name_;
};

}  // namespace crosstalk::service
