// SPDX-License-Identifier: Apache-2.0
#include "daemon/output_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace crosstalk::daemon {

namespace fs = std::filesystem;

OutputFiles::OutputFiles(std::string path) : path_(std::move(path)) {
  std::error_code error;
  had_one_ = fs::exists(path_, error);
}

void OutputFiles::undo() const {
  std::error_code error;
  for (const char* suffix : {"-shm", "-wal", ""}) {
    fs::remove(path_ + suffix, error);
    if (had_one_) {
      fs::rename(path_ + ".old" + suffix, path_ + suffix, error);
    }
  }
}

}  // namespace crosstalk::daemon
