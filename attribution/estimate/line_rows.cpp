// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/line_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_call_paths = 10;

/// Call paths of one end of a row's communications; weights are shares of those with a known stack.
class CallPaths {
 public:
  CallPaths() = default;
  CallPaths(const CallPaths&) = delete;
  CallPaths& operator=(const CallPaths&) = delete;
  ~CallPaths() = default;
  void add(const AccessPoint& point, double weight, const ProgramView& view, const StackTable& stacks) {
    const std::uint32_t callers = stacks.callers(point.stack);
    if (callers == StackTable::unknown || StackTable::is_beginning(point.stack)) {
      return;
    }
    const Key key{view.moment(point.thread, 0).process.value, callers, point.instruction};
    if (latest_ == groups_.end() || latest_->first != key) {
      latest_ = groups_.try_emplace(key).first;
    }
    latest_->second.weight += weight;
    latest_->second.point = &point;
    total_ += weight;
  }

  /// Heaviest first, then by address.
  [[nodiscard]] std::vector<CallPath> finish(const ProgramView& view, const StackTable& stacks) const {
    std::vector<const Groups::value_type*> order;
    for (const auto& group : groups_) {
      order.push_back(&group);
    }
    std::sort(order.begin(), order.end(),
              [&](const auto* a, const auto* b) { return by_address(*a, stacks) < by_address(*b, stacks); });
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->second.weight > b->second.weight; });
    order.resize(std::min(order.size(), max_call_paths));
    std::vector<CallPath> paths;
    for (const auto* group : order) {
      const AccessPoint& point = *group->second.point;
      paths.push_back(
          {call_path(view, view.moment(point.thread, point.time_ns), point.instruction, stacks.addresses(point.stack)),
           total_ > 0 ? group->second.weight / total_ : 0});
    }
    return paths;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // process, callers, instruction
  struct Group {
    double weight = 0;
    const AccessPoint* point = nullptr;
  };
  using Groups = std::map<Key, Group>;
  static std::tuple<std::uint32_t, std::uint64_t, std::vector<std::uint64_t>> by_address(
      const Groups::value_type& group, const StackTable& stacks) {
    const auto& [process, callers, instruction] = group.first;
    const auto stack = stacks.addresses(group.second.point->stack).subspan(1);
    return {process, instruction, {stack.begin(), stack.end()}};
  }

  Groups groups_;
  Groups::iterator latest_ = groups_.end();
  double total_ = 0;
};

std::vector<std::uint32_t> all_in_order(std::size_t groups) {
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

LineTable::LineTable(std::span<const LocatedContribution> located, const SiteTable& sites,
                     const CommunicationInputs& inputs)
    : located_(located), sites_(sites), inputs_(inputs), rank_(sites.ranks()), table_(2 * rank_.size()) {
  for (std::size_t i = 0; i < located.size(); ++i) {
    const LocatedContribution& l = located[i];
    table_.add(group(l.consumer_site, Role::consumer), i, l.cost_s, l.weight);
    table_.add(group(l.producer_site, Role::producer), i, l.cost_s, l.weight);
  }
  table_.choose(all_in_order(2 * rank_.size()), inputs.max_rows, inputs.expansion);
}

void LineTable::add_amounts(const LocatedContribution& located, const Summand& summand) {
  table_.add_amounts(group(located.consumer_site, Role::consumer), summand);
  table_.add_amounts(group(located.producer_site, Role::producer), summand);
}

void LineTable::find_call_paths(const ProgramView& view, const StackTable& stacks) {
  std::vector<CallPaths> gathered(table_.rows());
  const auto add = [&](std::uint32_t row, const AccessPoint& point, const LocatedContribution& l) {
    if (row != RowTable::none) {
      gathered[row].add(point, table_[row].cost_s > 0 ? l.cost_s : l.weight, view, stacks);
    }
  };
  for (std::size_t i = 0; i < located_.size(); ++i) {
    const LocatedContribution& l = located_[i];
    const SeenCommunication& seen = *inputs_.contributions[i].seen;
    add(table_.row_of(group(l.consumer_site, Role::consumer)), seen.consumer, l);
    add(table_.row_of(group(l.producer_site, Role::producer)), seen.producer, l);
  }
  for (const CallPaths& paths : gathered) {
    paths_.push_back(paths.finish(view, stacks));
  }
}

std::vector<LineRow> LineTable::finish() {
  std::vector<LineRow> rows(table_.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LineRow& row = rows[i];
    row.role = table_.group_of(i) % 2 == 1 ? Role::consumer : Role::producer;
    const LocatedContribution& any = located_[table_[i].first];
    const std::uint32_t id = row.role == Role::consumer ? any.consumer_site : any.producer_site;
    const CodeSite& site = sites_[id];
    row.file = site.file;
    row.line = site.line;
    row.function = site.function;
    row.through = sites_.through(id);
    row.module = sites_.module(id);
    row.caller_known = sites_.caller_known(id);
    row.cost_s = table_[i].cost_s;
    table_.fill_amounts(i, row);
    row.call_paths = std::move(paths_[i]);
  }
  return rows;
}

LinePairTable::LinePairTable(std::span<const LocatedContribution> located, const SiteTable& sites,
                             const CommunicationInputs& inputs, const DataObjects& objects) {
  using Key = std::array<std::uint32_t, 3>;  // producer, consumer, object
  const std::vector<std::uint32_t> rank = sites.ranks();
  const std::vector<std::uint32_t> object_rank = objects.name_ranks();
  std::map<Key, std::uint32_t> groups;
  auto latest = groups.end();
  group_of_.reserve(located.size());
  for (std::size_t i = 0; i < located.size(); ++i) {
    const LocatedContribution& l = located[i];
    const Key key{rank[l.producer_site], rank[l.consumer_site], object_rank[l.object]};
    if (latest == groups.end() || latest->first != key) {
      bool fresh = false;
      std::tie(latest, fresh) = groups.try_emplace(key, static_cast<std::uint32_t>(groups.size()));
      if (fresh) {
        table_.add_group();
      }
    }
    table_.add(latest->second, i, l.cost_s, l.weight);
    group_of_.push_back(latest->second);
  }
  std::vector<std::uint32_t> by_key;
  for (const auto& [key, group] : groups) {
    by_key.push_back(group);
  }
  table_.choose(std::move(by_key), inputs.max_rows, inputs.expansion);
  for (std::size_t i = 0; i < table_.rows(); ++i) {
    const LocatedContribution& any = located[table_[i].first];
    const CodeSite& producer = sites[any.producer_site];
    const CodeSite& consumer = sites[any.consumer_site];
    LinePair& row = rows_.emplace_back();
    row.producer_file = producer.file;
    row.producer_line = producer.line;
    row.producer_function = producer.function;
    row.consumer_file = consumer.file;
    row.consumer_line = consumer.line;
    row.consumer_function = consumer.function;
    row.object = objects[any.object].name;
    row.producer_through = sites.through(any.producer_site);
    row.consumer_through = sites.through(any.consumer_site);
    row.producer_module = sites.module(any.producer_site);
    row.consumer_module = sites.module(any.consumer_site);
    row.producer_caller_known = sites.caller_known(any.producer_site);
    row.consumer_caller_known = sites.caller_known(any.consumer_site);
    row.cost_s = table_[i].cost_s;
  }
}

std::vector<LinePair> LinePairTable::finish() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    table_.fill_amounts(i, rows_[i]);
  }
  return std::move(rows_);
}

}  // namespace crosstalk::attribution
