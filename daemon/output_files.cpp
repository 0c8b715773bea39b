// SPDX-License-Identifier: Apache-2.0
#include "daemon/output_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "profile/rotate.h"
#include "profile/switched_files.h"

namespace crosstalk::daemon {

namespace fs = std::filesystem;

OutputFiles::OutputFiles(std::string path) : path_(std::move(path)) {
  std::error_code error;
  had_one_ = fs::exists(path_, error);
}

void OutputFiles::undo() const { profile::undo_make_room(path_, had_one_); }

std::string SwitchedFiles::next(std::int64_t unix_ms) {
  std::error_code error;
  last_ms_ = std::max(unix_ms, last_ms_ + 1);
  while (fs::exists(fs::symlink_status(next_ = profile::switched_name(name_, last_ms_), error))) {
    ++last_ms_;  // of another recording
  }
  return next_;
}

void SwitchedFiles::made() {
  if (most_ == 0 && files_.size() > 1) {
    files_.pop_back();
  }
  files_.push_back(next_);
  ++files_made_;
}

void SwitchedFiles::remove_surplus() {
  while (most_ != 0 && files_.size() > most_) {
    std::error_code error;
    for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) {  // a file that could not be finished has some
      fs::remove(files_.front() + suffix, error);
    }
    files_.pop_front();
  }
}

}  // namespace crosstalk::daemon
