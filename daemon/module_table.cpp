// SPDX-License-Identifier: Apache-2.0
#include "daemon/module_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/collector_name.h"

namespace crosstalk::daemon {
namespace {

// Bounds the memory for a program that keeps loading and unloading plugins.
constexpr std::size_t most_rows = 2048;

template <class Rows>
auto latest_at(Rows& rows, std::uint64_t begin, bool loaded_only) -> decltype(rows.data()) {
  const auto found = std::find_if(rows.rbegin(), rows.rend(), [&](const profile::ModuleRow& row) {
    return row.begin == begin && (row.unloaded_ns == 0 || !loaded_only);
  });
  return found != rows.rend() ? &*found : nullptr;
}

/// Keeps only the latest row of each address, the one that a lookup finds.
void drop_hidden(std::vector<profile::ModuleRow>& rows) {
  std::set<std::uint64_t> seen;
  std::reverse(rows.begin(), rows.end());
  std::erase_if(rows, [&seen](const profile::ModuleRow& row) { return !seen.insert(row.begin).second; });
  std::reverse(rows.begin(), rows.end());
}

/// Drops half of the rows: unloaded modules first, then the oldest.
void halve(std::vector<profile::ModuleRow>& rows) {
  std::size_t surplus = rows.size() / 2;
  std::erase_if(rows, [&surplus](const profile::ModuleRow& row) {
    const bool gone = surplus != 0 && row.unloaded_ns != 0;
    surplus -= gone ? 1 : 0;
    return gone;
  });
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(surplus));
}

}  // namespace

ModuleTable::Node& ModuleTable::node_of(ProcessId process) {
  std::shared_ptr<Node>& node = nodes_[process.value];
  if (!node) {
    node = std::make_shared<Node>();
  }
  return *node;
}

void ModuleTable::inherit(ProcessId child, ProcessId parent, std::uint64_t time_ns) {
  (void)node_of(parent);
  const std::shared_ptr<Node> from = nodes_[parent.value];
  Node& node = node_of(child);
  node.inherited = from;
  node.inherited_ns = time_ns;
  if (const auto range = collectors_.find(parent.value); range != collectors_.end()) {
    find_collector(child, range->second);
  }
}

void ModuleTable::find_collector(ProcessId process, std::pair<std::uint64_t, std::uint64_t> range) {
  collectors_[process.value] = range;
  if (const auto early = early_.extract(process.value); !early.empty()) {
    for (const EarlySample& sample : early.mapped()) {
      sampled(process, sample.address, sample.ns);
    }
  }
}

void ModuleTable::sampled(ProcessId process, std::uint64_t address, std::uint64_t ns) {
  constexpr std::size_t most_early = 64;  // a process that is watched from outside never has a collector
  if (const auto range = collectors_.find(process.value); range != collectors_.end()) {
    collector_ns_ += range->second.first <= address && address < range->second.second ? ns : 0;
  } else if (std::vector<EarlySample>& early = early_[process.value]; early.size() < most_early) {
    early.push_back({address, ns});
  }
}

void ModuleTable::load(profile::ModuleRow row) {
  if (is_collector_file(row.path)) {
    find_collector(row.process, {row.begin, row.end});
  }
  std::vector<profile::ModuleRow>& rows = node_of(row.process).own;
  if (rows.size() >= most_rows) {
    halve(rows);
  }
  rows.push_back(std::move(row));
}

const profile::ModuleRow* ModuleTable::find_inherited(const Node& node, std::uint64_t begin) {
  // The child may still have a module that the parent has unloaded since.
  for (const Node* from = node.inherited.get(); from != nullptr; from = from->inherited.get()) {
    if (const profile::ModuleRow* const row = latest_at(from->own, begin, false)) {
      return row;
    }
  }
  return nullptr;
}

std::optional<profile::ModuleRow> ModuleTable::unload(ProcessId process, std::uint64_t begin, std::uint64_t time_ns,
                                                      std::uint64_t process_begin_ns) {
  const auto known = nodes_.find(process.value);
  if (known == nodes_.end()) {
    return std::nullopt;
  }
  if (profile::ModuleRow* const own = latest_at(known->second->own, begin, true)) {
    own->unloaded_ns = time_ns;
    return *own;
  }
  const profile::ModuleRow* const inherited = find_inherited(*known->second, begin);
  if (inherited == nullptr) {
    return std::nullopt;
  }
  profile::ModuleRow row = *inherited;
  row.process = process;
  row.loaded_ns = process_begin_ns;
  row.unloaded_ns = time_ns;
  load(row);
  return row;
}

std::vector<profile::ModuleRow> ModuleTable::present(ProcessId process) const {
  std::vector<profile::ModuleRow> rows;
  const auto known = nodes_.find(process.value);
  if (known == nodes_.end()) {
    return rows;
  }
  std::set<std::uint64_t> seen;      // addresses: a later module hides an inherited one
  std::uint64_t at_ns = UINT64_MAX;  // of the fork, for a parent's modules
  for (const Node* node = known->second.get(); node != nullptr; node = node->inherited.get()) {
    for (auto row = node->own.rbegin(); row != node->own.rend(); ++row) {
      if (row->loaded_ns > at_ns || !seen.insert(row->begin).second) {
        continue;
      }
      if (row->unloaded_ns == 0 || row->unloaded_ns > at_ns) {
        rows.push_back(*row);
        rows.back().process = process;
        rows.back().unloaded_ns = 0;
      }
    }
    at_ns = std::min(at_ns, node->inherited_ns);
  }
  return rows;
}

std::string ModuleTable::build_id_of(ProcessId process, const std::string& path) const {
  for (const profile::ModuleRow& row : present(process)) {
    if (row.path == path && !row.build_id.empty()) {
      return row.build_id;
    }
  }
  return {};
}

void ModuleTable::forget(ProcessId process) {
  collectors_.erase(process.value);
  early_.erase(process.value);
  const auto known = nodes_.find(process.value);
  if (known == nodes_.end()) {
    return;
  }
  const std::shared_ptr<Node> node = std::move(known->second);
  nodes_.erase(known);
  if (node.use_count() == 1 || !node->inherited) {
    return;
  }
  // Its children keep the node. It copies its inherited rows, because otherwise a chain of daemons, each forked by the
  // one before, would keep every ancestor alive.
  std::vector<profile::ModuleRow> all = node->inherited->own;
  for (const Node* from = node->inherited->inherited.get(); from != nullptr; from = from->inherited.get()) {
    all.insert(all.begin(), from->own.begin(), from->own.end());
  }
  all.insert(all.end(), node->own.begin(), node->own.end());
  drop_hidden(all);
  node->own = std::move(all);
  node->inherited.reset();
}

void ModuleTable::put_everything(RowSink& sink) const {
  for (const auto& [process, node] : nodes_) {
    for (const profile::ModuleRow& row : node->own) {
      sink.put(row);
    }
  }
}

std::size_t ModuleTable::rows() const {
  std::size_t rows = 0;
  std::set<const Node*> seen;
  for (const auto& [process, known] : nodes_) {
    for (const Node* node = known.get(); node != nullptr && seen.insert(node).second; node = node->inherited.get()) {
      rows += node->own.size();
    }
  }
  return rows;
}

}  // namespace crosstalk::daemon
