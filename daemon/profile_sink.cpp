// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile_sink.h"

namespace crosstalk::daemon {

ProfileSink::ProfileSink(Result<profile::ProfileWriter> writer, std::function<void(const std::string&)> warn)
    : warn_(std::move(warn)) {
  if (writer) {
    writer_.emplace(std::move(*writer));
    return;
  }
  failing_ = true;
  loss_ = writer.error().message;
  if (warn_) {
    warn_(loss_ + "; the recording goes on, and tries again at the next switch");
  }
}

void ProfileSink::note_result(const Result<void>& result) {
  if (result) {
    return;
  }
  failing_ = true;
  open_ = {};  // the writer has rolled them back
  if (loss_.empty()) {
    loss_ = result.error().message;
    if (warn_) {
      warn_(loss_ + "; the command goes on, the profile will be incomplete");
    }
  }
}

void ProfileSink::commit() {
  if (writer_) {
    note_result(writer_->commit());
  }
  if (!failing_) {
    stored_.samples += open_.samples;
    stored_.traps += open_.traps;
    open_ = {};
  }
}

void ProfileSink::finish() {
  const Result<void> result = failing_ ? Result<void>() : writer_->finish();
  if (!result && warn_) {  // nothing is lost: the log has the rows
    warn_(result.error().message + "; keep the profile and its -wal file together");
  }
}

}  // namespace crosstalk::daemon
