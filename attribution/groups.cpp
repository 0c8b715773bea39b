// SPDX-License-Identifier: Apache-2.0
#include "attribution/groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "attribution/program/program_view.h"
#include "profile/topology.h"

namespace crosstalk::attribution {
namespace {

using Labels = std::map<std::uint32_t, std::string>;  // by member

std::optional<Interval> added(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  return a && b ? std::optional(Interval{a->low + b->low, a->high + b->high}) : std::nullopt;
}

std::optional<double> added(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

/// The threads that a filter leaves, and their partners.
std::vector<const ThreadSummary*> members_of(const Analysis& analysis) {
  std::set<std::uint32_t> partners;
  for (const Matrix* cells : {&analysis.communication.cells, &analysis.communication.invalidations}) {
    for (const Cell& cell : *cells) {
      partners.insert({cell.producer, cell.consumer});
    }
  }
  std::vector<const ThreadSummary*> members;
  for (const ThreadSummary& thread : analysis.threads) {
    if (thread.listed || partners.contains(thread.index)) {
      members.push_back(&thread);
    }
  }
  return members;
}

/// Labels threads by their common name if several have it; a single thread keeps its name.
Labels by_name(const Analysis& analysis) {
  std::map<std::string, std::set<std::string>> forms;
  const auto members = members_of(analysis);
  for (const ThreadSummary* thread : members) {
    forms[common_name(thread->name)].insert(thread->name);
  }
  Labels labels;
  for (const ThreadSummary* thread : members) {
    const std::string form = common_name(thread->name);
    const std::string& name = forms[form].size() > 1 ? form : thread->name;
    labels[thread->index] = name.empty() ? "without a name" : name;
  }
  return labels;
}

std::string command_name(const std::string& command) { return base_name(command.substr(0, command.find(' '))); }

Labels by_process(const Analysis& analysis) {
  std::map<std::int32_t, std::string> commands;  // a process that executes another program is the later one
  for (const profile::ProcessRow& process : analysis.processes) {
    if (process.observation != profile::Observation::none) {  // it has no threads here
      commands[process.pid] = command_name(process.command);
    }
  }
  Labels labels;
  for (const ThreadSummary* thread : members_of(analysis)) {
    const auto command = commands.find(thread->pid);
    labels[thread->index] =
        std::to_string(thread->pid) + (command == commands.end() ? std::string() : " " + command->second);
  }
  return labels;
}

Labels by_start_routine(const Analysis& analysis) {
  Labels labels;
  for (const ThreadSummary* thread : members_of(analysis)) {
    labels[thread->index] = thread->start_routine.empty() ? "not known" : thread->start_routine;
  }
  return labels;
}

std::set<std::uint32_t> processors_of(const Analysis& analysis) {
  std::set<std::uint32_t> processors;
  for (const ProcessorSummary& processor : analysis.processors) {
    processors.insert(processor.cpu);
  }
  for (const Cell& cell : analysis.communication.cores) {
    processors.insert({cell.producer, cell.consumer});
  }
  return processors;
}

Labels by_socket(const std::set<std::uint32_t>& processors, const profile::Topology& topology) {
  Labels labels;
  for (const std::uint32_t cpu : processors) {
    const profile::CpuPlace* place = topology.find(cpu);
    labels[cpu] = place == nullptr || place->package < 0 ? "not known" : "socket " + std::to_string(place->package);
  }
  return labels;
}

/// Labels cores by their processors: "cpu 3", or "cpu 3,7" if two share it.
Labels by_core(const std::set<std::uint32_t>& processors, const profile::Topology& topology) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::string> names;
  for (const profile::CpuPlace& place : topology.cpus()) {
    if (place.core >= 0 && place.package >= 0) {
      std::string& name = names[{place.package, place.core}];
      name += (name.empty() ? "cpu " : ",") + std::to_string(place.cpu);
    }
  }
  Labels labels;
  for (const std::uint32_t cpu : processors) {
    const profile::CpuPlace* place = topology.find(cpu);
    const auto name = place == nullptr ? names.end() : names.find({place->package, place->core});
    labels[cpu] = name == names.end() ? "cpu " + std::to_string(cpu) : name->second;
  }
  return labels;
}

/// Groups by label, and the index of each member's group.
struct Members {
  std::vector<Group> groups;
  std::map<std::uint32_t, std::uint32_t> group_of;
};

Members gathered(const Labels& labels) {
  Members members;
  std::map<std::string, std::uint32_t> indices;
  for (const auto& [member, label] : labels) {
    const auto [index, fresh] = indices.try_emplace(label, static_cast<std::uint32_t>(members.groups.size()));
    if (fresh) {
      members.groups.push_back({});
      members.groups.back().name = label;
    }
    members.groups[index->second].members.push_back(member);
    members.group_of[member] = index->second;
  }
  return members;
}

/// Adds the times of threads or processors.
template <class Summary>
void add_times(Members& members, const std::vector<Summary>& summaries, std::uint32_t Summary::*number) {
  std::vector<std::uint64_t> of_time(members.groups.size());  // samples
  for (const Summary& summary : summaries) {
    const auto index = members.group_of.find(summary.*number);
    if (index == members.group_of.end()) {
      continue;
    }
    Group& group = members.groups[index->second];
    if (const std::optional<double> share = summary.kernel_share) {
      group.kernel_share = group.kernel_share.value_or(0) + *share * static_cast<double>(summary.samples);
      of_time[index->second] += summary.samples;
    }
    group.samples += summary.samples;
    if (const std::optional<double> cpu_s = summary.cpu_s) {
      group.cpu_s = group.cpu_s.value_or(0) + *cpu_s;
    }
  }
  for (std::size_t i = 0; i < members.groups.size(); ++i) {
    std::optional<double>& share = members.groups[i].kernel_share;
    share = share && of_time[i] > 0 ? std::optional(*share / static_cast<double>(of_time[i])) : std::nullopt;
  }
}

Matrix folded(const Matrix& cells, const Members& members) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cell> sums;
  for (const Cell& cell : cells) {
    const auto producer = members.group_of.find(cell.producer);
    const auto consumer = members.group_of.find(cell.consumer);
    if (producer == members.group_of.end() || consumer == members.group_of.end()) {
      continue;
    }
    const auto [sum, fresh] = sums.try_emplace({producer->second, consumer->second}, cell);
    if (fresh) {
      sum->second.producer = producer->second;
      sum->second.consumer = consumer->second;
    } else {
      sum->second.true_sharing = sum_amounts(sum->second.true_sharing, cell.true_sharing);
      sum->second.false_sharing = sum_amounts(sum->second.false_sharing, cell.false_sharing);
    }
  }
  Matrix result;
  for (auto& [pair, cell] : sums) {
    result.push_back(std::move(cell));
  }
  return result;
}

/// Fills in the communication of groups with known figures. Threads' summaries tell which are known; for processors the
/// cells do.
void add_communication(Grouping& grouping, const Analysis& analysis) {
  if (!grouping.of_processors()) {
    for (Group& group : grouping.groups) {
      for (const std::uint32_t member : group.members) {
        const auto thread = std::find_if(analysis.threads.begin(), analysis.threads.end(),
                                         [member](const ThreadSummary& t) { return t.index == member; });
        if (thread->communication_s) {
          group.communication_s = group.communication_s.value_or(0) + *thread->communication_s;
        }
      }
    }
    return;
  }
  for (const Cell& cell : grouping.cells) {
    if (cell.true_sharing.cost_s || cell.false_sharing.cost_s) {
      Group& group = grouping.groups[cell.consumer];
      group.communication_s = group.communication_s.value_or(0) + cell.cost();
    }
  }
}

Result<Labels> labels_of(const Analysis& analysis, GroupBy by, std::string& note) {
  switch (by) {
    case GroupBy::name:
      return by_name(analysis);
    case GroupBy::process:
      return by_process(analysis);
    case GroupBy::start_routine:
      return by_start_routine(analysis);
    case GroupBy::core:
    case GroupBy::socket:
      break;
  }
  const auto topology = profile::Topology::parse(analysis.session.topology);
  const bool known = topology && !topology->cpus().empty();
  if (by == GroupBy::socket) {
    if (!known) {
      return fail(
          ErrorCode::unsupported,
          "--by socket: the profile does not say which processor is in which socket; --by core shows processors");
    }
    return by_socket(processors_of(analysis), *topology);
  }
  if (!known) {
    note = "Which processors are one core is not known: each is listed as a core.";
  }
  return by_core(processors_of(analysis), known ? *topology : profile::Topology());
}

}  // namespace

