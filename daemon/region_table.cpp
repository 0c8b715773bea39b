// SPDX-License-Identifier: Apache-2.0
#include "daemon/region_table.h"

#include <algorithm>

#include "daemon/record_checks.h"

namespace crosstalk::daemon {
namespace {

using profile::RegionId;
using profile::ThreadRegions;

/// Returns a name from the arena; empty if there is none.
std::string name_of(const profile::ArenaHeader& arena, std::uint32_t number) {
  if (number == 0 || number > profile::most_region_names) {
    return {};
  }
  const profile::RegionName& name = arena.region_names[number - 1];
  if (name.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(profile::RegionNameState::ready)) {
    return {};
  }
  const std::string text = one_line(text_of(std::span<const char>(name.text)));
  return text.empty() ? "(unnamed)" : text;
}

void add_open(const ThreadRegions& table, std::uint64_t now_ns, RegionsSeen& seen) {
  const std::uint32_t depth = std::min(table.depth.load(std::memory_order_relaxed), ThreadRegions::most_open);
  for (std::uint32_t i = 0; i < depth; ++i) {
    const std::uint32_t number = table.open[i].node.load(std::memory_order_relaxed);
    const std::uint64_t begin_ns = table.open[i].begin_ns.load(std::memory_order_relaxed);
    if (number != 0 && number <= seen.nodes.size()) {
      RegionsSeen::Node& node = seen.nodes[number - 1];
      node.entries += 1;
      node.elapsed_ns += now_ns > begin_ns ? now_ns - begin_ns : 0;
    }
  }
}

bool same(const profile::ThreadRegionRow& a, const profile::ThreadRegionRow& b) {
  return a.entries == b.entries && a.elapsed_ns == b.elapsed_ns && a.waited_ns == b.waited_ns;
}

}  // namespace

RegionsSeen regions_seen(const ThreadRegions& table, const profile::ArenaHeader& arena, std::uint64_t now_ns) {
  RegionsSeen seen;
  seen.without_room = table.without_room.load(std::memory_order_relaxed);
  seen.unmatched = table.unmatched.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < ThreadRegions::most_nodes; ++i) {
    const ThreadRegions::Node& node = table.node[i];
    const ThreadRegions::Key key = node.key.load(std::memory_order_acquire);
    RegionsSeen::Node found{ThreadRegions::parent_of(key), name_of(arena, ThreadRegions::name_of(key)), 0, 0, {}};
    if (key == 0 || found.parent > i || found.name.empty()) {
      break;
    }
    found.entries = node.entries.load(std::memory_order_relaxed);
    found.elapsed_ns = node.elapsed_ns.load(std::memory_order_relaxed);
    for (std::size_t what = 0; what < profile::wait_classes; ++what) {
      found.waited_ns[what] = node.waited_ns[what].load(std::memory_order_relaxed);
    }
    seen.nodes.push_back(std::move(found));
  }
  add_open(table, now_ns, seen);
  return seen;
}

RegionId RegionTable::region(RegionId parent, const std::string& name) {
  const auto [known, fresh] = ids_.try_emplace({parent, name});
  if (fresh) {
    known->second = RegionId{static_cast<std::uint32_t>(rows_.size() + 1)};
    rows_.push_back({known->second, parent, name});
    sink_->put(rows_.back());
  }
  return known->second;
}

void RegionTable::learn(std::uint32_t slot, const RegionsSeen& seen) {
  Slot& of = slots_[slot];
  of.without_room = seen.without_room;
  of.unmatched = seen.unmatched;
  for (std::size_t i = of.ids.size(); i < seen.nodes.size(); ++i) {
    const RegionsSeen::Node& node = seen.nodes[i];
    of.ids.push_back(region(node.parent != 0 ? of.ids[node.parent - 1] : RegionId{}, node.name));
  }
}

void RegionTable::put(std::uint32_t slot, ThreadId thread, const RegionsSeen& seen) {
  learn(slot, seen);
  Slot& of = slots_[slot];
  std::vector<profile::ThreadRegionRow> rows;
  for (std::size_t i = 0; i < seen.nodes.size(); ++i) {
    const RegionsSeen::Node& node = seen.nodes[i];
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& other) { return other.region == of.ids[i]; });
    row = row != rows.end() ? row : rows.insert(rows.end(), {thread, of.ids[i], 0, 0, {}});
    row->entries += node.entries;
    row->elapsed_ns += node.elapsed_ns;
    for (std::size_t what = 0; what < profile::wait_classes; ++what) {
      row->waited_ns[what] += node.waited_ns[what];
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i >= of.latest.size() || !same(of.latest[i], rows[i])) {
      sink_->put(rows[i]);
    }
  }
  of.latest = std::move(rows);
}

RegionId RegionTable::id_of(std::uint32_t slot, std::uint32_t node) const {
  const std::vector<RegionId>& ids = slots_[slot].ids;
  return node != 0 && node <= ids.size() ? ids[node - 1] : RegionId{};
}

void RegionTable::say(const char* code, const std::string& text) {
  profile::MessageRow row;
  row.code = code;
  row.text = text;
  sink_->put(row);
}

void RegionTable::close(std::uint32_t slot) {
  const Slot& of = slots_[slot];
  if (of.without_room != 0) {
    say("regions_without_room",
        "the table of regions was full (32 deep, 64 different ones a thread, 255 names a session), so some regions are "
        "missing from the figures; mark fewer, or use fewer names");
  }
  if (of.unmatched != 0) {
    say("unmatched_regions",
        "threads ended regions that they had not begun: such ends do nothing; see that each crosstalk_end() has its "
        "crosstalk_begin() in the same thread");
  }
  slots_[slot] = {};
}

void RegionTable::put_everything(RowSink& sink) {
  for (const profile::RegionRow& row : rows_) {
    sink.put(row);
  }
  for (Slot& slot : slots_) {
    slot.latest.clear();
  }
}

}  // namespace crosstalk::daemon
