// SPDX-License-Identifier: Apache-2.0
// Pictures as they come: from a producer in this process, or as lines from a descriptor.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "driver/live/producer.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

/// Used by one thread.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;

  /// Readable if take() has something new to tell.
  [[nodiscard]] virtual int fd() const = 0;

  struct News {
    std::optional<Snapshot> snapshot;  // the latest
    bool ended = false;                // nothing comes after it
    std::optional<Error> error;        // why it ended; absent: in the usual way
  };
  /// Does not wait.
  [[nodiscard]] virtual News take() = 0;
};

/// Lets the producer run on a thread of its own, which ends with the feed: then its recorder is stopped. Fails if there
/// are no descriptors.
[[nodiscard]] Result<std::unique_ptr<Feed>> feed_of(Producer producer);

/// Reads the stream "crosstalk.top/1" from a pipe, socket or file.
[[nodiscard]] std::unique_ptr<Feed> feed_of(UniqueFd stream);

}  // namespace crosstalk::driver::live
