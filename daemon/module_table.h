// SPDX-License-Identifier: Apache-2.0
// Which modules each live process has, so that their unloading, also in a fork's child, finds what was loaded.
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
  /// A fork's child begins with the modules that `parent` has; they are not copied while the parent is known.
  void inherit(ProcessId child, ProcessId parent);
  void load(profile::ModuleRow row);
  /// The row to be put for a module of `process` that is gone; nothing when none was known to begin there. One that was
  /// inherited gives the process a row of its own, as if loaded at `process_begin_ns`.
  std::optional<profile::ModuleRow> unload(ProcessId process, std::uint64_t begin, std::uint64_t time_ns,
                                           std::uint64_t process_begin_ns);
  /// Whether the collector's own library is at `address` of `process`.
  [[nodiscard]] bool in_collector(ProcessId process, std::uint64_t address) const {
    const auto range = collectors_.find(process.value);
    return range != collectors_.end() && range->second.first <= address && address < range->second.second;
  }
  /// The process is over. What its children have from it stays as long as they do.
  void forget(ProcessId process);
  /// Puts the rows of all processes that are known.
  void put_everything(RowSink& sink) const;

  /// Rows held, those of forgotten processes that live on in their children included.
  [[nodiscard]] std::size_t rows() const;

 private:
  struct Node {
    std::vector<profile::ModuleRow> own;
    std::shared_ptr<Node> inherited;
  };
  Node& node_of(ProcessId process);
  static const profile::ModuleRow* find_inherited(const Node& node, std::uint64_t begin);

  std::unordered_map<std::uint32_t, std::shared_ptr<Node>> nodes_;
  std::unordered_map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> collectors_;  // by process: [begin, end)
};

}  // namespace crosstalk::daemon