Amount sum_amounts(const Amount& a, const Amount& b) {
  Amount sum;
  // A sort that was not seen has no count, and takes nothing from the other's.
  const auto count_of = [](const Amount& amount) { return amount.seen == 0 ? amount.count.value_or(0) : amount.count; };
  const auto counts_of = [](const Amount& amount) {
    return amount.seen == 0 && !amount.count_ci95 ? std::optional(Interval{}) : amount.count_ci95;
  };
  if (a.count || b.count) {
    sum.count = added(count_of(a), count_of(b));
    sum.count_ci95 = sum.count ? added(counts_of(a), counts_of(b)) : std::nullopt;
  }
  sum.count_unknown = sum.count ? std::string() : a.count_unknown.empty() ? b.count_unknown : a.count_unknown;
  const Amount& costs = !a.cost_s && a.seen == 0 ? b : a;  // nothing was seen, and no limit is known: it adds nothing
  const bool both = &costs == &a && (b.cost_s || b.seen != 0);
  sum.cost_s = both ? added(a.cost_s, b.cost_s) : costs.cost_s;
  sum.cost_ci95 = both ? added(a.cost_ci95, b.cost_ci95) : costs.cost_ci95;
  sum.gain_s = both ? added(a.gain_s, b.gain_s) : costs.gain_s;
  sum.gain_ci95 = both ? added(a.gain_ci95, b.gain_ci95) : costs.gain_ci95;
  sum.detections = a.detections + b.detections;
  sum.seen = a.seen + b.seen;
  const auto moves = [](const Amount& amount) { return amount.detections > 0 && !amount.one_processor; };
  sum.one_processor = sum.detections > 0 && !moves(a) && !moves(b);
  return sum;
}

std::string common_name(const std::string& thread_name) {
  const std::size_t last = thread_name.find_last_not_of("0123456789");
  const bool numbered = last != std::string::npos && last + 1 < thread_name.size();
  return numbered ? thread_name.substr(0, last + 1) + "*" : thread_name;
}

Result<Grouping> group(const Analysis& analysis, GroupBy by) {
  Grouping grouping;
  grouping.by = by;
  const auto labels = labels_of(analysis, by, grouping.note);
  if (!labels) {
    return tl::unexpected<Error>(labels.error());
  }
  Members members = gathered(*labels);
  if (grouping.of_processors()) {
    add_times(members, analysis.processors, &ProcessorSummary::cpu);
    grouping.cells = folded(analysis.communication.cores, members);
  } else {
    add_times(members, analysis.threads, &ThreadSummary::index);
    grouping.cells = folded(analysis.communication.cells, members);
    grouping.invalidations = folded(analysis.communication.invalidations, members);
  }
  grouping.groups = std::move(members.groups);
  add_communication(grouping, analysis);
  return grouping;
}

}  // namespace crosstalk::attribution
