// SPDX-License-Identifier: Apache-2.0
// Files by build id from the servers of DEBUGINFOD_URLS. The client library is loaded on first use only: it
// starts an HTTP and a TLS library when it is loaded, which a recording need not pay for.
#pragma once

#include <functional>
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
  /// Path of the file in the client's cache, none when no server has it. Blocks while it downloads, but at most
  /// DEBUGINFOD_TIMEOUT seconds (10 where that is not set) for the first byte, and as long again for each further one
  /// (for the whole file where a server does not say how long it is). After one such wait, or when no server can be
  /// reached, none is asked again.
  [[nodiscard]] std::optional<std::string> find(const std::string& build_id, Kind kind);
  [[nodiscard]] bool enabled() const { return enabled_; }
  /// Why the servers are not asked any more, a sentence without its end; nullopt: they are.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  /// What a wait is told of: once a second and more often.
  struct Wait {
    std::string build_id;
    long received = 0, total = 0;  // bytes; total 0: nothing has come yet, or its size is not known
    double seconds = 0;
    bool over = false;
  };
  /// Whom to tell, of all instances, for the client's callback knows of none; empty: nobody. For one thread.
  static void on_wait(std::function<void(const Wait&)> listener);

 private:
  struct Library;
  [[nodiscard]] bool load();
  bool enabled_ = false;
  std::optional<std::string> failure_;
  Library* library_ = nullptr;
};

}  // namespace crosstalk::symbolizer
