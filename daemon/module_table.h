// SPDX-License-Identifier: Apache-2.0
// Keeps the modules of each live process, so that an unload finds its row, even in a fork's child.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/row_sink.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Not thread-safe.
class ModuleTable {
 public:
  /// Starts a fork's child with the modules of `parent` at `time_ns`; they are not copied while the parent is known.
  void inherit(ProcessId child, ProcessId parent, std::uint64_t time_ns);
  void load(profile::ModuleRow row);
  /// Returns the row of a module of `process` that was unloaded; nullopt if none is known to begin there. An inherited
  /// module becomes a row of the process's own, as if loaded at `process_begin_ns`.
  std::optional<profile::ModuleRow> unload(ProcessId process, std::uint64_t begin, std::uint64_t time_ns,
                                           std::uint64_t process_begin_ns);
  /// A sample of `process` at `address` stands for so much CPU time. It may come before the modules of its process.
  void sampled(ProcessId process, std::uint64_t address, std::uint64_t ns);
  /// Returns the CPU time of samples in the collector's own library.
  [[nodiscard]] std::uint64_t collector_ns() const { return collector_ns_; }
  /// Returns the build id of the module with this path that `process` has; empty: none is known.
  [[nodiscard]] std::string build_id_of(ProcessId process, const std::string& path) const;
  /// Returns the modules that `process` has now, with those that it inherited as its own.
  [[nodiscard]] std::vector<profile::ModuleRow> present(ProcessId process) const;
  /// Forgets a process that is over. Rows that its children inherited stay as long as they do.
  void forget(ProcessId process);
  /// Puts the rows of all known processes.
  void put_everything(RowSink& sink) const;

  /// Returns the number of rows held, including rows of forgotten processes that their children still use.
  [[nodiscard]] std::size_t rows() const;

 private:
  struct Node {
    std::vector<profile::ModuleRow> own;
    std::shared_ptr<Node> inherited;
    std::uint64_t inherited_ns = 0;  // when it was forked
  };
  struct EarlySample {
    std::uint64_t address = 0, ns = 0;
  };
  Node& node_of(ProcessId process);
  void find_collector(ProcessId process, std::pair<std::uint64_t, std::uint64_t> range);
  static const profile::ModuleRow* find_inherited(const Node& node, std::uint64_t begin);

  std::unordered_map<std::uint32_t, std::shared_ptr<Node>> nodes_;
  std::unordered_map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> collectors_;  // by process: [begin, end)
  std::unordered_map<std::uint32_t, std::vector<EarlySample>> early_;  // by process whose collector is not known yet
  std::uint64_t collector_ns_ = 0;
};

}  // namespace crosstalk::daemon
