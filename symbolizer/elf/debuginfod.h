// SPDX-License-Identifier: Apache-2.0
// Files by build id from the servers of DEBUGINFOD_URLS. The client library is loaded on first use only: it
// starts an HTTP and a TLS library when it is loaded, which a recording need not pay for.
#pragma once

#include <optional>
#include <string>

namespace crosstalk::symbolizer {

class Debuginfod {
 public:
  /// Asks nothing when `enabled` is false or DEBUGINFOD_URLS is unset or empty.
  explicit Debuginfod(bool enabled);
  Debuginfod(Debuginfod&& other) noexcept;
  Debuginfod& operator=(Debuginfod&&) = delete;
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;
  ~Debuginfod();

  enum class Kind { debug_information, executable };
  /// Path of the file in the client's cache, none when no server has it. Blocks while it downloads, but at
  /// most some seconds without any progress; after one such wait no server is asked again.
  [[nodiscard]] std::optional<std::string> find(const std::string& build_id, Kind kind);
  [[nodiscard]] bool enabled() const { return enabled_; }

 private:
  struct Library;
  [[nodiscard]] bool load();
  bool enabled_ = false;
  Library* library_ = nullptr;
};

}  // namespace crosstalk::symbolizer
