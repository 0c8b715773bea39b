// SPDX-License-Identifier: Apache-2.0
// `crosstalk record -p` by crosstalkd, for users without the rights to observe a process themselves.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/service/channel.h"
#include "driver/options/record_options.h"

namespace crosstalk::driver {

/// Returns the option that the daemon does not take, in words; empty if it can serve the request.
[[nodiscard]] std::string beyond_daemon(const RecordRequest& request);

/// Has the daemon record the processes, until they end, the time is up, or this process is told to stop. Writes the
/// profile to `output`, and the worker's warnings to standard error. An error: nothing was recorded.
[[nodiscard]] Result<void> record_by_daemon(const RecordRequest& request, const std::string& output);

/// A live view's stream that the daemon's worker writes.
struct RemoteStream {
  service::Channel channel;  // the worker ends with it
  UniqueFd lines;            // of crosstalk.top/1
  UniqueFd words;            // the worker's standard error
};

/// Begins a live view of the processes. Times in seconds.
[[nodiscard]] Result<RemoteStream> stream_by_daemon(const RecordRequest& request, double refresh_s, double window_s);

/// Passes what waits in the worker's standard error on to ours.
void pass_on_words(const UniqueFd& words);

}  // namespace crosstalk::driver
