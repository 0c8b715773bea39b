// SPDX-License-Identifier: Apache-2.0
// Serves the metrics by HTTP at /metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace crosstalk::service {

/// A thread of its own serves the latest text. publish() is thread-safe.
class MetricsServer {
 public:
  /// `address`: of IPv4 or IPv6, in digits. `port` 0: any that is free.
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> start(const std::string& address, std::uint16_t port);
  virtual ~MetricsServer() = default;
  virtual void publish(std::string text) = 0;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace crosstalk::service
