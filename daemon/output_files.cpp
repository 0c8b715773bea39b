// SPDX-License-Identifier: Apache-2.0
#include "daemon/output_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "profile/rotate.h"

namespace crosstalk::daemon {

namespace fs = std::filesystem;

OutputFiles::OutputFiles(std::string path) : path_(std::move(path)) {
  std::error_code error;
  had_one_ = fs::exists(path_, error);
}

void OutputFiles::undo() const { profile::undo_make_room(path_, had_one_); }

}  // namespace crosstalk::daemon
