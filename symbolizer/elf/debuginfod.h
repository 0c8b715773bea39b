// SPDX-License-Identifier: Apache-2.0
// Files by build id from the servers of DEBUGINFOD_URLS. Loads the client library on first use only, because loading it
// starts an HTTP and a TLS library, and a recording should not pay for that.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace crosstalk::symbolizer {

class Debuginfod {
 public:
  /// Asks no server if `enabled` is false, or DEBUGINFOD_URLS is unset or empty.
  explicit Debuginfod(bool enabled);
  Debuginfod(Debuginfod&& other) noexcept;
  Debuginfod& operator=(Debuginfod&&) = delete;
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;
  ~Debuginfod();

  enum class Kind { debug_information, executable };
  /// Path of the file in the client's cache, nothing if no server has it. Blocks during the download: at most
  /// DEBUGINFOD_TIMEOUT seconds (10 by default) for the first byte, and as long again for each further one, or for the
  /// whole file if the server does not state its size. After one such timeout, or if no server can be reached, asks
  /// none again.
  [[nodiscard]] std::optional<std::string> find(const std::string& build_id, Kind kind);
  [[nodiscard]] bool enabled() const { return enabled_; }
  /// The reason why servers are no longer asked, a sentence without its end; nullopt if they are.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  /// Progress of a wait for a server, reported at least once a second.
  struct Wait {
    std::string build_id;
    long received = 0, total = 0;  // bytes; total 0: nothing has come yet, or its size is not known
    double seconds = 0;
    bool over = false;
  };
  /// Sets the listener of all instances, because the client's callback knows no instance; empty: none. One thread only.
  static void on_wait(std::function<void(const Wait&)> listener);

 private:
  struct Library;
  [[nodiscard]] bool load();
  bool enabled_ = false;
  std::optional<std::string> failure_;
  Library* library_ = nullptr;
};

}  // namespace crosstalk::symbolizer
