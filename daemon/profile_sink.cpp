// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile_sink.h"

namespace crosstalk::daemon {

void ProfileSink::heed(const Result<void>& result) {
  if (result) {
    return;
  }
  failing_ = true;
  if (loss_.empty()) {
    loss_ = result.error().message;
    if (warn_) {
      warn_(loss_ + "; the command goes on, the profile will be incomplete");
    }
  }
}

}  // namespace crosstalk::daemon
